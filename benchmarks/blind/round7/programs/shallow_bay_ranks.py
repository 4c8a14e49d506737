"""Storm surge in a bay: shallow-water equations on two ranks, each with half of the rows."""
import torch
import torch.distributed as dist

ROWS, COLS = 1280, 1280
STEPS = 700
DX, DT, G = 200.0, 4.0, 9.81
CORIOLIS, FRICTION = 1.1e-4, 2.0e-5


def bathymetry(first, count):
    y = torch.arange(first, first + count, dtype=torch.float32)[:, None] / ROWS
    x = torch.arange(COLS, dtype=torch.float32)[None, :] / COLS
    return 12.0 + 30.0 * torch.exp(-((x - 0.3) ** 2 + (y - 0.5) ** 2) / 0.08)


def with_neighbours(field, rank, world):
    """The rows of this rank with one more row on either side; the shore repeats its last row."""
    parts = [torch.empty_like(field) for _ in range(world)]
    dist.all_gather(parts, field)
    whole = torch.cat(parts)
    first = rank * len(field)
    last = first + len(field)
    above = whole[first - 1:first] if rank > 0 else field[:1]
    below = whole[last:last + 1] if rank < world - 1 else field[-1:]
    return torch.cat([above, field, below])


def wind_stress(step, mask):
    """The storm passes in the first half of the run."""
    strength = 1.5e-5 * max(0.0, 1.0 - abs(step - STEPS / 4) / (STEPS / 4))
    return strength * mask


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    rows = ROWS // world
    depth = bathymetry(rank * rows, rows)
    mask = torch.ones(rows, COLS)
    mask[:, -40:] = 0.0
    h = torch.zeros(rows, COLS)
    u = torch.zeros(rows, COLS)
    v = torch.zeros(rows, COLS)
    highest = torch.zeros(rows, COLS)

    for step in range(STEPS):
        padded_h = with_neighbours(h, rank, world)
        slope_x = torch.zeros_like(h)
        slope_x[:, :-1] = (h[:, 1:] - h[:, :-1]) / DX
        slope_y = (padded_h[2:] - padded_h[1:-1]) / DX

        padded_u = with_neighbours(u, rank, world)
        u_at_v = 0.5 * (padded_u[1:-1] + padded_u[2:])
        stress = wind_stress(step, mask)
        u_new = u + DT * (-G * slope_x + CORIOLIS * v - FRICTION * u + stress)
        v_new = v + DT * (-G * slope_y - CORIOLIS * u_at_v - FRICTION * v)
        u_new[:, -1] = 0.0
        if rank == world - 1:
            v_new[-1] = 0.0
        u, v = u_new, v_new

        padded_v = with_neighbours(v, rank, world)
        inflow_y = padded_v[:-2].clone()
        if rank == 0:
            inflow_y[0] = 0.0
        inflow_x = torch.zeros_like(u)
        inflow_x[:, 1:] = u[:, :-1]
        h = h - DT / DX * depth * (u - inflow_x + v - inflow_y)
        torch.maximum(highest, h, out=highest)

    result = torch.stack([highest.max(), -h.abs().mean()])
    dist.all_reduce(result, op=dist.ReduceOp.MAX)
    if rank == 0:
        print("steps", STEPS, "ranks", world)
        print("highest surge %.4f m" % float(result[0]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
