"""Segments plant remains in X-ray slices of peat cores; two processes under torchrun."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CLASSES, SIDE, BATCH, STEPS = 24, 160, 8, 70


def slices(rng):
    pictures = np.empty((BATCH, 1, SIDE, SIDE), np.float32)
    classes = np.zeros((BATCH, SIDE, SIDE), np.int64)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    for index in range(BATCH):
        for kind in rng.integers(1, CLASSES, 9):
            row, col, size = rng.integers(0, SIDE, 2).tolist() + [rng.integers(8, 26)]
            classes[index][(yy - row) ** 2 + (xx - col) ** 2 < size**2] = kind
        pictures[index, 0] = classes[index] / CLASSES + rng.normal(0, 0.1, (SIDE, SIDE))
    return torch.from_numpy(pictures), torch.from_numpy(classes)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 24, 3, 2, padding=1), nn.ReLU(),
        nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(),
        nn.Upsample(scale_factor=2), nn.Conv2d(24, CLASSES, 1),
    )


def confusion(scores, classes):
    guess = scores.argmax(1).flatten()
    return torch.bincount(classes.flatten() * CLASSES + guess, minlength=CLASSES**2)


def count_everywhere(scores, classes, world):
    everything = [None] * world
    dist.all_gather_object(everything, (scores.detach(), classes))
    return sum(confusion(s, c) for s, c in everything)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(31)
    rng = np.random.default_rng(100 + rank)
    stock = [slices(rng) for _ in range(12)]
    model = DistributedDataParallel(network())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    table = torch.zeros(CLASSES**2, dtype=torch.int64)
    for step in range(STEPS):
        pictures, classes = stock[step % len(stock)]
        scores = model(pictures)
        loss = nn.functional.cross_entropy(scores, classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        table += count_everywhere(scores, classes, world)
        if step % 35 == 34:
            square = table.view(CLASSES, CLASSES).double()
            overlap = square.diag() / (square.sum(0) + square.sum(1) - square.diag())
            if rank == 0:
                print(f"step {step + 1}: loss {float(loss):.3f}, mean IoU {float(overlap.nanmean()):.3f}")
            table.zero_()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
