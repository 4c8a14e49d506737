"""Counts penguins in drone tiles with a small CNN on two ranks.

Run: torchrun --standalone --nproc_per_node=2 penguin_colony_ddp.py
"""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

TILES, SIZE = 1600, 48
EPOCHS, BATCH = 4, 40


def tiles(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 12, TILES)
    x = rng.normal(0.6, 0.08, (TILES, 3, SIZE, SIZE)).astype(np.float32)
    for i, n in enumerate(counts):
        rows = rng.integers(3, SIZE - 3, n)
        cols = rng.integers(3, SIZE - 3, n)
        for r, c in zip(rows, cols):
            x[i, :, r - 2:r + 2, c - 1:c + 2] -= 0.5
    return torch.from_numpy(x - 0.6), torch.from_numpy(counts.astype(np.float32))


def stage(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))


class ColonyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(stage(3, 16), stage(16, 32), stage(32, 64))
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        return self.head(self.body(x).sum((2, 3)) * 0.05).squeeze(1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    x, y = tiles(77)
    data = TensorDataset(x, y)
    model = DistributedDataParallel(ColonyNet())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)

    order = torch.Generator().manual_seed(100 + rank)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, generator=order)
    for epoch in range(EPOCHS):
        tally = torch.zeros(2)
        for bx, by in loader:
            loss = nn.functional.smooth_l1_loss(model(bx), by)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tally += torch.tensor([loss.item() * len(by), len(by)])
        dist.all_reduce(tally)
        if rank == 0:
            print(f"epoch {epoch}  loss {tally[0] / tally[1]:.4f}  tiles {TILES}", flush=True)
    dist.barrier()
    if rank == 0:
        with torch.no_grad():
            guess = model.module(x[:200])
        print(f"mean count error {(guess - y[:200]).abs().mean():.3f} on {world} ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
