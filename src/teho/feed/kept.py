"""Copies a dataset to a device, or as much of it as fits."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import torch

from teho.feed.arrays import Arrays, arrays_of
from teho.feed.loading import loader
from teho.feed.probing import measured
from teho.feed.progress import progress
from teho.feed.room import free_host_bytes
from teho.feed.streams import is_stream
from teho.feed.tree import flat, mapped
from teho.units import format_bytes

__all__ = ["Kept", "Room", "collated", "is_on", "keep"]

_LEAST_SHARE = 0.1
"""If less of the data fits, a copy of this part would save too little."""
_LOADED_AT_ONCE = 256
_PART_BYTES = 64 * 1024**2
"""Size of the parts in which a stream is kept while it is read. The C library gives memory of this
size back to the system when a part is freed."""


class Room:
    """The memory that data may fill.

    Args:
        device: of the batches.
        share: of the free memory.
    """

    def __init__(self, device: Any, share: float) -> None:
        self.device, self._share = device, share

    @property
    def device_bytes(self) -> int:
        """Memory of the device, in bytes."""
        if self.device.type == "cpu":
            return self.host_bytes
        module = getattr(torch, self.device.type)
        # Memory that PyTorch has reserved but does not use is free for it too.
        unused = module.memory_reserved(self.device) - module.memory_allocated(self.device)
        return int(self._share * (module.mem_get_info(self.device)[0] + unused))

    @property
    def host_bytes(self) -> int:
        """Memory of the node, in bytes."""
        return int(self._share * free_host_bytes())


def is_on(tensor: Any, device: Any) -> bool:
    """Return whether a tensor is on a device; `cuda` is any GPU, and `cuda:1` only this one."""
    there = tensor.device
    return bool(there.type == device.type and device.index in {None, there.index})


class Kept(NamedTuple):
    """A dataset in memory, or a part of it."""

    arrays: Arrays
    """The samples from number 0 on."""
    device: Any
    """Of the batches. If the arrays are elsewhere, each batch is copied."""
    how: str
    """In words: which memory has the data."""
    samples: int
    """Number of samples of the whole dataset."""
    rest: Any = None
    """The dataset, if samples that are not in the arrays are loaded from it."""
    num_workers: int | None = None
    """For loading these."""


def keep(dataset: Any, room: Room, num_workers: int | None) -> Kept | str:
    """Copy a dataset to the device; a text says why this is not possible.

    Args:
        dataset: as in `resident`.
        room: the memory for it.
        num_workers: for a dataset that must be loaded first.
    """
    arrays = arrays_of(dataset)
    if arrays:
        return _kept_arrays(arrays, room)
    return _collected(dataset, room) if is_stream(dataset) else _loaded(dataset, room, num_workers)


def _kept_arrays(arrays: Arrays, room: Room) -> Kept:
    """Copy arrays to the device if they fit."""
    device, size = room.device, arrays.samples * arrays.sample_bytes
    leaves = arrays.leaves
    if arrays.indices is not None:
        leaves = [leaf.index_select(0, arrays.indices) for leaf in leaves]
    if all(is_on(leaf, device) for leaf in leaves):
        how = f"{format_bytes(size)} on {device}"
    elif size <= room.device_bytes:
        how = f"{format_bytes(size)} copied to {device}"
        leaves = [leaf.to(device) for leaf in leaves]
    else:
        free = format_bytes(room.device_bytes)
        how = f"{format_bytes(size)} do not fit into {free} on {device}: batches are copied"
    return Kept(Arrays(leaves, arrays.rebuild), device, how, arrays.samples)


def _loaded(dataset: Any, room: Room, num_workers: int | None) -> Kept | str:
    """Load a dataset into memory; a text says why this is not possible."""
    total = len(dataset)
    if not total:
        return "the dataset is empty"
    found = measured(dataset, 1, torch.multiprocessing.get_context())
    if found is None:
        return "it is not known whether the samples are the same each time: loading some failed"
    if not found.is_repeatable:
        return "the samples are not the same each time. Make random changes with `transform`"
    batches = iter(
        loader(
            dataset, _LOADED_AT_ONCE, num_workers=num_workers, collate_fn=_collated,
            pin_memory=False, rank=0, world_size=1,
        )
    )  # fmt: skip
    first, rebuild = flat(next(batches))
    if isinstance(first[0], _NoBatch):
        return first[0].why
    kinds = sorted({type(leaf).__name__ for leaf in first if not isinstance(leaf, torch.Tensor)})
    if kinds:
        return f"the samples have parts that are not numbers ({', '.join(kinds)})"
    sample_bytes = sum(leaf.numel() * leaf.element_size() for leaf in first) / len(first[0])
    chosen = _place_for(total, sample_bytes, room)
    if isinstance(chosen, str):
        return chosen
    where, count, how = chosen
    kept = [torch.empty((count, *leaf.shape[1:]), dtype=leaf.dtype, device=where) for leaf in first]
    if why := _fill(kept, first, batches):
        return why
    rest = dataset if count < total else None
    return Kept(Arrays(kept, rebuild), room.device, how, total, rest, num_workers)


class _NoBatch:
    """Samples that cannot be one array."""

    def __init__(self, samples: list[Any]) -> None:
        shapes = {
            str([list(getattr(leaf, "shape", ())) for leaf in flat(one)[0]]) for one in samples
        }
        self.why = "the samples are of types that cannot be one array"
        if len(shapes) > 1:
            self.why = "the samples have different shapes"


def _collated(samples: list[Any]) -> Any:
    try:
        return torch.utils.data.default_collate(samples)
    except (RuntimeError, TypeError):
        return _NoBatch(samples)


def _place_for(total: int, sample_bytes: float, room: Room) -> tuple[Any, int, str] | str:
    """Return the device for a dataset, the number of samples there, and both in words."""
    need, free, device = round(total * sample_bytes), room.device_bytes, room.device
    if need <= free:
        return device, total, f"{format_bytes(need)} on {device}"
    how = f"{format_bytes(need)} do not fit into {format_bytes(free)} on {device}"
    if device.type != "cpu" and need <= room.host_bytes:
        return "cpu", total, f"{how}: batches are copied"
    if free < _LEAST_SHARE * need:
        return how
    count = int(free / sample_bytes)
    return device, count, f"{how}: {count:,} of {total:,} samples are there"


def _fill(kept: list[Any], first: list[Any], batches: Iterator[Any]) -> str:
    """Copy batches into arrays until these are full; return why this is not possible."""
    filled, count, leaves = 0, len(kept[0]), first
    with progress("loading the dataset", count) as line:
        while True:
            if isinstance(leaves[0], _NoBatch):
                return leaves[0].why
            some = min(len(leaves[0]), count - filled)
            for array, leaf in zip(kept, leaves, strict=True):
                if leaf.shape[1:] != array.shape[1:]:
                    return "the samples have different shapes"
                array[filled : filled + some].copy_(leaf[:some])
            filled += some
            line(filled)
            if filled == count:
                return ""
            leaves = flat(next(batches))[0]


def _collected(dataset: Any, room: Room) -> Kept | str:
    """Read a dataset that has only `__iter__`, such as one of tf.data, to its end."""
    parts: deque[list[Any]] = deque()
    samples: list[list[Any]] = []
    size, most, shapes = 0, room.host_bytes, None
    for sample in dataset:
        leaves, rebuild = flat(sample)
        try:
            tensors = [torch.as_tensor(_numbers(leaf)) for leaf in leaves]
        except (TypeError, ValueError, RuntimeError) as error:
            return f"the samples have parts that are not numbers ({error})"
        size += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        if size > most:
            return f"the samples need more than {format_bytes(most)}"
        shapes, before = [tensor.shape for tensor in tensors], shapes
        if shapes != (before or shapes):
            return "the samples have different shapes"
        samples.append(tensors)
        if size // _PART_BYTES > len(parts):
            parts.append(_stacked(samples))
            samples = []
    if shapes is None:
        return "the dataset is empty"
    if samples:
        parts.append(_stacked(samples))
    return _kept_arrays(Arrays(_joined(parts), rebuild), room)


def _stacked(samples: list[list[Any]]) -> list[Any]:
    return [torch.stack(leaves) for leaves in zip(*samples, strict=True)]


def _joined(parts: deque[list[Any]]) -> list[Any]:
    """Put arrays together. Each part is freed after its copy: memory may not have room for both."""
    count = sum(len(part[0]) for part in parts)
    kinds = [
        reduce(torch.promote_types, [part[place].dtype for part in parts])
        for place in range(len(parts[0]))
    ]
    whole = [
        torch.empty((count, *leaf.shape[1:]), dtype=kind)
        for leaf, kind in zip(parts[0], kinds, strict=True)
    ]
    begin = 0
    while parts:
        part = parts.popleft()
        for array, leaf in zip(whole, part, strict=True):
            array[begin : begin + len(leaf)] = leaf
        begin += len(part[0])
    return whole


def collated(samples: list[Any]) -> Any:
    """Return a batch of samples that may have tensors of TensorFlow."""
    return torch.utils.data.default_collate([mapped(_numbers, sample) for sample in samples])


def _numbers(leaf: Any) -> Any:
    """Return what PyTorch can read: a tensor of TensorFlow as NumPy's array."""
    return leaf.numpy() if hasattr(leaf, "numpy") and not hasattr(leaf, "new_empty") else leaf
