"""Morphology regression on galaxy cutouts stored in one HDF5 file."""
import os
import tempfile

import h5py
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 32
COUNT = 3072


def simulate(path):
    rng = np.random.default_rng(8)
    yy, xx = np.mgrid[-1:1:SIDE * 1j, -1:1:SIDE * 1j]
    with h5py.File(path, "w") as f:
        img = f.create_dataset("cutout", (COUNT, 2, SIDE, SIDE), "f4",
                               chunks=(256, 2, SIDE, SIDE), compression="gzip", compression_opts=1)
        tgt = f.create_dataset("params", (COUNT, 3), "f4")
        for lo in range(0, COUNT, 256):
            q = rng.uniform(0.3, 1.0, 256)
            pa = rng.uniform(0, np.pi, 256)
            re = rng.uniform(0.15, 0.5, 256)
            c, s = np.cos(pa)[:, None, None], np.sin(pa)[:, None, None]
            u, v = c * xx + s * yy, (-s * xx + c * yy) / q[:, None, None]
            base = np.exp(-np.hypot(u, v) / re[:, None, None])
            pair = np.stack([base, 0.7 * base ** 1.2], 1)
            noise = rng.normal(0, 0.02, pair.shape)
            img[lo:lo + 256] = np.round(pair + noise, 2)
            tgt[lo:lo + 256] = np.stack([q, re, np.cos(2 * pa)], 1)


class Cutouts(Dataset):
    def __init__(self, path):
        self.h5 = h5py.File(path, "r")
        self.img = self.h5["cutout"]
        self.tgt = self.h5["params"]

    def __len__(self):
        return COUNT

    def __getitem__(self, i):
        x = torch.from_numpy(self.img[i])
        return x, torch.from_numpy(self.tgt[i])


def network():
    return nn.Sequential(
        nn.Conv2d(2, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(48, 96, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(384, 64), nn.ReLU(), nn.Linear(64, 3))


def run(path, epochs):
    torch.manual_seed(0)
    net = network()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    loader = DataLoader(Cutouts(path), batch_size=64, shuffle=True, generator=torch.Generator().manual_seed(3))
    for _ in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(x)
    return total / COUNT


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as tmp:
        p = os.path.join(tmp, "cutouts.h5")
        simulate(p)
        print(f"mean squared error after training: {run(p, 2):.5f}")
