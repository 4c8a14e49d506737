"""Deep-sets tagger for particle jets, two ranks. Jets have very different numbers of particles.

torchrun --standalone --nproc_per_node=2 ddp_jets.py
"""
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Jets:
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.kind = rng.integers(0, 3, n)
        size = np.clip(rng.lognormal(3.2 + 0.25 * self.kind, 0.8), 4, 400).astype(int)
        self.first = np.concatenate([[0], np.cumsum(size)])
        pt = rng.exponential(1.0, self.first[-1])
        spread = np.repeat(0.2 + 0.1 * self.kind, size)
        eta, phi = rng.normal(size=(2, self.first[-1])) * spread
        self.particles = np.stack([np.log(pt + 1e-3), eta, phi, np.hypot(eta, phi), pt * eta, pt * phi], 1).astype(np.float32)
        self.size = size

    def collate(self, rows):
        cloud = np.concatenate([self.particles[self.first[i]:self.first[i + 1]] for i in rows])
        owner = np.repeat(np.arange(len(rows)), self.size[rows])
        return torch.from_numpy(cloud), torch.from_numpy(owner), torch.from_numpy(self.kind[rows])


class Tagger(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.particle = nn.Sequential(nn.Linear(6, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
                                      nn.Linear(width, width), nn.GELU())
        self.jet = nn.Sequential(nn.Linear(width + 1, width), nn.GELU(), nn.Linear(width, 3))

    def forward(self, cloud, owner, n):
        h = self.particle(cloud)
        pooled = torch.zeros(n, h.shape[1]).index_add(0, owner, h)
        count = torch.bincount(owner, minlength=n).float()[:, None]
        return self.jet(torch.cat([pooled / count, count.log()], 1))


def plan_batches(jets, batch, epoch):
    """Global batches; inside a batch jets are ordered by size so that memory use is predictable."""
    order = np.random.default_rng(100 + epoch).permutation(len(jets.size))
    for i in range(0, len(order) - batch + 1, batch):
        rows = order[i:i + batch]
        yield rows[np.argsort(-jets.size[rows], kind="stable")]


def main():
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(3)
    jets = Jets(12_000, seed=1)
    model = DistributedDataParallel(Tagger())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    batch, per_rank = 256, 256 // world
    for epoch in range(3):
        loss_sum, steps = torch.zeros(()), 0
        for rows in plan_batches(jets, batch, epoch):
            mine = rows[rank * per_rank:(rank + 1) * per_rank]
            cloud, owner, kind = jets.collate(mine)
            loss = nn.functional.cross_entropy(model(cloud, owner, len(mine)), kind)
            opt.zero_grad()
            loss.backward()
            opt.step()
            loss_sum += loss.detach()
            steps += 1
        dist.all_reduce(loss_sum)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss_sum / (steps * world):.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
