"""Train a small network to tell the orientation of textures, from a file of packed images.

An image is packed much as PNG does it: each row as its difference from the row above, then zlib.
Under torchrun it trains on several ranks (Gloo).
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import conv2d, cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Sampler

CLASSES = 8
CROP = 32


def texture(rng: np.random.Generator, size: int, label: int) -> np.ndarray:
    """Return a striped image [size, size, 3]."""
    angle = math.pi * (label + rng.uniform(-0.3, 0.3)) / CLASSES
    rows, columns = np.mgrid[:size, :size].astype(np.float32)
    wave = np.sin((columns * math.cos(angle) + rows * math.sin(angle)) * rng.uniform(0.4, 0.8))
    image = 128 + 80 * wave[..., None] * rng.uniform(0.5, 1, 3) + rng.normal(0, 6, (size, size, 3))
    return image.clip(0, 255).astype(np.uint8)


def pack(image: np.ndarray) -> bytes:
    """Return an image as bytes."""
    above = np.vstack([np.zeros_like(image[:1]), image[:-1]])
    return zlib.compress((image - above).tobytes(), 1)


def unpack(content: bytes, size: int) -> np.ndarray:
    """Return the image [size, size, 3] that was packed."""
    rows = np.frombuffer(zlib.decompress(content), np.uint8).reshape(size, size, 3)
    return np.add.accumulate(rows, axis=0, dtype=np.uint8)


def make(path: Path, count: int, sizes: list[int]) -> None:
    """Write a file of images, and beside it where each begins, its size and its label."""
    rng = np.random.default_rng(0)
    index, at = [], 0
    with path.with_suffix(".part").open("wb") as file:
        for number in range(count):
            size = sizes[number % len(sizes)]
            label = int(rng.integers(CLASSES))
            content = pack(texture(rng, size, label))
            file.write(content)
            index.append((at, len(content), size, label))
            at += len(content)
    np.save(path.with_suffix(".npy"), np.array(index))
    path.with_suffix(".part").rename(path)


class Images(Dataset):
    """Crops of the images of a file, as tensors [3, CROP, CROP], with their labels."""

    def __init__(self, path: Path, *, smooth: bool) -> None:
        self.content = np.memmap(path, np.uint8, "r")
        self.index = np.load(path.with_suffix(".npy"))
        line = torch.exp(-(torch.linspace(-2, 2, 7) ** 2))
        self.kernel = (line / line.sum()).view(1, 1, 1, -1).repeat(3, 1, 1, 1) if smooth else None

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        at, length, size, label = self.index[number]
        image = unpack(self.content[at : at + length].tobytes(), size)
        if self.kernel is not None:
            pixels = torch.from_numpy(image).permute(2, 0, 1)[None].float()
            pixels = conv2d(pixels, self.kernel, padding="same", groups=3)
            image = conv2d(pixels, self.kernel.mT, padding="same", groups=3)[0]
            image = image.permute(1, 2, 0).numpy()
        top, left = torch.randint(0, size - CROP + 1, (2,)).tolist()
        crop = image[top : top + CROP, left : left + CROP].astype(np.float32)
        return torch.from_numpy(crop / 128 - 1).permute(2, 0, 1), int(label)


class Shard(Sampler):
    """This rank's part of the images, shuffled."""

    def __init__(self, count: int, *, rank: int, ranks: int, by_blocks: bool) -> None:
        length = count // ranks
        self.part = range(count)[rank::ranks][:length]
        if by_blocks:
            self.part = range(rank * length, rank * length + length)

    def __len__(self) -> int:
        return len(self.part)

    def __iter__(self) -> Iterator[int]:
        return iter([self.part[place] for place in torch.randperm(len(self.part)).tolist()])


def network(width: int, depth: int) -> nn.Module:
    """Return a convolutional network."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, CLASSES)]
    return nn.Sequential(*layers)


def set_threads(_: int, threads: int) -> None:
    """Set the number of threads of a loader's worker."""
    torch.set_num_threads(threads)


def options_of_command() -> argparse.Namespace:
    """Return what this program was called with."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--size", type=int, nargs="+", default=[320])
    parser.add_argument("--smooth", action="store_true")
    parser.add_argument("--blocks", action="store_true")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--worker-threads", type=int, default=1)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--cpu", type=int, nargs="*")
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    return parser.parse_args()


def main() -> None:
    options = options_of_command()
    if options.cpu:
        os.sched_setaffinity(0, options.cpu)
    torch.manual_seed(options.seed)
    options.data.mkdir(parents=True, exist_ok=True)
    sizes = sorted(set(options.size), key=options.size.index)
    name = "-".join(f"{size}x{options.size.count(size)}" for size in sizes)
    path = options.data / f"images-{options.images}-{name}.bin"
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    if not path.exists():
        make(path, options.images, options.size)
    if not options.seconds:
        return
    dataset = Images(path, smooth=options.smooth)
    loader = DataLoader(
        dataset,
        batch_size=options.batch,
        sampler=Shard(len(dataset), rank=rank, ranks=ranks, by_blocks=options.blocks),
        num_workers=options.workers,
        persistent_workers=options.persistent and options.workers > 0,
        worker_init_fn=functools.partial(set_threads, threads=options.worker_threads),
    )
    model = network(options.width, options.depth)
    if ranks > 1:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def train_step(images: torch.Tensor, labels: torch.Tensor) -> float:
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    steps, began_s, is_over = 0, time.monotonic(), False
    while not is_over:
        for images, labels in loader:
            loss = train_step(images, labels)
            if steps == 0:
                first_s = time.monotonic()
            steps += 1
            is_over = time.monotonic() - began_s > options.seconds
            if ranks > 1:
                wish = torch.tensor(float(is_over))
                dist.broadcast(wish, 0)
                is_over = bool(wish)
            if is_over:
                break
    elapsed_s = time.monotonic() - first_s
    if rank == 0:
        print(f"{steps} steps, loss {loss:.3f}, {(steps - 1) / elapsed_s:.3f} steps/s", flush=True)
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
