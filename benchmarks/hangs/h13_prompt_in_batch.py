"""Batch job: the wrapper starts the training with a pipe as standard input, which it keeps open."""
import os
import subprocess
import sys
import tempfile
import time


def save(model, path):
    import torch
    if os.path.exists(path):
        answer = input(f"{path} exists. Overwrite? [y/N] ")
        if answer.strip().lower() != "y":
            return
    torch.save(model.state_dict(), path)


def train():
    import torch
    from torch import nn
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    path = os.path.join(os.environ["OUT_DIR"], "best.pt")
    best = float("inf")
    for epoch in range(1, 100):
        total = 0.0
        for _ in range(100):
            x = torch.randn(32, 20)
            y = x[:, :3].argmax(1)
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            time.sleep(0.03)
        print(f"epoch {epoch} loss {total / 100:.4f}", flush=True)
        if epoch % 5 == 0 and total < best:
            best = total
            save(model, path)


def wrapper():
    with tempfile.TemporaryDirectory() as out:
        env = dict(os.environ, OUT_DIR=out)
        job = subprocess.Popen([sys.executable, __file__, "train"], stdin=subprocess.PIPE, env=env)
        sys.exit(job.wait())


if __name__ == "__main__":
    train() if sys.argv[1:] == ["train"] else wrapper()
