"""Shallow basin waves on a grid that is split by rows over the ranks."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

NX, NY = 2400, 1600
STEPS = 650
C2 = 0.2


def initial(rank, rows):
    x = torch.arange(rank * rows, (rank + 1) * rows, dtype=torch.float32)[:, None]
    y = torch.arange(NY, dtype=torch.float32)[None, :]
    bump = torch.exp(-((x - 1100) ** 2 + (y - 500) ** 2) / 800.0)
    return bump + 0.5 * torch.exp(-((x - 1500) ** 2 + (y - 1100) ** 2) / 1500.0)


def bordered(u, rank, world):
    rows = u.shape[0]
    parts = [torch.empty_like(u) for _ in range(world)]
    dist.all_gather(parts, u)
    basin = F.pad(torch.cat(parts), (1, 1, 1, 1))
    return basin[rank * rows:(rank + 1) * rows + 2]


def advance(u, before, damping, rank, world):
    p = bordered(u, rank, world)
    lap = p[:-2, 1:-1] + p[2:, 1:-1]
    lap += p[1:-1, :-2]
    lap += p[1:-1, 2:]
    lap.sub_(u, alpha=4.0)
    nxt = (2.0 * u).sub_(before).add_(lap, alpha=C2)
    return nxt.mul_(damping)


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, world = dist.get_rank(), dist.get_world_size()
    rows = NX // world
    u = initial(rank, rows)
    before = u.clone()
    edge = torch.minimum(torch.arange(NY), NY - 1 - torch.arange(NY)).float()
    damping = (1.0 - 0.02 * torch.exp(-edge / 12.0))[None, :]
    for step in range(1, STEPS + 1):
        u, before = advance(u, before, damping, rank, world), u
        if step % 130 == 0:
            energy = torch.stack([(u * u).sum(), u.abs().max()])
            gathered = [torch.empty_like(energy) for _ in range(world)]
            dist.all_gather(gathered, energy)
            if rank == 0:
                total = sum(float(g[0]) for g in gathered)
                print("step %4d  energy %.4f  crest %.5f" % (step, total, max(float(g[1]) for g in gathered)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
