"""Measure the ellipticity of galaxies in survey cut-outs with a CNN."""
import tempfile
from pathlib import Path

import h5py
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

N_GALAXIES = 3072
STAMP = 48
EPOCHS = 4
DRAWS = 768


def write_survey(path, rng):
    grid = np.arange(STAMP) - (STAMP - 1) / 2
    yy, xx = np.meshgrid(grid, grid, indexing="ij")
    with h5py.File(path, "w") as out:
        stamps = out.create_dataset(
            "stamps",
            (N_GALAXIES, STAMP, STAMP),
            dtype="f4",
            chunks=(192, STAMP, STAMP),
            compression="gzip",
        )
        shapes = np.empty((N_GALAXIES, 2), np.float32)
        for first in range(0, N_GALAXIES, 192):
            count = min(192, N_GALAXIES - first)
            e1, e2 = np.clip(rng.normal(0, 0.2, (2, count)), -0.6, 0.6)
            size = rng.uniform(3.0, 7.0, count)
            a, b, c = (v[:, None, None] for v in (1 - e1, 1 + e1, -2 * e2))
            r = np.sqrt(np.maximum(a * xx**2 + b * yy**2 + c * xx * yy, 0)) / size[:, None, None]
            block = 10.0 * np.exp(-r) + rng.normal(0, 0.3, (count, STAMP, STAMP))
            stamps[first : first + count] = block.astype(np.float32)
            shapes[first : first + count] = np.stack([e1, e2], axis=1)
        out["shapes"] = shapes


class Survey(Dataset):
    def __init__(self, path):
        file = h5py.File(path, "r")
        self.stamps = file["stamps"]
        self.shapes = file["shapes"][:]

    def __len__(self):
        return len(self.shapes)

    def __getitem__(self, index):
        stamp = torch.from_numpy(self.stamps[index])[None]
        shape = torch.from_numpy(self.shapes[index])
        if torch.rand(()) < 0.5:
            stamp, shape = stamp.flip(2), shape * torch.tensor([1.0, -1.0])
        return stamp / 10.0, shape


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Conv2d(32, 48, 3), nn.ReLU(), nn.Flatten(),
        nn.LazyLinear(64), nn.ReLU(), nn.Linear(64, 2),
    )


def main():
    torch.manual_seed(9)
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "survey.h5"
        write_survey(path, np.random.default_rng(9))
        survey = Survey(path)
        loader = DataLoader(survey, 32, sampler=RandomSampler(survey, num_samples=DRAWS))
        model = make_model()
        model(torch.zeros(1, 1, STAMP, STAMP))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(EPOCHS):
            total = 0.0
            for stamp, shape in loader:
                loss = nn.functional.mse_loss(model(stamp), shape)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item() * len(shape)
            print(f"epoch {epoch}  rms shape error {(total / DRAWS) ** 0.5:.4f}", flush=True)


if __name__ == "__main__":
    main()
