"""Compress ocean colour spectra of a satellite swath with an autoencoder."""
import tempfile
from pathlib import Path

import h5py
import numpy as np
import torch
from torch import nn

PIXELS = 320_000
WAVELENGTHS = 160
BATCH = 1024
EPOCHS = 4


def write_swath(path, seed=37):
    rng = np.random.default_rng(seed)
    wave = np.linspace(400, 720, WAVELENGTHS, dtype=np.float32)
    centre = np.array([430, 470, 510, 560, 610, 665, 690], dtype=np.float32)
    basis = np.exp(-((wave[None] - centre[:, None]) / 28) ** 2)
    with h5py.File(path, "w") as file:
        store = file.create_dataset("reflectance", (PIXELS, WAVELENGTHS), dtype="f4")
        for start in range(0, PIXELS, 40_000):
            amount = rng.gamma(2.0, 0.5, (40_000, len(centre))).astype(np.float32)
            spectra = amount @ basis / (1 + amount.sum(axis=1, keepdims=True))
            noise = rng.standard_normal(spectra.shape, dtype=np.float32)
            store[start:start + 40_000] = spectra + 0.01 * noise


class SpectrumCoder(nn.Module):
    def __init__(self, code=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(WAVELENGTHS, 192), nn.GELU(),
                                     nn.Linear(192, 96), nn.GELU(), nn.Linear(96, code))
        self.decoder = nn.Sequential(nn.Linear(code, 96), nn.GELU(),
                                     nn.Linear(96, 192), nn.GELU(),
                                     nn.Linear(192, WAVELENGTHS))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "swath.h5"
        write_swath(path)
        with h5py.File(path, "r") as file:
            spectra = file["reflectance"][:]
    spectra -= spectra.mean(axis=0)
    spectra /= spectra.std(axis=0)
    spectra = torch.from_numpy(spectra)
    train, valid = spectra[:-20_000], spectra[-20_000:]
    model = SpectrumCoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        batches = torch.randperm(len(train)).split(BATCH)
        for rows in batches:
            x = train[rows]
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            error = nn.functional.mse_loss(model(valid), valid).item()
        print(f"epoch {epoch} train {total / len(batches):.4f} valid {error:.4f}")


if __name__ == "__main__":
    main()
