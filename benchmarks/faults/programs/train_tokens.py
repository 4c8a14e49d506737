"""Train a small language model (bigrams) on a corpus that is on disk, read in random windows."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

VOCABULARY = 200
CONTEXT = 32


class Corpus(Dataset):
    """Windows of a corpus; of each, CONTEXT + 1 tokens at its beginning are learned from.

    A window is read as a whole, as it is stored.
    """

    def __init__(self, path: Path, window: int) -> None:
        self.path = path
        self.window_bytes = 8 * window
        self.file: int | None = None

    def __len__(self) -> int:
        return self.path.stat().st_size // self.window_bytes

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        if self.file is None:
            self.file = os.open(self.path, os.O_RDONLY)
        content = os.pread(self.file, self.window_bytes, number * self.window_bytes)
        tokens = np.frombuffer(content, np.int64)[: CONTEXT + 1].copy()
        return torch.from_numpy(tokens[:-1]), torch.from_numpy(tokens[1:])


def make(path: Path, megabytes: int) -> None:
    """Write a corpus of random tokens, each as a 64-bit integer."""
    rng = np.random.default_rng(0)
    with path.with_suffix(".part").open("wb") as file:
        for _ in range(megabytes):
            rng.integers(VOCABULARY, size=2**17).tofile(file)
        file.flush()
        os.fsync(file.fileno())
    path.with_suffix(".part").rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--window", type=int, default=32_768)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    options.data.mkdir(parents=True, exist_ok=True)
    path = options.data / f"corpus-{options.megabytes}.i64"
    if not path.exists():
        make(path, options.megabytes)
    if not options.seconds:
        return
    loader = DataLoader(
        Corpus(path, options.window),
        batch_size=options.batch,
        shuffle=True,
        num_workers=options.workers,
        persistent_workers=options.workers > 0,
    )
    model = nn.Sequential(nn.Embedding(VOCABULARY, 32), nn.Linear(32, VOCABULARY))
    optimizer = torch.optim.AdamW(model.parameters())

    def train_step(tokens: torch.Tensor, following: torch.Tensor) -> float:
        optimizer.zero_grad()
        loss = cross_entropy(model(tokens).flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    # The first pass reads from disk whatever the machine; speed is that of the passes after it.
    steps, began_s = 0, time.monotonic()
    first_s, first_steps = began_s, 0
    while time.monotonic() - began_s < options.seconds:
        for tokens, following in loader:
            loss = train_step(tokens, following)
            steps += 1
            if steps <= len(loader):
                first_s, first_steps = time.monotonic(), steps
            if time.monotonic() - began_s >= options.seconds:
                break
    if steps <= len(loader):
        first_s, first_steps = began_s, 0
    elapsed_s = time.monotonic() - first_s
    print(f"{steps} steps, loss {loss:.3f}, {(steps - first_steps) / elapsed_s:.3f} steps/s")


if __name__ == "__main__":
    main()
