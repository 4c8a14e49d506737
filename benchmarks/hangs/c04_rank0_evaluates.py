"""DDP on 2 ranks; rank 0 alone evaluates for 50 s, rank 1 waits at the barrier. torchrun, 2 ranks."""
import ctypes
import os
import signal
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def train(model, opt, steps, gen, rank):
    for step in range(1, steps + 1):
        time.sleep(0.03)
        x = torch.randn(32, 24, generator=gen)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


@torch.no_grad()
def evaluate(net, seconds):
    gen = torch.Generator().manual_seed(99)
    total = n = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        x = torch.randn(256, 24, generator=gen)
        total += nn.functional.mse_loss(net(x), x.sum(1, keepdim=True)).item()
        n += 1
    return total / n


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(24, 96), nn.ReLU(), nn.Linear(96, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)
    for epoch in range(2):
        train(model, opt, 700, gen, rank)
        if epoch == 0:
            if rank == 0:
                print(f"validation loss {evaluate(model.module, 50):.4f}", flush=True)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
