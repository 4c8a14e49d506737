"""Denoiser for image patches on two ranks; gradients are accumulated locally, rank 0 keeps the checkpoint.

torchrun --standalone --nproc_per_node=2 ddp_patches.py
"""
import contextlib
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

KEEP = Path(os.environ.get("TMPDIR", ".")) / "patch_denoiser.pt"


def patches(n=640, side=32, seed=0):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:side, 0:side].astype(np.float32) / side
    f = rng.uniform(1, 5, (n, 2, 1, 1)).astype(np.float32)
    p = rng.uniform(0, 6, (n, 2, 1, 1)).astype(np.float32)
    return torch.from_numpy(np.sin(6.28 * f[:, :1] * xx + p[:, :1]) * np.cos(6.28 * f[:, 1:] * yy + p[:, 1:]))


class Denoiser(nn.Module):
    def __init__(self, width=48, depth=5):
        super().__init__()
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.body = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.GroupNorm(8, width) for _ in range(depth)])
        self.last = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x):
        h = self.first(x)
        for conv, norm in zip(self.body, self.norms):
            h = h + conv(torch.relu(norm(h)))
        return x - self.last(h)


def main(epochs=3, accumulate=2):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    data = TensorDataset(patches())
    held_out = patches(64, seed=1)
    sampler = DistributedSampler(data, shuffle=True, seed=4)
    loader = DataLoader(data, batch_size=16, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(Denoiser())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    noise = torch.Generator().manual_seed(30 + rank)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for i, (clean,) in enumerate(loader):
            last = (i + 1) % accumulate == 0
            with contextlib.nullcontext() if last else model.no_sync():
                dirty = clean + 0.4 * torch.randn(clean.shape, generator=noise)
                loss = (model(dirty) - clean).pow(2).mean() / accumulate
                loss.backward()
            if last:
                opt.step()
                opt.zero_grad()
        if rank == 0:
            with torch.no_grad():
                g = torch.Generator().manual_seed(77)
                dirty = held_out + 0.4 * torch.randn(held_out.shape, generator=g)
                error = (model.module(dirty) - held_out).pow(2).mean()
            torch.save(model.module.state_dict(), KEEP)
            print(f"epoch {epoch}: held-out error {error:.4f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
