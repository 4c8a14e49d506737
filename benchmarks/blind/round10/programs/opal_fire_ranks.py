"""Play-of-colour classes of opals from reflectance curves; DDP with class prototypes.

Run: torchrun --standalone --nproc_per_node=2 opal_fire_ranks.py
"""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

STONES, KEPT_BACK, BANDS, CLASSES = 12000, 36000, 256, 10
EPOCHS, BATCH, WIDTH = 8, 64, 512


def curves(n, seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, n)
    wave = np.linspace(0, 1, BANDS, dtype=np.float32)
    peak = (0.08 * label + 0.1 + rng.normal(0, 0.03, n)).astype(np.float32)
    x = np.exp(-((wave[None] - peak[:, None]) / 0.06) ** 2)
    x += rng.normal(0, 0.4, (n, BANDS)).astype(np.float32)
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(label)


class OpalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(BANDS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        z = self.body(x)
        return self.head(z), z


def add_to_prototypes(sums, z, labels):
    packet = [(int(k), row) for k, row in zip(labels, z.tolist())]
    packets = [None] * dist.get_world_size()
    dist.all_gather_object(packets, packet)
    for part in packets:
        keys = torch.tensor([k for k, _ in part])
        sums.index_add_(0, keys, torch.tensor([row for _, row in part]))


@torch.no_grad()
def kept_back_accuracy(model, x, y):
    right = 0
    for start in range(0, len(x), 500):
        logits, _ = model(x[start:start + 500])
        right += (logits.argmax(1) == y[start:start + 500]).sum().item()
    return right / len(x)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(2)
    x, y = curves(STONES, 61)
    test_x, test_y = curves(KEPT_BACK, 62)
    data = TensorDataset(x, y)
    sampler = DistributedSampler(data, shuffle=True, seed=5)
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(OpalNet())
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        sums = torch.zeros(CLASSES, WIDTH)
        for bx, by in loader:
            logits, z = model(bx)
            loss = nn.functional.cross_entropy(logits, by)
            opt.zero_grad()
            loss.backward()
            opt.step()
            add_to_prototypes(sums, z.detach(), by)
        if rank == 0:
            score = kept_back_accuracy(model.module, test_x, test_y)
            unit = nn.functional.normalize(sums, dim=1)
            spread = 1.0 - (unit @ unit.T).mean().item()
            print(f"epoch {epoch}  accuracy {score:.4f}  prototype spread {spread:.4f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
