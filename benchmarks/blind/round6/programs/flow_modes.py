"""Leading modes of a large snapshot matrix, split by rows over the ranks (subspace iteration)."""
import torch
import torch.distributed as dist

POINTS, SNAPSHOTS, MODES = 16_000, 3_000, 20
ITERATIONS = 180


def local_rows(rank, rows):
    generator = torch.Generator().manual_seed(500 + rank)
    t = torch.linspace(0, 40, SNAPSHOTS)
    x = torch.linspace(rank, rank + 1, rows)[:, None]
    matrix = 0.5 * torch.randn(rows, SNAPSHOTS, generator=generator)
    for k in range(1, 13):
        matrix += (3.0 / k) * torch.sin(k * 3.1 * x) * torch.cos(k * 0.7 * t + k)
    return matrix - matrix.mean(dim=1, keepdim=True)


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, world = dist.get_rank(), dist.get_world_size()
    matrix = local_rows(rank, POINTS // world)
    generator = torch.Generator().manual_seed(1)
    basis, _ = torch.linalg.qr(torch.randn(SNAPSHOTS, MODES, generator=generator))
    previous = torch.zeros(MODES)
    for step in range(1, ITERATIONS + 1):
        projected = matrix.T @ (matrix @ basis)
        dist.all_reduce(projected)
        basis, r = torch.linalg.qr(projected)
        values = torch.sqrt(torch.abs(torch.diagonal(r)))
        if step % 45 == 0:
            change = float((values - previous).abs().max() / values.max())
            if rank == 0:
                print("step %3d  largest %.3f  change %.2e" % (step, float(values.max()), change))
        previous = values
    energy = (matrix @ basis).square().sum(dim=0)
    total = matrix.square().sum().reshape(1)
    dist.all_reduce(energy)
    dist.all_reduce(total)
    if rank == 0:
        share = (energy / total).tolist()
        print("energy in the first five modes", [round(s, 4) for s in share[:5]])
        print("energy captured %.4f" % sum(share))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
