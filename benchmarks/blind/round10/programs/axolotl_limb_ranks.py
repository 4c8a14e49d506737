"""Stage of limb regrowth in axolotls from gene panels; a deep residual MLP on two ranks.

Run: torchrun --standalone --nproc_per_node=2 axolotl_limb_ranks.py
"""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn

ANIMALS, GENES, STAGES = 16000, 40, 6
DEPTH, WIDTH = 60, 48
STEPS, BATCH = 600, 64


def panels(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ANIMALS, GENES)).astype(np.float32)
    drive = np.tanh(x[:, 0] + 0.5 * x[:, 1] * x[:, 2]) + 0.5 * x[:, 3]
    edges = np.quantile(drive, np.linspace(0, 1, STAGES + 1)[1:-1])
    return torch.from_numpy(x), torch.from_numpy(np.digitize(drive, edges))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)

    def forward(self, h):
        return h + 0.2 * torch.relu(self.lin(h))


class StageNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(GENES, WIDTH)
        self.blocks = nn.Sequential(*[Block(WIDTH) for _ in range(DEPTH)])
        self.out = nn.Linear(WIDTH, STAGES)

    def forward(self, x):
        return self.out(self.blocks(self.inp(x)))


def average_gradients(model, world):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(4)
    x, y = panels(41)
    mine = torch.arange(rank, ANIMALS - 2000, world)
    model = StageNet()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(50 + rank)
    mean_loss = 0.0
    for step in range(STEPS):
        pick = mine[torch.randint(0, len(mine), (BATCH,), generator=gen)]
        loss = nn.functional.cross_entropy(model(x[pick]), y[pick])
        opt.zero_grad()
        loss.backward()
        average_gradients(model, world)
        opt.step()
        mean_loss += loss.item()
        if rank == 0 and (step + 1) % 150 == 0:
            print(f"step {step + 1}  loss {mean_loss / 150:.4f}", flush=True)
            mean_loss = 0.0
    if rank == 0:
        with torch.no_grad():
            hit = (model(x[-2000:]).argmax(1) == y[-2000:]).float().mean().item()
        print(f"kept-back accuracy {hit:.3f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
