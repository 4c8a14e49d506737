"""`resident`: batches of a dataset that stays in the memory of the GPU."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

from teho.errors import InputError
from teho.feed.arrays import Arrays, arrays_of
from teho.feed.epochs import Epochs, Feed
from teho.feed.images import Changes
from teho.feed.loading import loader
from teho.feed.order import key_of
from teho.feed.probing import measured
from teho.feed.progress import progress
from teho.feed.room import free_host_bytes
from teho.feed.streams import is_stream
from teho.feed.tree import Rebuild, flat, mapped
from teho.units import format_bytes

__all__ = ["Resident", "resident"]

_SHARE = 0.5
"""Share of the free memory that the data may fill: the model and its activations need the rest."""
_LEAST_SHARE = 0.1
"""If less of the data fits, a copy of this part would save too little."""
_LOADED_AT_ONCE = 256
_BUFFERS = 2


def resident(
    dataset: Any,
    batch_size: int,
    *,
    shuffle: bool = False,
    drop_last: bool = False,
    seed: int = 0,
    device: Any = None,
    crop_padding: int = 0,
    flip: bool = False,
    mean: Sequence[float] | float | None = None,
    std: Sequence[float] | float | None = None,
    transform: Callable[[Any], Any] | None = None,
    memory_share: float = _SHARE,
    num_workers: int | None = None,
    rank: int | None = None,
    world_size: int | None = None,
) -> Resident:
    """Return an iterable of batches on the GPU, in place of a DataLoader.

    The dataset is copied once: to the GPU if it fits there; otherwise to the memory of the node,
    and batches are copied in advance from pinned memory; otherwise as much as fits is copied to
    the GPU, and the rest is loaded in each epoch. If none of this is possible, the function warns,
    says why, and loads every batch in each epoch. The batches are on the device in all cases.

    Args:
        dataset: arrays with the samples in their first dimension: a tensor, a NumPy or JAX array,
            or a tuple or dictionary of them; a dataset of PyTorch; or an iterable of samples, such
            as one of tf.data. A sample must be the same each time, so make random changes with the
            next arguments.
        batch_size: samples in a batch of each rank.
        shuffle: a new order in each epoch.
        drop_last: leave out the last samples if they do not fill a batch on each rank.
        seed: of the order and of the random changes.
        device: of the batches. None: the current GPU, or the CPU if there is none.
        crop_padding: pixels that are added at each edge before a random part is cut out.
        flip: mirror half of the images.
        mean: subtracted from each channel; for images of type uint8 on the scale from 0 to 1.
        std: each channel is divided by it.
        transform: called with each batch on the device; its result is the batch.
        memory_share: share of the free memory that the data may fill.
        num_workers: for a dataset that must be loaded first, as in `loader`.
        rank: of this process. None: as torch.distributed says.
        world_size: number of ranks. None: the same.

    Raises:
        InputError: an argument is not possible, or the samples cannot be divided between the ranks.
    """
    import torch

    if not 0 < memory_share <= 1:
        raise InputError(f"memory_share={memory_share}", "a number above 0, and at most 1")
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    room = _Room(place, memory_share)
    arrays = arrays_of(dataset)
    kept = _kept_arrays(arrays, room) if arrays else _loaded(dataset, room, num_workers)
    ranks = {"rank": rank, "world_size": world_size}
    if isinstance(kept, str):
        warnings.warn(f"teho.feed.resident loads each batch: {kept}", stacklevel=2)
        how = f"not resident: {kept}"
        source: Feed = loader(
            dataset, batch_size, shuffle, drop_last=drop_last, num_workers=num_workers, seed=seed,
            **ranks,  # type: ignore[arg-type]
        )  # fmt: skip
    else:
        how = kept.how
        epochs = Epochs(
            kept.count, batch_size, shuffle=shuffle, drop_last=drop_last, seed=seed, **ranks
        )
        source = _Rows(kept, epochs)
    changes = Changes(crop_padding, flip, mean, std)
    key = key_of(seed, "changes", rank or 0)
    return Resident(source, how, place, None if changes == Changes() else changes, transform, key)


class Resident(Feed):
    """What `resident` returns: an iterable of batches with a position that can be saved.

    Attributes:
        how: where the data are, in words.
    """

    def __init__(
        self,
        source: Feed,
        how: str,
        device: Any,
        changes: Changes | None,
        transform: Callable[[Any], Any] | None,
        key: int,
    ) -> None:
        super().__init__()
        self.how = how
        self._source, self._device = source, device
        self._changes, self._transform, self._key = changes, transform, key

    def __len__(self) -> int:
        return len(self._source)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<teho.feed resident: {self.how}>"

    def fixed(self) -> dict[str, Any]:
        """Return what must be the same if an epoch is continued."""
        return self._source.fixed()

    def batches(self, epoch: int, first: int) -> Iterator[Any]:
        """Return a generator of the batches of an epoch, from a batch on."""
        given = self._source.batches(epoch, first)
        if not isinstance(self._source, _Rows):
            given = (mapped(self._moved, batch) for batch in given)
        if self._changes or self._transform:
            return self._changed(given, epoch, first)
        return given

    def _changed(self, given: Iterator[Any], epoch: int, first: int) -> Iterator[Any]:
        for number, whole in enumerate(given, first):
            batch = whole
            if self._changes:
                leaves, rebuild = flat(batch)
                leaves[0] = self._changes(leaves[0], key_of(self._key, epoch, number))
                batch = rebuild(leaves)
            yield self._transform(batch) if self._transform else batch

    def _moved(self, leaf: Any) -> Any:
        return leaf.to(self._device, non_blocking=True) if hasattr(leaf, "to") else leaf


class _Room:
    """The memory that data may fill."""

    def __init__(self, device: Any, share: float) -> None:
        self.device, self._share = device, share

    @property
    def device_bytes(self) -> int:
        import torch

        if self.device.type == "cpu":
            return self.host_bytes
        module = torch.get_device_module(self.device)
        # Memory that PyTorch has reserved but does not use is free for it too.
        unused = module.memory_reserved(self.device) - module.memory_allocated(self.device)
        return int(self._share * (module.mem_get_info(self.device)[0] + unused))

    @property
    def host_bytes(self) -> int:
        return int(self._share * free_host_bytes())


class _Kept(NamedTuple):
    """A dataset in memory, or a part of it."""

    arrays: Arrays
    """The samples from number 0 on."""
    device: Any
    """Of the batches. If the arrays are elsewhere, each batch is copied."""
    how: str
    """Where the data are, in words."""
    count: int
    """Number of samples of the whole dataset."""
    rest: Any = None
    """The dataset, if samples that are not in the arrays are loaded from it."""
    num_workers: int | None = None
    """For loading these."""


def _kept_arrays(arrays: Arrays, room: _Room) -> _Kept:
    """Copy arrays to the device if they fit."""
    device, size = room.device, arrays.count * arrays.sample_bytes
    leaves = arrays.leaves
    if arrays.indices is not None:
        leaves = [leaf.index_select(0, arrays.indices) for leaf in leaves]
    if all(leaf.device.type == device.type for leaf in leaves):
        how = f"{format_bytes(size)} on {device}"
    elif size <= room.device_bytes:
        how = f"{format_bytes(size)} copied to {device}"
        leaves = [leaf.to(device) for leaf in leaves]
    else:
        free = format_bytes(room.device_bytes)
        how = f"{format_bytes(size)} do not fit into {free} on {device}: batches are copied"
    return _Kept(Arrays(leaves, arrays.rebuild), device, how, arrays.count)


def _loaded(dataset: Any, room: _Room, num_workers: int | None) -> _Kept | str:
    """Load a dataset into memory; a text says why this is not possible."""
    import torch

    if is_stream(dataset):
        return _collected(dataset, room)
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
    return _Kept(Arrays(kept, rebuild), room.device, how, total, rest, num_workers)


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
    import torch

    try:
        return torch.utils.data.default_collate(samples)
    except (RuntimeError, TypeError):
        return _NoBatch(samples)


def _place_for(total: int, sample_bytes: float, room: _Room) -> tuple[Any, int, str] | str:
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


def _collected(dataset: Any, room: _Room) -> _Kept | str:
    """Read a dataset that has only `__iter__`, such as one of tf.data, to its end."""
    import torch

    samples: list[list[Any]] = []
    size, most = 0, min(room.host_bytes, room.device_bytes)
    for sample in dataset:
        leaves, rebuild = flat(sample)
        try:
            tensors = [torch.as_tensor(_numbers(leaf)) for leaf in leaves]
        except (TypeError, ValueError, RuntimeError) as error:
            return f"the samples have parts that are not numbers ({error})"
        size += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        if size > most:
            return f"the samples need more than {format_bytes(most)}"
        if samples and [one.shape for one in tensors] != [one.shape for one in samples[0]]:
            return "the samples have different shapes"
        samples.append(tensors)
    if not samples:
        return "the dataset is empty"
    stacked = [torch.stack(parts) for parts in zip(*samples, strict=True)]
    return _kept_arrays(Arrays(stacked, rebuild), room)


def _numbers(leaf: Any) -> Any:
    """Return what PyTorch can read: a tensor of TensorFlow as NumPy's array."""
    return leaf.numpy() if hasattr(leaf, "numpy") and not hasattr(leaf, "new_empty") else leaf


class _Rows(Feed):
    """Batches from arrays in memory."""

    def __init__(self, kept: _Kept, epochs: Epochs) -> None:
        super().__init__()
        self._kept, self._epochs = kept, epochs
        self._missing: list[list[int]] = []
        self._rest = (
            loader(kept.rest, batch_sampler=self._missing, num_workers=kept.num_workers)
            if kept.rest is not None
            else None
        )

    def __len__(self) -> int:
        return len(self._epochs.sizes())

    def fixed(self) -> dict[str, Any]:
        return self._epochs.fixed()

    def batches(self, epoch: int, first: int) -> Iterator[Any]:
        arrays, device = self._kept.arrays, self._kept.device
        rebuild: Rebuild = arrays.rebuild
        where = arrays.leaves[0].device
        if self._rest is not None:
            parts = self._completed(list(self._epochs.rows(epoch, first)))
        elif where.type != device.type:
            parts = _copied(arrays.leaves, device, self._epochs.rows(epoch, first))
        else:
            # The usual case: little else than PyTorch's own work is done for a batch.
            select = [leaf.index_select for leaf in arrays.leaves]
            rows = self._epochs.rows(epoch, first, where)
            return (rebuild([one(0, some) for one in select]) for some in rows)
        return (rebuild(leaves) for leaves in parts)

    def _completed(self, batches: list[Any]) -> Iterator[list[Any]]:
        """Yield batches of samples that are on the device, and of others that are loaded."""
        import torch

        arrays, device = self._kept.arrays, self._kept.device
        missing = [rows[rows >= arrays.count].tolist() for rows in batches]
        self._missing[:] = [rows for rows in missing if rows]
        rest = iter(self._rest or ())
        for rows, lacking in zip(batches, missing, strict=True):
            is_here = rows < arrays.count
            here = arrays.take(rows[is_here].to(device))
            if not lacking:
                yield here
                continue
            loaded, leaves = flat(next(rest))[0], []
            for near, far in zip(here, loaded, strict=True):
                shape = (len(rows), *near.shape[1:])
                leaves.append(torch.empty(shape, dtype=near.dtype, device=device))
                leaves[-1][is_here.to(device)] = near
                leaves[-1][~is_here.to(device)] = far.to(device, non_blocking=True)
            yield leaves


def _copied(arrays: list[Any], device: Any, rows: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield batches on the device. A thread fills pinned buffers while the GPU computes."""
    import torch

    module = torch.get_device_module(device)
    stream = module.Stream(device)
    waiting: deque[Future[tuple[list[Any], Any]]] = deque()

    def copy(some: Any) -> tuple[list[Any], Any]:
        with module.device(device), module.stream(stream):
            leaves = []
            for array in arrays:
                shape = (len(some), *array.shape[1:])
                # PyTorch uses a pinned buffer again only when its copy has ended.
                buffer = torch.empty(shape, dtype=array.dtype, pin_memory=True)
                torch.index_select(array, 0, some, out=buffer)
                leaves.append(buffer.to(device, non_blocking=True))
            return leaves, stream.record_event()

    pool = ThreadPoolExecutor(1, "teho-feed")
    try:
        waiting.extend(pool.submit(copy, some) for some in islice(rows, _BUFFERS))
        while waiting:
            leaves, copied = waiting.popleft().result()
            waiting.extend(pool.submit(copy, some) for some in islice(rows, 1))
            current = module.current_stream(device)
            current.wait_event(copied)
            for leaf in leaves:  # its memory is free again only when the program's kernels ended
                leaf.record_stream(current)
            yield leaves
    finally:
        pool.shutdown(cancel_futures=True)
