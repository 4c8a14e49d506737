"""Cooling crust of a lava lake on two ranks (torch.distributed, gloo).

Each rank owns half of the rows of the lake; heat spreads between the cells
and is lost to the air where the crust is thin.
"""
import torch
import torch.distributed as dist

ROWS = 1400
COLS = 1400
STEPS = 500


def initial(rank, world):
    generator = torch.Generator().manual_seed(90)
    full = 900.0 + 200.0 * torch.rand(ROWS, COLS, generator=generator, dtype=torch.float64)
    full[ROWS // 3:ROWS // 3 + 80, 300:900] = 1350.0
    part = ROWS // world
    return full[rank * part:(rank + 1) * part].clone()


def neighbours(own, rank, world):
    parts = [torch.empty_like(own) for _ in range(world)]
    dist.all_gather(parts, own)
    above = parts[rank - 1][-1] if rank > 0 else own[0]
    below = parts[rank + 1][0] if rank < world - 1 else own[-1]
    return above, below


def step(own, crust, above, below):
    up = torch.cat([above[None], own[:-1]])
    down = torch.cat([own[1:], below[None]])
    lap = up + down - 4.0 * own
    lap[:, 1:] += own[:, :-1]
    lap[:, :-1] += own[:, 1:]
    lap[:, 0] += own[:, 0]
    lap[:, -1] += own[:, -1]
    loss = (own - 300.0) * 2e-3 / (1.0 + crust)
    crust = crust + 0.01 * (own < 1050.0)
    return own + 0.2 * lap - loss, crust


def summary(own, crust):
    sums = torch.stack([own.sum(), crust.sum(), (own > 1200.0).sum().double()])
    dist.all_reduce(sums)
    cells = ROWS * COLS
    return [float(v) / cells for v in sums]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    own = initial(rank, world)
    crust = torch.zeros_like(own)
    for number in range(1, STEPS + 1):
        above, below = neighbours(own, rank, world)
        own, crust = step(own, crust, above, below)
        if number % 100 == 0:
            heat, thick, hot = summary(own, crust)
            if rank == 0:
                print(f"step {number}: mean {heat:.2f} C, crust {thick:.4f} m, "
                      f"open {100 * hot:.3f} %")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
