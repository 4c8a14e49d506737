"""Train a perceptron on generated vectors, on a GPU if there is one.

Each option is a way in which such a program may be written.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Batches(Dataset):
    """Whole batches of vectors [rows, width], and their targets."""

    def __init__(self, count: int, rows: int, width: int) -> None:
        self.vectors = [torch.randn(rows, width) for _ in range(min(count, 8))]
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        vectors = self.vectors[number % len(self.vectors)]
        return vectors, vectors.mean(1, keepdim=True)


class Perceptron(nn.Module):
    """Layers of one width; it may look at each layer's values, or add in many small steps."""

    def __init__(self, width: int, depth: int, *, looks: bool, pieces: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.last = nn.Linear(width, 1)
        self.looks = looks
        self.pieces = pieces
        self.means: list[float] = []

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            vectors = torch.relu(layer(vectors))
            if self.looks:
                self.means.append(vectors.mean().item())
                self.means.append(vectors.std().item())
                self.means.append(vectors.amax().item())
        for _ in range(self.pieces):
            vectors = vectors * 1.0001
        return self.last(vectors)


def batches(options: argparse.Namespace, device: torch.device) -> Iterator[list[torch.Tensor]]:
    """Yield batches, from a loader or from the device's own memory, without an end."""
    data = Batches(200, options.rows, options.width)
    if options.data == "device":
        kept = [[part.to(device) for part in data[number]] for number in range(8)]
        while True:
            yield from kept
    pin = options.pin and device.type == "cuda"
    loader = DataLoader(data, batch_size=None, pin_memory=pin, num_workers=options.workers)
    while True:
        for vectors, targets in loader:
            yield [part.to(device, non_blocking=pin) for part in (vectors, targets)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--data", choices=["loader", "device"], default="device")
    parser.add_argument("--pin", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--look", action="store_true", help="at the values of each layer")
    parser.add_argument("--pieces", type=int, default=0, help="small operations in each step")
    parser.add_argument("--graph", action="store_true", help="capture a step, and replay it")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--on", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    has_gpu = torch.cuda.is_available() and options.on == "gpu"
    device = torch.device("cuda" if has_gpu else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    model = Perceptron(options.width, options.depth, looks=options.look, pieces=options.pieces)
    model.to(device)
    if options.graph and has_gpu:
        sample = torch.randn(options.rows, options.width, device=device)
        model = torch.cuda.make_graphed_callables(model, (sample,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    steps, began_s = 0, time.monotonic()
    first_s = began_s
    for vectors, targets in batches(options, device):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(vectors), targets)
        loss.backward()
        optimizer.step()
        if steps % 50 == 0:  # so that the count of steps is that of the device
            last = loss.item()
            if steps == 0:
                first_s = time.monotonic()
        steps += 1
        if time.monotonic() - began_s >= options.seconds:
            break
    if has_gpu:
        torch.cuda.synchronize()
    elapsed_s = max(time.monotonic() - first_s, 1e-6)
    print(f"{steps} steps, loss {last:.3g}, {(steps - 1) / elapsed_s:.3f} steps/s")


if __name__ == "__main__":
    main()
