"""Salt intrusion in an estuary, strips of the grid on two ranks (torch.distributed, gloo)."""
import torch
import torch.distributed as dist

ROWS, COLS = 500, 2000          # per rank
STEPS = 800
SPREAD = 0.12


def tide(step):
    return 0.3 * torch.sin(torch.tensor(2 * torch.pi * step / 240.0, dtype=torch.float64)).item()


def edges(salt, rank, world):
    """The row above and the row below this strip."""
    strips = [torch.empty_like(salt) for _ in range(world)]
    dist.all_gather(strips, salt)
    above = strips[rank - 1][-1] if rank > 0 else salt[0]
    below = strips[rank + 1][0] if rank < world - 1 else salt[-1]
    return above, below


def advance(salt, above, below, flow):
    padded = torch.cat([above[None], salt, below[None]])
    north_south = padded[2:] + padded[:-2]
    east = torch.roll(salt, -1, 1)
    west = torch.roll(salt, 1, 1)
    west[:, 0] = 35.0
    east[:, -1] = 0.0
    fresh = north_south.add_(east).add_(west).sub_(salt, alpha=4.0).mul_(SPREAD).add_(salt)
    slope = west.sub_(east)
    fresh.add_(slope, alpha=0.5 * flow)
    return fresh.clamp_(0.0, 35.0)


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, world = dist.get_rank(), dist.get_world_size()
    x = torch.linspace(0, 1, COLS, dtype=torch.float64)
    y = torch.linspace(rank, rank + 1, ROWS, dtype=torch.float64)
    salt = 35.0 * torch.sigmoid(30.0 * (0.3 - x))[None, :] * (0.8 + 0.1 * y[:, None])

    for step in range(STEPS):
        above, below = edges(salt, rank, world)
        salt = advance(salt, above, below, tide(step))
        if (step + 1) % 200 == 0:
            load = torch.stack([salt.sum(), (salt > 2.0).sum().double()])
            dist.all_reduce(load)
            if rank == 0:
                print("step %d  mean salinity %.4f  brackish share %.4f"
                      % (step + 1, load[0] / (world * ROWS * COLS), load[1] / (world * ROWS * COLS)))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
