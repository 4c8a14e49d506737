"""Time epochs of `teho.feed` and of other feeds of a GPU: each batch ends in the GPU's memory.

python feeding.py CASE ROUNDS    CASE is `plain`, `changed` (cropped, mirrored and normalised), or
                                 `computing` (with work for the GPU in each step)

Prints JSON: for each feed the seconds of its epochs, and whether each sample came exactly once and
with its own label. The feeds take turns. The first epoch of each feed is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from teho.feed import loader, resident

HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if HAS_GPU else "cpu")
BATCH = 512
MEAN, STD = 0.5, 0.25
STEP_CYCLES, STEP_S = 700_000, 0.0004
"""Work of the GPU in a step: about 0.4 ms on an H200. A copy of a batch takes as long."""


def images_of(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images and their numbers."""
    torch.manual_seed(0)
    return torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8), torch.arange(count)


class Changed(Dataset):
    """Each sample is cropped, mirrored and normalised alone, as most programs do it."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        padded = torch.nn.functional.pad(self.images[number], (4, 4, 4, 4))
        left, top = torch.randint(0, 9, (2,)).tolist()
        image = padded[:, top : top + 32, left : left + 32]
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        return (image.float() / 255 - MEAN) / STD, self.labels[number]


class Moved:
    """The batches of a feed, each copied to the GPU."""

    def __init__(self, batches: Iterable) -> None:
        self._batches = batches

    def __iter__(self):
        for images, labels in self._batches:
            yield images.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True)


class Sliced:
    """What a user could write by hand: the whole set on the GPU, and rows of it in a new order."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self._images, self._labels = images.to(DEVICE), labels.to(DEVICE)

    def __iter__(self):
        for rows in torch.randperm(len(self._labels), device=DEVICE).split(BATCH):
            yield self._images[rows], self._labels[rows]


class Pinned:
    """What a user could write by hand if the set is too large for the GPU: all data are pinned."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self._parts = [pinned(images), pinned(labels)]

    def __iter__(self):
        for rows in torch.randperm(len(self._parts[0])).split(BATCH):
            yield [
                pinned(part.index_select(0, rows)).to(DEVICE, non_blocking=True)
                for part in self._parts
            ]


class Computing:
    """The batches of a feed, with work for the GPU after each batch."""

    def __init__(self, batches: Iterable) -> None:
        self._batches = batches

    def __iter__(self):
        for batch in self._batches:
            if HAS_GPU:
                torch.cuda._sleep(STEP_CYCLES)
            else:
                time.sleep(STEP_S)
            yield batch


def pinned(array: torch.Tensor) -> torch.Tensor:
    return array.pin_memory() if HAS_GPU else array


def workers(dataset: Dataset, count: int) -> Moved:
    more = {"persistent_workers": True} if count else {}
    return Moved(
        DataLoader(
            dataset,
            BATCH,
            shuffle=True,
            num_workers=count,
            pin_memory=count > 0 and HAS_GPU,
            **more,
        )
    )


def feeds_of(case: str, images: torch.Tensor, labels: torch.Tensor, count: int) -> dict:
    if case == "changed":
        changes = {"crop_padding": 4, "flip": True, "mean": MEAN, "std": STD}
        dataset: Dataset = Changed(images, labels)
        own = {"resident": resident((images, labels), BATCH, shuffle=True, **changes)}
    else:
        dataset = TensorDataset(images, labels)
        # A share so small that the data do not fit: batches are copied from the node's memory.
        copied = resident((images, labels), BATCH, shuffle=True, memory_share=1e-5)
        own = {
            "resident": resident((images, labels), BATCH, shuffle=True),
            "resident, from host memory": copied,
            "hand-written": Sliced(images, labels),
            "hand-written, pinned memory": Pinned(images, labels),
        }
        if case == "computing":
            return {name: Computing(feed) for name, feed in own.items()}
    return own | {
        "loader": Moved(loader(dataset, BATCH, shuffle=True)),
        "DataLoader": workers(dataset, 0),
        f"DataLoader, {count} workers": workers(dataset, count),
    }


def epoch(feed: Iterable) -> tuple[float, list[torch.Tensor]]:
    """Return the seconds of an epoch and its labels."""
    if HAS_GPU:
        torch.cuda.synchronize()
    began_s = time.perf_counter()
    seen = [labels for _, labels in feed]
    if HAS_GPU:
        torch.cuda.synchronize()
    return time.perf_counter() - began_s, seen


def main(case: str, rounds: int) -> None:
    samples, count = (20_000 if case == "changed" else 50_000, 8) if HAS_GPU else (2_000, 2)
    images, labels = images_of(samples)
    feeds = feeds_of(case, images, labels, count)
    seconds: dict[str, list[float]] = {name: [] for name in feeds}
    is_right = {}
    for number in range(rounds + 1):
        for name, feed in feeds.items():
            took_s, seen = epoch(feed)
            if number:
                seconds[name].append(took_s)
                continue
            found = torch.cat(seen).cpu()
            is_right[name] = bool(torch.equal(found.sort().values, labels))
            if case != "changed":
                for some, whose in feed:
                    is_right[name] &= torch.equal(some.cpu(), images[whose.cpu()])
    print(json.dumps({"seconds": seconds, "is_right": is_right, "samples": samples}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
