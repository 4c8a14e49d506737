"""Predict settlement of oyster larvae from water chemistry on two ranks (gloo)."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn

INPUTS = 24
WIDTH = 48
BLOCKS = 60
BATCH = 256
STEPS = 240


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + 0.1 * self.down(torch.relu(self.up(self.norm(x))))


class Settlement(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(INPUTS, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(BLOCKS)])
        self.leave = nn.Linear(WIDTH, 1)

    def forward(self, x):
        return self.leave(self.blocks(self.enter(x)))[:, 0]


def water(rng, count):
    x = rng.normal(size=(count, INPUTS)).astype(np.float32)
    y = np.sin(x[:, 0]) * x[:, 1] + 0.5 * np.abs(x[:, 2] - x[:, 3]) + 0.1 * rng.normal(size=count)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))


def average_gradients(net, world):
    for p in net.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
        p.grad /= world


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(44)
    net = Settlement()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    rng = np.random.default_rng(44 + rank)
    x, y = water(rng, 20000)
    running = 0.0
    for step in range(STEPS):
        pick = torch.from_numpy(rng.integers(0, len(x), size=BATCH))
        loss = nn.functional.mse_loss(net(x[pick]), y[pick])
        opt.zero_grad()
        loss.backward()
        average_gradients(net, world)
        opt.step()
        running += loss.item()
        if step % 40 == 39:
            if rank == 0:
                print(f"step {step + 1} error {running / 40:.4f}", flush=True)
            running = 0.0
    with torch.no_grad():
        held_x, held_y = water(np.random.default_rng(9), 2000)
        error = nn.functional.mse_loss(net(held_x), held_y).item()
    if rank == 0:
        print(f"held-out error {error:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
