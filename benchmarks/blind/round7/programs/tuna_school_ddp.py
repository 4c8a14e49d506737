"""Classify tuna schools from sonar descriptors, data-parallel over two ranks."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FEATURES, CLASSES, TRAIN, HELD_OUT = 256, 20, 11000, 28000
BATCH, EPOCHS = 200, 5


def descriptors(n, seed):
    centres = np.random.default_rng(0).normal(0, 1, (CLASSES, FEATURES))
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, n)
    x = 0.35 * centres[label] + rng.normal(0, 1, (n, FEATURES))
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(label)


def count_hits(net, x, y):
    net.eval()
    hits = 0
    with torch.no_grad():
        for start in range(0, len(x), 500):
            guess = net(x[start:start + 500]).argmax(1)
            hits += int((guess == y[start:start + 500]).sum())
    net.train()
    return hits


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    x, y = descriptors(TRAIN, 1)
    x, y = x[rank::world], y[rank::world]
    val_x, val_y = descriptors(HELD_OUT, 2)

    net = nn.Sequential(
        nn.Linear(FEATURES, 1024), nn.GELU(),
        nn.Linear(1024, 1024), nn.GELU(),
        nn.Linear(1024, CLASSES))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    for epoch in range(EPOCHS):
        order = torch.from_numpy(np.random.default_rng(epoch).permutation(len(x)))
        for start in range(0, len(x) - BATCH + 1, BATCH):
            rows = order[start:start + BATCH]
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            hits = count_hits(net, val_x, val_y)
            print(f"epoch {epoch}: held-out accuracy {hits / HELD_OUT:.4f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
