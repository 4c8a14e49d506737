"""Train a perceptron on recordings of a sensor, one small file each or all of them in one."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

LENGTH = 1000
CLASSES = 4


def make(folder: Path, count: int) -> None:
    """Write the recordings, each a file of its own, in folders of a thousand, and as one file."""
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=count)
    times = np.arange(LENGTH) / LENGTH
    together = np.empty((count, LENGTH), np.float32)
    for number, label in enumerate(labels):
        wave = np.sin(2 * np.pi * ((5 + 3 * label) * times + rng.uniform()))
        together[number] = wave + rng.normal(0, 1, LENGTH)
        path = folder / "files" / f"{number // 1000:03d}" / f"{number:06d}.f32"
        path.parent.mkdir(parents=True, exist_ok=True)
        together[number].tofile(path)
    np.save(folder / "together.npy", together)
    np.save(folder / "labels.npy", labels)


class Files(Dataset):
    """Recordings [LENGTH], each read from its own file when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted((folder / "files").glob("*/*.f32"))
        self.labels = np.load(folder / "labels.npy")

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(np.fromfile(self.paths[number], np.float32)), self.labels[number]


class Together(Dataset):
    """Recordings [LENGTH] out of one file that is mapped into memory."""

    def __init__(self, folder: Path) -> None:
        self.content = np.load(folder / "together.npy", mmap_mode="r")
        self.labels = np.load(folder / "labels.npy")

    def __len__(self) -> int:
        return len(self.content)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(self.content[number].copy()), self.labels[number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--recordings", type=int, default=20_000)
    parser.add_argument("--read", choices=["files", "together"], default="files")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    folder = options.data / f"sensor-{options.recordings}"
    if not (folder / "labels.npy").exists():
        make(folder, options.recordings)
    if not options.seconds:
        return
    loader = DataLoader(
        Files(folder) if options.read == "files" else Together(folder),
        batch_size=options.batch,
        shuffle=True,
        num_workers=options.workers,
        persistent_workers=options.workers > 0,
    )
    model = nn.Sequential(
        nn.Linear(LENGTH, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, CLASSES)
    )
    optimizer = torch.optim.AdamW(model.parameters())

    def train_step(waves: torch.Tensor, labels: torch.Tensor) -> float:
        optimizer.zero_grad()
        loss = cross_entropy(model(waves), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    steps, began_s = 0, time.monotonic()
    first_s = began_s
    while time.monotonic() - began_s < options.seconds:
        for waves, labels in loader:
            loss = train_step(waves, labels)
            if steps == 0:
                first_s = time.monotonic()
            steps += 1
            if time.monotonic() - began_s >= options.seconds:
                break
    elapsed_s = time.monotonic() - first_s
    print(f"{steps} steps, loss {loss:.3f}, {(steps - 1) / elapsed_s:.3f} steps/s")


if __name__ == "__main__":
    main()
