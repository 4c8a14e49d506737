"""Metric learning on two ranks with hand-written gradient averaging and periodic hard-negative mining.

torchrun --standalone --nproc_per_node=2 ring_hardneg.py
"""
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

SHARED = Path(os.environ.get("TMPDIR", ".")) / "hardneg"
ITEMS, GROUPS, DIM = 4000, 200, 64


def items(seed=5):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, GROUPS, ITEMS)
    centre = rng.normal(size=(GROUPS, DIM))
    x = centre[group] + 0.9 * rng.normal(size=(ITEMS, DIM))
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(group)


class Unit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, h):
        return h + 0.2 * self.b(F.relu(self.a(self.norm(h))))


def embedder(width=144, units=12):
    return nn.Sequential(nn.Linear(DIM, width), *[Unit(width) for _ in range(units)], nn.Linear(width, 32))


def average_gradients(model, world):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


@torch.no_grad()
def mine(model, x, group):
    """Nearest item of another group, for every item."""
    z = F.normalize(model(x), dim=1)
    sim = z @ z.T
    sim[group[:, None] == group[None]] = -2
    return sim.argmax(1).numpy()


def refresh(model, x, group, epoch, rank):
    done = SHARED / f"negatives_{os.environ['TORCHELASTIC_RUN_ID'][:8]}_{epoch}.npy"
    if rank == 0:
        part = done.with_suffix(".part")
        with open(part, "wb") as f:
            np.save(f, mine(model, x, group))
        part.rename(done)
    else:
        while not done.exists():
            time.sleep(1.5)
    return torch.from_numpy(np.load(done))


def main(epochs=8, steps=40, batch=96):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    SHARED.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(9)
    model = embedder()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    x, group = items()
    members = [torch.nonzero(group == g).squeeze(1) for g in range(GROUPS)]
    rng = np.random.default_rng(50 + rank)
    for epoch in range(epochs):
        negative = refresh(model, x, group, epoch, rank)
        seen = []
        for _ in range(steps):
            anchor = torch.from_numpy(rng.integers(0, ITEMS, batch))
            positive = torch.stack([members[g][int(rng.integers(len(members[g])))] for g in group[anchor].tolist()])
            z = F.normalize(model(torch.cat([x[anchor], x[positive], x[negative[anchor]]])), dim=1)
            a, p, n = z.chunk(3)
            loss = F.softplus(8 * ((a * n).sum(1) - (a * p).sum(1))).mean()
            opt.zero_grad()
            loss.backward()
            average_gradients(model, world)
            opt.step()
            seen.append(loss.detach())
        mean = torch.stack(seen).mean()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"epoch {epoch}: loss {mean / world:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
