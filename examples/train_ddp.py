"""Train a network on handwritten digits with many processes, through PyTorch's DDP.

Each process takes its share of every batch, so one process and many train the same network. They
use NCCL or RCCL on GPUs, and gloo on CPUs. The launcher sets the variables RANK, WORLD_SIZE,
LOCAL_RANK, MASTER_ADDR and MASTER_PORT for each process:

    srun teho launch -- python examples/train_ddp.py
    srun --ntasks-per-node=1 teho launch -- torchrun examples/train_ddp.py
    python examples/train_ddp.py
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

DATA = Path(__file__).parent / "data" / "digits.csv.gz"
LAYERS = (64, 512, 512, 10)
BATCH = 128
TRAIN = 1500
"""Images to learn from; the rest is kept for the test."""


def load() -> tuple[torch.Tensor, torch.Tensor]:
    """Return pixels (1797, 64), scaled to 0..1, and digits (1797,), in a random order."""
    table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    np.random.default_rng(0).shuffle(table)
    return torch.from_numpy(table[:, :64] / 16), torch.from_numpy(table[:, 64].astype(np.int64))


def build() -> nn.Module:
    """Return the network, the same in every process."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(LAYERS):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def batches(count: int) -> Iterator[torch.Tensor]:
    """Yield the images of each step, the same in every process, as their numbers (BATCH,)."""
    random = np.random.default_rng(0)
    for _ in range(count):
        yield torch.from_numpy(random.choice(TRAIN, BATCH, replace=False))


def share_of_loss(
    model: nn.Module, pixels: torch.Tensor, digits: torch.Tensor, rank: int, size: int
) -> torch.Tensor:
    """Return this process's share of a batch's loss: their mean is the loss of the whole batch."""
    scores = model(pixels[rank::size])
    total = nn.functional.cross_entropy(scores, digits[rank::size], reduction="sum")
    # Processes' gradients are averaged, and their shares may differ by an image.
    return total * size / len(digits)


def gradient(model: nn.Module) -> np.ndarray:
    """Return the gradient of all parameters, one after the other."""
    slopes = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return torch.cat([slope.flatten() for slope in slopes]).cpu().numpy()


def main() -> None:
    """Train, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument(
        "--gradients", type=Path, metavar="DIRECTORY", help="keep each process's last gradient"
    )
    options = parser.parse_args()
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cpu")
    if torch.cuda.is_available():
        # One GPU, if each process sees only its own.
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        device = torch.device("cuda", local_rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    model = build().to(device)
    if size > 1:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    pixels, digits = (tensor.to(device) for tensor in load())
    for batch in batches(options.steps):
        optimizer.zero_grad()
        share_of_loss(model, pixels[batch], digits[batch], rank, size).backward()
        optimizer.step()
    if options.gradients:
        np.save(options.gradients / f"{rank}.npy", gradient(model))
    if rank == 0:
        with torch.no_grad():
            right = model(pixels[TRAIN:]).argmax(dim=1) == digits[TRAIN:]
        of_all = "1 process" if size == 1 else f"{size} processes"
        print(f"{of_all} on {device.type}: test accuracy {right.float().mean():.3f}")
    if size > 1:
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
