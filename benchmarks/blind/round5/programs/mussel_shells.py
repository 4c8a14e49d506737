"""Sort mussel shell photographs into four species with a small convolutional net.

The photographs (one channel, 48 x 48) lie in one flat file next to their labels.
"""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

WORK = os.path.join(os.environ.get("TMPDIR", "."), "mussel_shells")
COUNT, SIDE, SPECIES = 3200, 48, 4
EPOCHS = 9


def photograph(path):
    rng = np.random.default_rng(11)
    labels = rng.integers(0, SPECIES, COUNT)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE - 0.5
    shots = np.lib.format.open_memmap(path + ".npy", mode="w+", dtype=np.uint8,
                                      shape=(COUNT, SIDE, SIDE))
    for i, kind in enumerate(labels):
        turn = rng.normal(0, 0.4)
        a = xx * np.cos(turn) + yy * np.sin(turn)
        b = yy * np.cos(turn) - xx * np.sin(turn)
        shell = (a / (0.22 + 0.05 * kind)) ** 2 + (b / 0.33) ** 2 < 1
        rings = 0.5 + 0.5 * np.sin((6 + 3 * kind) * np.hypot(a, b + 0.3) * 6)
        shots[i] = np.clip(60 + 120 * shell * rings + rng.normal(0, 25, shell.shape), 0, 255)
    shots.flush()
    np.save(path + "_labels.npy", labels)


class Shells(Dataset):
    def __init__(self, path, first, last):
        self.path, self.first, self.last = path, first, last
        self.labels = np.load(path + "_labels.npy")[first:last]
        self.shots = None

    def __len__(self):
        return self.last - self.first

    def __getitem__(self, i):
        if self.shots is None:
            self.shots = np.load(self.path + ".npy", mmap_mode="r")
        image = torch.from_numpy(self.shots[self.first + i].astype(np.float32))
        return (image[None] - 110.0) / 60.0, int(self.labels[i])


def build():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3),
        nn.Flatten(), nn.Linear(48 * 9, SPECIES))


def main():
    os.makedirs(WORK, exist_ok=True)
    path = os.path.join(WORK, "shells")
    photograph(path)
    torch.manual_seed(5)
    train = Shells(path, 0, 2800)
    order = RandomSampler(train, generator=torch.Generator().manual_seed(8))
    loader = DataLoader(train, batch_size=64, sampler=order, num_workers=2,
                        multiprocessing_context="spawn")
    held = Shells(path, 2800, COUNT)
    test_x = torch.stack([held[i][0] for i in range(len(held))])
    test_y = torch.tensor([held[i][1] for i in range(len(held))])
    net = build()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for image, kind in loader:
            loss = nn.functional.cross_entropy(net(image), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(kind)
        with torch.no_grad():
            right = (net(test_x).argmax(1) == test_y).float().mean().item()
        print(f"epoch {epoch}: loss {total / len(train):.3f}, held-out accuracy {right:.3f}")


if __name__ == "__main__":
    main()
