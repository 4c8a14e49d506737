"""Estimate water depth from raw sonar echoes, two processes, large effective batch.

    torchrun --standalone --nproc_per_node=2 programs/fjord_sonar_ddp.py
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ECHO, HIDDEN = 1024, 2048
MICRO, PARTS = 24, 8
UPDATES = 46


class Echoes:
    """An endless stream of simulated pings, different on each rank."""

    def __init__(self, rank):
        self.draw = torch.Generator().manual_seed(100 + rank)
        self.time = torch.arange(ECHO, dtype=torch.float32)

    def next(self):
        depth = torch.rand(MICRO, 2, generator=self.draw)
        floor = 80 + 800 * depth[:, :1]
        layer = floor * (0.3 + 0.4 * depth[:, 1:])
        ping = torch.exp(-((self.time - floor) / 9) ** 2)
        ping = ping + 0.5 * torch.exp(-((self.time - layer) / 14) ** 2)
        noise = torch.randn(MICRO, ECHO, generator=self.draw)
        return ping + 0.15 * noise, depth


class DepthNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(ECHO, HIDDEN), nn.GELU(),
            nn.Linear(HIDDEN, HIDDEN), nn.GELU(),
            nn.Linear(HIDDEN, 256), nn.GELU())
        self.depth = nn.Linear(256, 2)

    def forward(self, echo):
        return self.depth(self.body(echo))


def update(net, optimizer, stream):
    optimizer.zero_grad()
    total = 0.0
    for part in range(PARTS):
        echo, depth = stream.next()
        loss = nn.functional.mse_loss(net(echo), depth) / PARTS
        loss.backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return total


def evaluate(net, rank):
    stream = Echoes(50 + rank)
    error = torch.zeros(2)
    with torch.no_grad():
        for _ in range(4):
            echo, depth = stream.next()
            error += (net.module(echo) - depth).abs().mean(0)
    dist.all_reduce(error)
    return error / (4 * dist.get_world_size())


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(9)
    net = DistributedDataParallel(DepthNet())
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    stream = Echoes(rank)
    for number in range(UPDATES):
        loss = update(net, optimizer, stream)
        if rank == 0 and number % 9 == 0:
            print(f"update {number:3d}: loss {loss:.4f}")
    error = evaluate(net, rank)
    if rank == 0:
        print(f"mean error: floor {error[0]:.3f}, layer {error[1]:.3f} of the range")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
