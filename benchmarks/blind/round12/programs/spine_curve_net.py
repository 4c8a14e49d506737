"""Regress the Cobb angle of spines from radiographs stored as PNG files."""
import os
import shutil
import tempfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_default_dtype(torch.float64)

PATIENTS = 450
EPOCHS = 5
SIDE = 64


def expose(folder, rng):
    yy, xx = np.mgrid[0:256, 0:256]
    angles = rng.uniform(5, 60, size=PATIENTS)
    grain = rng.normal(0, 12, size=(288, 288))
    for k, angle in enumerate(angles):
        middle = 128 + 0.9 * angle * np.sin(yy / 256 * np.pi * 2 + rng.uniform(0, 0.5))
        plate = 60 + 150 * np.exp(-((xx - middle) / 14.0) ** 2) * (0.7 + 0.3 * np.cos(yy / 5.0))
        r, c = rng.integers(0, 32, size=2)
        plate = plate + grain[r:r + 256, c:c + 256]
        Image.fromarray(plate.clip(0, 255).astype(np.uint8)).save(
            os.path.join(folder, f"patient_{k:04d}.png"), compress_level=1)
    return angles


class Radiographs(Dataset):
    def __init__(self, folder, angles):
        self.paths = [os.path.join(folder, f"patient_{k:04d}.png") for k in range(len(angles))]
        self.angles = torch.as_tensor(angles, dtype=torch.get_default_dtype()) / 60.0

    def read(self, path):
        with Image.open(path) as plate:
            small = plate.convert("F").resize((SIDE, SIDE), Image.Resampling.LANCZOS)
        pixels = np.asarray(small) / 255.0 - 0.4
        return torch.as_tensor(pixels, dtype=torch.get_default_dtype())[None]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        plate = self.read(self.paths[i])
        if torch.rand(()) < 0.5:
            plate = plate.flip(2)
        return plate, self.angles[i]


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 40, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(40, 40, 3, padding=1), nn.ReLU(),
        nn.Conv2d(40, 64, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64 * 16, 64), nn.ReLU(), nn.Linear(64, 1),
    )


def main():
    torch.manual_seed(60)
    folder = tempfile.mkdtemp(prefix="spines_")
    angles = expose(folder, np.random.default_rng(60))
    loader = DataLoader(Radiographs(folder, angles), batch_size=25, shuffle=True)
    net = network()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for plate, angle in loader:
            loss = nn.functional.mse_loss(net(plate)[:, 0], angle)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(angle)
        print(f"epoch {epoch} error {60 * (total / PATIENTS) ** 0.5:.2f} degrees")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
