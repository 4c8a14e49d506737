"""Advance of a monsoon rain front: moisture and heat on a periodic grid, cut into slabs by rank."""
import torch
import torch.distributed as dist

ROWS, COLS = 2048, 2048
STEPS = 240
DT = 0.08


def start_fields(rank, ranks):
    rows = ROWS // ranks
    y = torch.arange(rank * rows, (rank + 1) * rows, dtype=torch.float32)[:, None] / ROWS
    x = torch.arange(COLS, dtype=torch.float32)[None, :] / COLS
    moisture = 0.6 + 0.3 * torch.sin(6.2832 * (y + 0.1 * torch.sin(12.5664 * x)))
    heat = 0.5 + 0.4 * torch.cos(6.2832 * y) * torch.ones_like(x)
    return torch.stack([moisture, heat])


def neighbours(slab, rank, ranks):
    parts = [torch.empty_like(slab) for _ in range(ranks)]
    dist.all_gather(parts, slab)
    above = parts[(rank - 1) % ranks][:, -1:, :]
    below = parts[(rank + 1) % ranks][:, :1, :]
    return above, below


def advance(slab, above, below):
    north = torch.cat([above, slab[:, :-1]], dim=1)
    south = torch.cat([slab[:, 1:], below], dim=1)
    west = torch.roll(slab, 1, dims=2)
    east = torch.roll(slab, -1, dims=2)
    spread = north + south + west + east - 4.0 * slab
    drift = 0.5 * (north - south) + 0.2 * (west - east)
    moisture, heat = slab[0], slab[1]
    rain = torch.relu(moisture - 0.9 + 0.3 * heat)
    source = torch.stack([0.02 * (1.0 - moisture) - rain, 0.4 * rain - 0.03 * (heat - 0.5)])
    return slab + DT * (0.9 * spread + 0.6 * drift + source), rain


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    slab = start_fields(rank, ranks).contiguous()
    rained = torch.zeros_like(slab[0])
    for step in range(STEPS):
        above, below = neighbours(slab, rank, ranks)
        slab, rain = advance(slab, above, below)
        rained += DT * rain
        if step % 80 == 0:
            total = torch.stack([slab[0].double().mean(), rained.double().mean()])
            dist.all_reduce(total)
            if rank == 0:
                print(f"step {step}: moisture {total[0] / ranks:.5f}, rain {total[1] / ranks:.5f}", flush=True)
    total = torch.stack([slab[0].double().mean(), slab[1].double().mean(), rained.double().mean()])
    dist.all_reduce(total)
    if rank == 0:
        moisture, heat, rain = (total / ranks).tolist()
        print(f"end: moisture {moisture:.5f}, heat {heat:.5f}, rain {rain:.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
