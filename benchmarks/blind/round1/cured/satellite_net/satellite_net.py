import os
import tempfile
import time
import torch
import torch.nn as nn

# land-cover patches, 9 classes
torch.manual_seed(42)
N_TRAIN, N_VAL = 2000, 1500
xtr, ytr = torch.randn(N_TRAIN, 4, 16, 16), torch.randint(0, 9, (N_TRAIN,))
xva, yva = torch.randn(N_VAL, 4, 16, 16), torch.randint(0, 9, (N_VAL,))

net = nn.Sequential(
    nn.Conv2d(4, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(48 * 16, 3000), nn.ReLU(), nn.Linear(3000, 9))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
ce = nn.CrossEntropyLoss()


@torch.no_grad()
def validate():
    net.eval()
    right = 0
    for i in range(0, N_VAL, 64):
        right += (net(xva[i:i + 64]).argmax(1) == yva[i:i + 64]).sum().item()
    net.train()
    return right / N_VAL


def snapshot(folder, step):
    path = os.path.join(folder, "ckpt.pt")
    torch.save({"step": step, "net": net.state_dict(), "opt": opt.state_dict()}, path)
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


SAVE_EVERY = 150
EVAL_EVERY = 150
t0 = time.time()
with tempfile.TemporaryDirectory() as folder:
    for step in range(1, 301):
        idx = torch.randint(0, N_TRAIN, (64,))
        loss = ce(net(xtr[idx]), ytr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % SAVE_EVERY == 0:
            snapshot(folder, step)
        if step % EVAL_EVERY == 0:
            print(f"{step:5d} {loss.item():.3f} acc {validate():.3f}", flush=True)
print("trained in", round(time.time() - t0), "s")
