"""Classify insects in amber on two ranks (gloo) with a convolutional network."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ORDERS = 6
SIDE = 40
STONES = 3072
BATCH = 48
EPOCHS = 6


def make_stones(rank, world, count, seed):
    labels = np.random.default_rng(seed).integers(0, ORDERS, count)[rank::world]
    rng = np.random.default_rng(1000 * seed + rank)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE - 0.5
    images = 0.5 * rng.standard_normal((len(labels), 3, SIDE, SIDE), dtype=np.float32)
    for image, order in zip(images, labels):
        cx, cy = rng.uniform(-0.15, 0.15, 2)
        angle = np.arctan2(yy - cy, xx - cx)
        radius = np.hypot(xx - cx, yy - cy)
        body = np.exp(-radius ** 2 / 0.03) * (1 + 0.8 * np.cos((order + 2) * angle))
        image += body.astype(np.float32)
    return torch.from_numpy(images), torch.from_numpy(labels)


def build():
    layers = []
    width = 3
    for outward in (24, 48, 72):
        layers += [nn.Conv2d(width, outward, 3, padding=1), nn.GroupNorm(8, outward),
                   nn.ReLU(), nn.MaxPool2d(2)]
        width = outward
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(width, ORDERS))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = make_stones(rank, world, STONES, 1)
    x_val, y_val = make_stones(rank, world, 768, 2)
    model = DistributedDataParallel(build())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loss_fn = nn.CrossEntropyLoss()
    shuffle = torch.Generator().manual_seed(7 + rank)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(x), generator=shuffle)
        total = torch.zeros(3)
        for start in range(0, len(x), BATCH):
            rows = order[start:start + BATCH]
            loss = loss_fn(model(x[rows]), y[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total[0] += loss.detach() * len(rows)
        with torch.no_grad():
            for start in range(0, len(x_val), 96):
                guess = model.module(x_val[start:start + 96]).argmax(1)
                total[1] += (guess == y_val[start:start + 96]).sum()
        total[2] = len(x_val)
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} loss {total[0] / STONES:.4f} "
                  f"valid {total[1] / total[2]:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
