"""Denoising autoencoder for single-cell expression profiles on two workers.

torchrun --standalone --nproc_per_node=2 expr_denoise_ddp.py
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

GENES = 2000
MICRO = 32
ACCUM = 8
UPDATES = 42

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def simulate_cells(rank, count):
    shared = torch.Generator().manual_seed(100)
    programs = torch.rand(24, GENES, generator=shared) ** 4
    own = torch.Generator().manual_seed(500 + rank)
    usage = torch.rand(count, 24, generator=own) ** 3
    return torch.log1p(torch.poisson(4.0 * (usage @ programs), generator=own))


class Denoiser(nn.Module):
    def __init__(self, hidden=1024, code=256):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(GENES, hidden), nn.ELU(), nn.Linear(hidden, code))
        self.decode = nn.Sequential(nn.ELU(), nn.Linear(code, hidden), nn.ELU(), nn.Linear(hidden, GENES))

    def forward(self, x):
        return self.decode(self.encode(x))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(9)
    model = DistributedDataParallel(Denoiser())
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    cells = simulate_cells(rank, 4000)
    draw = torch.Generator().manual_seed(40 + rank)

    for update in range(UPDATES):
        opt.zero_grad()
        running = torch.zeros(1)
        for micro in range(ACCUM):
            x = cells[torch.randint(len(cells), (MICRO,), generator=draw)]
            keep = torch.rand(x.shape, generator=draw) > 0.2
            loss = F.mse_loss(model(x * keep), x) / ACCUM
            loss.backward()
            running += loss.detach()
        opt.step()
        if update % 10 == 0 or update == UPDATES - 1:
            dist.all_reduce(running)
            if rank == 0:
                print(f"update {update:3d}: reconstruction error {running.item() / dist.get_world_size():.4f}", flush=True)

    with torch.no_grad():
        probe = cells[:256]
        err = F.mse_loss(model.module(probe), probe)
    dist.all_reduce(err)
    if rank == 0:
        print(f"clean-profile error {err.item() / dist.get_world_size():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
