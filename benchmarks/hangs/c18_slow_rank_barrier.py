"""Three ranks; before epoch 2 every rank unpacks its part, and the part of rank 2 takes 60 s longer.
The fast ranks wait at the barrier. torchrun, 3 ranks."""
import ctypes
import os
import signal
import time
import zlib

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def unpack(rank):
    blob = zlib.compress(np.arange(200_000, dtype=np.int32).tobytes())
    total = 0
    end = time.monotonic() + (61 if rank == 2 else 1)
    while time.monotonic() < end:
        total += int(np.frombuffer(zlib.decompress(blob), np.int32)[-1])
    return total


def epoch(model, opt, steps, gen, rank, number):
    world = dist.get_world_size()
    for step in range(1, steps + 1):
        x = torch.randn(16, 20, generator=gen)
        loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        flat = torch.cat([p.grad.flatten() for p in model.parameters()])
        dist.all_reduce(flat)
        for p, g in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
            p.grad.copy_(g.view_as(p) / world)
        opt.step()
        time.sleep(0.04)
        if rank == 0 and step % 50 == 0:
            print(f"epoch {number} step {step} loss {loss.item():.5f}", flush=True)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    gen = torch.Generator().manual_seed(rank)
    epoch(model, opt, 500, gen, rank, 1)
    unpack(rank)
    dist.barrier()
    epoch(model, opt, 500, gen, rank, 2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
