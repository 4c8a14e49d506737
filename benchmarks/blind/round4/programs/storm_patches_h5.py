"""Classify storm types from radar patches kept in an HDF5 archive."""
import os
import tempfile

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

SIDE, FIELDS, PATCHES = 48, 4, 768
STORMS = 4
EPOCHS = 4


def write_archive(path):
    rng = np.random.default_rng(52)
    kind = rng.integers(0, STORMS, PATCHES)
    line = np.linspace(-1, 1, SIDE, dtype=np.float32)
    yy, xx = np.meshgrid(line, line, indexing="ij")
    patches = np.empty((PATCHES, SIDE, SIDE, FIELDS), np.float32)
    for i, k in enumerate(kind):
        shape = np.exp(-((xx - 0.3 * rng.normal()) ** 2 * (1 + k) + (yy - 0.3 * rng.normal()) ** 2 * 3))
        echo = shape[..., None] * np.array([1.0, 0.4, -0.6, 0.2 * k], np.float32)
        patches[i] = echo + 0.3 * rng.standard_normal((SIDE, SIDE, FIELDS))
    with h5py.File(path, "w") as f:
        # radar delivers half-unit steps
        f.create_dataset("patches", data=np.round(patches * 16) / 16, compression="gzip", chunks=(48, SIDE, SIDE, FIELDS))
        f.create_dataset("kind", data=kind)


class StormPatches(Dataset):
    def __init__(self, path):
        self.path = path
        self.file = None
        with h5py.File(path) as f:
            self.kind = f["kind"][:]

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        patch = torch.from_numpy(self.file["patches"][i])
        return patch.permute(2, 0, 1).contiguous(), int(self.kind[i])


class EpochOrder(Sampler):
    def __init__(self, ids, seed):
        self.ids, self.rng = np.asarray(ids), np.random.default_rng(seed)

    def __len__(self):
        return len(self.ids)

    def __iter__(self):
        return iter(self.rng.permutation(self.ids).tolist())


def storm_net():
    return nn.Sequential(
        nn.Conv2d(FIELDS, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(48, STORMS),
    )


def main():
    torch.manual_seed(30)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "storms.h5")
        write_archive(path)
        data = StormPatches(path)
        # the HDF5 library must not be forked, so the workers are spawned
        loader = DataLoader(
            data, batch_size=32, sampler=EpochOrder(range(PATCHES), 31),
            num_workers=2, multiprocessing_context="spawn",
        )
        net = storm_net()
        opt = torch.optim.Adam(net.parameters(), lr=2e-3)
        for epoch in range(EPOCHS):
            total, right = 0.0, 0
            for x, y in loader:
                out = net(x)
                loss = F.cross_entropy(out, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
                right += (out.argmax(1) == y).sum().item()
            print(f"epoch {epoch}: loss {total / len(loader):.2f}, accuracy {right / PATCHES:.2f}", flush=True)


if __name__ == "__main__":
    main()
