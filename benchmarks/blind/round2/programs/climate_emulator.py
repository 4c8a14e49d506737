"""Emulates monthly temperature anomalies with a wide network; two processes, large effective batch."""
import contextlib
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

GRID = 1152
MICRO, PARTS = 24, 6
UPDATES = 20


def anomalies(rank, months=2400):
    g = torch.Generator().manual_seed(500 + rank)
    modes = torch.randn(20, GRID, generator=torch.Generator().manual_seed(1))
    amp = torch.cumsum(0.3 * torch.randn(months + 1, 20, generator=g), 0)
    amp = amp / amp.std()
    field = amp @ modes / 4 + 0.2 * torch.randn(months + 1, GRID, generator=g)
    return field[:-1], field[1:]


class Emulator(nn.Module):
    def __init__(self, width=2048):
        super().__init__()
        self.inp = nn.Linear(GRID, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, GRID)

    def forward(self, x):
        h = torch.relu(self.inp(x))
        return x + self.out(torch.relu(h + self.mid(h)))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DistributedDataParallel(Emulator())
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    now, later = anomalies(rank)
    g = torch.Generator().manual_seed(40 + rank)
    history = []
    for update in range(UPDATES):
        opt.zero_grad()
        shown = 0.0
        for part in range(PARTS):
            pick = torch.randint(0, len(now), (MICRO,), generator=g)
            loss = nn.functional.mse_loss(model(now[pick]), later[pick]) / PARTS
            loss.backward()
            shown += loss.item()
        opt.step()
        history.append(shown)
    both = torch.tensor(history[-5:])
    dist.all_reduce(both)
    if rank == 0:
        print(f"{UPDATES} updates, loss over the last five {both.mean().item() / dist.get_world_size():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
