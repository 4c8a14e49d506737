"""`resident`: batches of a dataset that stays in the memory of the GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from teho.errors import InputError
from teho.feed.arrays import numbered
from teho.feed.epochs import Epochs, Feed, rank_and_size
from teho.feed.images import Changes
from teho.feed.kept import Room, collated, keep
from teho.feed.kept_batches import KeptBatches
from teho.feed.loading import loader
from teho.feed.order import key_of
from teho.feed.streams import is_stream
from teho.feed.tree import flat, mapped

__all__ = ["Resident", "resident"]

_SHARE = 0.5
"""Share of the free memory that the data may fill: the model and its activations need the rest."""


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

    The dataset is copied once: to the GPU if it fits there; otherwise to the memory of the node.
    This memory is not pinned: a thread copies each batch into pinned memory, and from there to the
    GPU, two batches in advance. If it does not fit there either, as much as fits is copied to the
    GPU, and the rest is loaded in each epoch. If none of this is possible, the function warns,
    says why, and loads every batch in each epoch. The batches are on the device in all cases. A
    dataset that has only `__iter__` can be shuffled only if all its samples fit into memory.

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
    if not 0 < memory_share <= 1:
        raise InputError(f"memory_share={memory_share}", "a number above 0, and at most 1")
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if place.type != "cpu" and place.index is None:  # threads have another current GPU
        place = torch.device(place.type, getattr(torch, place.type).current_device())
    dataset = numbered(dataset)
    kept = keep(dataset, Room(place, memory_share), num_workers)
    if isinstance(kept, str):
        how = f"not resident: {kept}"
        more: dict[str, Any] = {"num_workers": num_workers}
        if is_stream(dataset):
            if shuffle:
                raise InputError(
                    "shuffle=True with a dataset that has only __iter__ and is not in memory: "
                    f"{kept}",
                    "shuffle=False",
                    "shuffle the samples in `__iter__`, or give a larger memory_share",
                )
            # One worker: each would read all samples.
            more = {"num_workers": min(num_workers or 0, 1), "divided": False}
            more["collate_fn"] = collated
        warnings.warn(f"teho.feed.resident loads each batch: {kept}", stacklevel=2)
        source: Any = loader(
            dataset, batch_size, shuffle, drop_last=drop_last, seed=seed, rank=rank,
            world_size=world_size, **more,
        )  # fmt: skip
    else:
        how = kept.how
        order = (shuffle, drop_last, seed, rank, world_size)
        source = KeptBatches(kept, Epochs(kept.samples, batch_size, *order))
    changes = Changes(crop_padding, flip, mean, std)
    chosen = None if changes == Changes() else changes
    return Resident(
        source, how, place, chosen, transform, lambda: _key(seed, rank, world_size),
        dataset=dataset, batch_size=batch_size, drop_last=drop_last,
    )  # fmt: skip


def _key(seed: int, rank: int | None, world_size: int | None) -> int:
    """Return the key of the random changes. It differs from rank to rank."""
    return key_of(seed, "changes", rank_and_size(rank, world_size)[0])


class Resident(Feed):
    """What `resident` returns: an iterable of batches with a position that can be saved.

    Attributes:
        how: where the data are, in words.
    """

    def __init__(
        self,
        source: Any,
        how: str,
        device: Any,
        changes: Changes | None,
        transform: Callable[[Any], Any] | None,
        key: Callable[[], int],
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.how = how
        self._source, self._device = source, device
        self._changes, self._transform, self._key = changes, transform, key

    def __len__(self) -> int:
        return len(self._source)

    def __repr__(self) -> str:
        return f"<teho.feed resident: {self.how}>"

    def fixed(self) -> dict[str, Any]:
        """Return what must be the same if an epoch is continued."""
        found: dict[str, Any] = self._source.fixed()
        return found

    def batches(self, epoch: int, first: int) -> Iterator[Any]:
        """Return a generator of the batches of an epoch, from a batch on."""
        given: Iterator[Any] = self._source.batches(epoch, first)
        if not isinstance(self._source, KeptBatches):
            given = (mapped(self._moved, batch) for batch in given)
        if self._changes or self._transform:
            return self._changed(given, epoch, first)
        return given

    def _changed(self, given: Iterator[Any], epoch: int, first: int) -> Iterator[Any]:
        key = self._key()
        for number, whole in enumerate(given, first):
            batch = whole
            if self._changes:
                leaves, rebuild = flat(batch)
                leaves[0] = self._changes(leaves[0], key_of(key, epoch, number))
                batch = rebuild(leaves)
            yield self._transform(batch) if self._transform else batch

    def _moved(self, leaf: Any) -> Any:
        return leaf.to(self._device, non_blocking=True) if hasattr(leaf, "to") else leaf
