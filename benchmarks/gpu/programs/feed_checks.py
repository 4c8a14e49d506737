"""Check what `teho.feed` gives on a GPU. Without a GPU, check the same on the CPU.

python feed_checks.py

Prints JSON: for each check its name, what was found, and the error if something is wrong.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable
from itertools import islice

import torch
from feeding import BATCH, DEVICE, HAS_GPU, MEAN, STD, images_of
from torch.utils.data import Dataset

from teho.feed import resident
from teho.feed.order import shuffled
from teho.feed.room import free_host_bytes
from teho.units import format_bytes

SEED = 3
images, labels = images_of(50_000 if HAS_GPU else 2_000)
free_bytes = max(free_host_bytes(), torch.cuda.mem_get_info()[0] if HAS_GPU else 0)


class Rows(Dataset):
    """Images that are loaded one by one."""

    def __len__(self) -> int:
        return len(labels)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        return images[row], row


def order_of(batches: Iterable) -> torch.Tensor:
    """Return the numbers of the samples of an epoch. Each image must be on the GPU, and right."""
    found = []
    for some, rows in batches:
        assert some.device.type == rows.device.type == DEVICE.type, f"a batch is on {some.device}"
        assert some.dtype == torch.uint8, f"the images are {some.dtype}"
        found.append(rows.cpu())
        assert torch.equal(some.cpu(), images[found[-1]]), "images and labels are mixed"
    order = torch.cat(found)
    assert torch.equal(order.sort().values, labels), "samples were lost or came twice"
    return order


def order_on_the_cpu() -> torch.Tensor:
    feed = resident(labels, BATCH, shuffle=True, seed=SEED, device="cpu")
    return torch.cat(list(feed))


def checked(dataset: object, where: str, **options: float) -> str:
    """Check an epoch of `resident`, its order, and where the feed says that the data are."""
    feed = resident(dataset, BATCH, shuffle=True, seed=SEED, **options)
    assert torch.equal(order_of(feed), order_on_the_cpu()), "the order is not the order of the CPU"
    assert re.search(where, feed.how), feed.how
    return feed.how


def all_on_the_gpu() -> str:
    return checked((images, labels), "copied to cuda" if HAS_GPU else "on cpu")


def copied_from_the_node() -> str:
    where = "do not fit into .* on cuda.*: batches are copied" if HAS_GPU else "on cpu"
    return checked((images, labels), where, memory_share=1e-5)


def a_part_on_the_gpu() -> str:
    # Half of the data fit into the larger memory, and a part into the smaller one.
    share = 0.5 * images.nbytes / free_bytes
    return checked(Rows(), r"do not fit .* samples are there", memory_share=share, num_workers=0)


def nothing_on_the_gpu() -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        share = 0.05 * images.nbytes / free_bytes
        how = checked(Rows(), "not resident: .* do not fit", memory_share=share, num_workers=0)
    assert any("resident loads each batch" in str(one.message) for one in caught), "no warning"
    return how


def cropped_and_mirrored() -> str:
    feed = resident((images[:64], labels[:64]), 64, seed=SEED, crop_padding=4, flip=True)
    ((changed, _),) = feed
    assert (changed.device.type, changed.dtype) == (DEVICE.type, torch.uint8)
    padded = torch.nn.functional.pad(images[:64], (4, 4, 4, 4))
    found = []
    for image, result in zip(padded, changed.cpu(), strict=True):
        parts = image.unfold(1, 32, 1).unfold(2, 32, 1).permute(1, 2, 0, 3, 4)  # each crop
        same = torch.stack([parts, parts.flip(-1)]).eq(result).flatten(3).all(3).nonzero()
        assert len(same) == 1, f"an image is {len(same)} of the parts of its own image"
        found.append(tuple(same[0].tolist()))
    flips, tops, lefts = (set(some) for some in zip(*found, strict=True))
    assert flips == {0, 1}, "all images or none are mirrored"
    assert min(len(tops), len(lefts)) > 5, "the parts are at the same place"
    return f"{len(set(found))} different parts of 64 images"


def normalised() -> str:
    kinds = []
    feed = resident(
        images[:1000], 1000, mean=MEAN, std=STD, transform=lambda x: kinds.append(x.dtype) or x
    )
    (batch,) = feed
    size = format_bytes(images[:1000].nbytes)
    assert feed.how.startswith(f"{size} "), f"not kept in uint8: {feed.how}"
    assert batch.device.type == DEVICE.type
    assert [batch.dtype, *kinds] == [torch.float32] * 2
    worst = float((batch.cpu() - (images[:1000].float() / 255 - MEAN) / STD).abs().max())
    assert worst < 1e-5, f"the largest error is {worst}"
    return f"{feed.how}, largest error {worst:.1e}"


def same_order_on_each_device() -> str:
    counts = (5, 2**20 - 1, 2**20 + 5, *([2**24 + 5] if HAS_GPU else []))
    for count in counts:
        order = shuffled(count, 7, DEVICE)
        assert order.device.type == DEVICE.type
        assert torch.equal(order.cpu(), shuffled(count, 7)), f"{count} numbers differ"
    return ", ".join(f"{count:,}" for count in counts)


def continued() -> str:
    """Continue an epoch in its middle, with random changes."""

    def begun() -> object:
        changes = {"crop_padding": 4, "flip": True, "mean": MEAN, "std": STD}
        return resident((images, labels), BATCH, shuffle=True, seed=SEED, **changes)

    whole, first, second = list(begun()), begun(), begun()
    got = list(islice(first, 2))
    second.load_state_dict(first.state_dict())
    got += second
    for one, other in zip(got, whole, strict=True):
        assert torch.equal(one[0], other[0]), "other images"
        assert torch.equal(one[1], other[1]), "other labels"
    return f"2 + {len(got) - 2} batches"


CHECKS = {
    "all data on the GPU, in uint8": all_on_the_gpu,
    "batches copied from the node": copied_from_the_node,
    "a part of the data on the GPU": a_part_on_the_gpu,
    "no data on the GPU": nothing_on_the_gpu,
    "crops and mirrored images": cropped_and_mirrored,
    "normalised images": normalised,
    "the same order as on the CPU": same_order_on_each_device,
    "an epoch that is continued": continued,
}


def main() -> None:
    found = []
    for name, check in CHECKS.items():
        try:
            found.append({"name": name, "found": check(), "error": ""})
        except Exception as error:  # noqa: BLE001 - the other checks must still run
            found.append({"name": name, "found": "", "error": f"{type(error).__name__}: {error}"})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
