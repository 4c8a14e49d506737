"""Train a small PyTorch network on digits that a slow disk gives one by one.

Each read waits 2 ms, as a file of its own does on a busy shared file system: the disk here is
simulated by that pause, the training is real. Three ways to feed it:

    teho run -- python examples/feed_digits.py                  # the training loop reads
    teho run -- python examples/feed_digits.py --workers 2      # two processes read ahead
    teho run -- python examples/feed_digits.py --preload        # read once, then keep in memory
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, TensorDataset

DATA = Path(__file__).parent / "data" / "digits.csv.gz"
READ_S = 0.002


class Digits(Dataset):
    """Images (1, 8, 8), scaled to 0..1, and which digit each shows."""

    def __init__(self) -> None:
        """Keep all where the slow disk would have them."""
        table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
        self.images = torch.from_numpy(table[:, :64] / 16).reshape(-1, 1, 8, 8)
        self.labels = torch.from_numpy(table[:, 64]).long()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.labels)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Read one."""
        time.sleep(READ_S)
        return self.images[number], self.labels[number]


def train(loader: DataLoader, epochs: int) -> float:
    """Return the last loss."""
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 64, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
    return loss.item()


def main() -> None:
    """Feed it as asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--preload", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the network is too small for more
    digits = Digits()
    if options.preload:
        everything = [digits[number] for number in range(len(digits))]
        images, labels = zip(*everything, strict=True)
        digits = TensorDataset(torch.stack(images), torch.stack(labels))
    loader = DataLoader(digits, batch_size=32, shuffle=True, num_workers=options.workers,
                        persistent_workers=options.workers > 0)  # fmt: skip
    print(f"loss {train(loader, options.epochs):.4f}")


if __name__ == "__main__":
    main()
