"""Train a perceptron on a table that fits in memory: measured spectra to their temperature."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

CHANNELS = 128


def spectra(count: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return black-body-like spectra [count, CHANNELS] and their temperatures [count, 1]."""
    rng = np.random.default_rng(seed)
    temperatures = rng.uniform(0.5, 2, (count, 1))
    frequency = np.linspace(0.2, 8, CHANNELS)
    intensity = frequency**3 / np.expm1(frequency / temperatures)
    return intensity + rng.normal(0, 0.05, intensity.shape), temperatures


def whole_batches(
    inputs: torch.Tensor, targets: torch.Tensor, size: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield shuffled batches, each cut out of the tensors at once."""
    for rows in torch.randperm(len(inputs)).split(size):
        yield inputs[rows], targets[rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--batches", choices=["loader", "indexed"], default="loader")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--save-every", type=int, default=0, metavar="STEPS")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    dtype = getattr(torch, options.dtype)
    inputs, targets = (torch.from_numpy(array).to(dtype) for array in spectra(options.rows))
    loader = DataLoader(
        TensorDataset(inputs, targets),
        batch_size=options.batch,
        shuffle=True,
        num_workers=options.workers,
        persistent_workers=options.workers > 0,
    )
    width = options.width
    model = nn.Sequential(
        nn.Linear(CHANNELS, width),
        nn.GELU(),
        nn.Linear(width, width),
        nn.GELU(),
        nn.Linear(width, 1),
    ).to(dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def train_step(rows: torch.Tensor, wanted: torch.Tensor) -> float:
        optimizer.zero_grad()
        loss = mse_loss(model(rows), wanted)
        loss.backward()
        optimizer.step()
        return loss.item()

    folder = tempfile.TemporaryDirectory(prefix="spectra-")
    checkpoint = Path(folder.name) / "last.pt"
    steps, began_s = 0, time.monotonic()
    first_s = began_s
    while time.monotonic() - began_s < options.seconds:
        batches = loader
        if options.batches == "indexed":
            batches = whole_batches(inputs, targets, options.batch)
        for rows, wanted in batches:
            loss = train_step(rows, wanted)
            if steps == 0:
                first_s = time.monotonic()
            steps += 1
            if options.save_every and steps % options.save_every == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(state, checkpoint)
            if time.monotonic() - began_s >= options.seconds:
                break
    elapsed_s = time.monotonic() - first_s
    print(f"{steps} steps, loss {loss:.4f}, {(steps - 1) / elapsed_s:.3f} steps/s")
    folder.cleanup()


if __name__ == "__main__":
    main()
