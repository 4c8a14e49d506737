"""Measure quasar emission lines with a small net on survey spectra."""
import os
import tempfile

import h5py
import numpy as np
import torch
from torch import nn

QUASARS = 40000
PIXELS = 1000
EPOCHS = 7
BATCH = 250


def survey(path, rng):
    grid = np.arange(PIXELS, dtype=np.float32)
    shift = rng.uniform(200, 800, size=QUASARS).astype(np.float32)
    noise = rng.normal(0, 0.5, size=(2000, PIXELS)).astype(np.float32)
    with h5py.File(path, "w") as store:
        flux = store.create_dataset("flux", (QUASARS, PIXELS), dtype="f4")
        for k in range(0, QUASARS, 2000):
            part = np.exp(-((grid[None] - shift[k:k + 2000, None]) / 25.0) ** 2)
            flux[k:k + 2000] = part + np.roll(noise, k // 200, axis=1)
        store["shift"] = shift


def load(path):
    with h5py.File(path, "r") as store:
        flux, shift = store["flux"][:], store["shift"][:]
    flux -= flux.mean(axis=1, keepdims=True)
    flux /= flux.std(axis=1, keepdims=True)
    return torch.from_numpy(flux), torch.from_numpy((shift - 500.0) / 300.0)


def main():
    torch.manual_seed(73)
    with tempfile.TemporaryDirectory(prefix="quasars_") as folder:
        path = os.path.join(folder, "survey.h5")
        survey(path, np.random.default_rng(73))
        flux, shift = load(path)
    net = nn.Sequential(nn.Linear(PIXELS, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                        nn.Linear(256, 1))
    opt = torch.optim.Adam(net.parameters(), 5e-4)
    fit_count = QUASARS - 4000
    for epoch in range(EPOCHS):
        order = torch.randperm(fit_count)
        total = 0.0
        for start in range(0, fit_count, BATCH):
            pick = order[start:start + BATCH]
            loss = nn.functional.mse_loss(net(flux[pick])[:, 0], shift[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(pick)
        with torch.no_grad():
            error = (net(flux[fit_count:])[:, 0] - shift[fit_count:]).abs().mean()
        print(f"epoch {epoch} loss {total / fit_count:.5f} held-out {300 * error:.2f} pixels")


if __name__ == "__main__":
    main()
