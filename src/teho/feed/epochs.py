"""Which samples a rank gets in an epoch, in which batches; and how far an epoch has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from teho.errors import InputError
from teho.feed.order import key_of, shuffled

__all__ = ["Epochs", "Feed", "divided", "rank_and_size", "share"]

_AT_ONCE = 1024
"""Batches that are cut out of the order together."""


def divided(count: int, batch_size: int, world_size: int, *, drop_last: bool) -> list[int]:
    """Return the sizes of the steps that are smaller than others, over all ranks together.

    All other steps have `batch_size` samples on each rank. Each rank has the same number of steps,
    because a step in which only some ranks have samples would hang.

    Raises:
        InputError: the samples cannot be divided so.
    """
    whole = batch_size * world_size
    rest = count % whole
    if drop_last or not rest:
        return []
    if rest >= world_size:
        return [rest]
    if count > whole and batch_size > 1:  # too few for one more step: two smaller steps
        return [(whole + rest + 1) // 2, (whole + rest) // 2]
    raise InputError(
        f"{count} samples cannot be divided between {world_size} ranks with batch_size="
        f"{batch_size}: in the last step, some ranks would have no sample",
        f"at least {world_size} samples and batch_size=2",
        "drop_last=True leaves out the last samples of each epoch",
    )


def share(samples: int, rank: int, world_size: int) -> int:
    """Return the number of samples that the ranks before this rank get in a step."""
    return samples * rank // world_size


def rank_and_size(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return the given rank and number of ranks, or the ones of torch.distributed.

    Raises:
        InputError: the rank is not below the number of ranks.
    """
    if world_size is None:
        distributed = sys.modules.get("torch.distributed")
        if distributed and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        world_size = 1
    found = rank or 0
    if not 0 <= found < world_size:
        raise InputError(f"rank={rank} with world_size={world_size}", "0 <= rank < world_size")
    return found, world_size


@dataclass(frozen=True)
class Epochs:
    """The batches of one rank.

    Raises:
        InputError: the batch size is not a positive number.
    """

    samples: int
    """Number of samples of the dataset."""
    batch_size: int
    """Samples in each batch of a rank."""
    shuffle: bool
    """Whether each epoch has another order."""
    drop_last: bool
    """Leave out the last samples if they do not fill a batch on each rank."""
    seed: int
    """Of the order."""
    rank: int | None
    """Of this process; None: as torch.distributed says when an epoch begins."""
    world_size: int | None
    """Number of ranks; None: the same."""
    order: Callable[[int], Any] | None = None
    """Returns the order of an epoch for its key; None: all samples shuffled."""

    def __post_init__(self) -> None:
        if not isinstance(self.batch_size, int) or self.batch_size < 1:
            raise InputError(f"batch_size={self.batch_size!r}", "a number of at least 1")

    def fixed(self) -> dict[str, Any]:
        """Return what must be the same if an epoch is continued."""
        names = ("samples", "batch_size", "shuffle", "drop_last", "seed")
        return {**{name: getattr(self, name) for name in names}, "world_size": self.place()[1]}

    def place(self) -> tuple[int, int]:
        """Return the rank of this process and the number of ranks."""
        return rank_and_size(self.rank, self.world_size)

    def part(self) -> tuple[int, list[int]]:
        """Return where this rank's part of the order begins, and the sizes of its batches.

        Each part is in one piece, so that a rank reads only its own part of packed files.

        Raises:
            InputError: the samples cannot be divided between the ranks.
        """
        rank, ranks = self.place()
        smaller = divided(self.samples, self.batch_size, ranks, drop_last=self.drop_last)
        full = (self.samples - sum(smaller)) // (self.batch_size * ranks)
        before = [share(samples, rank, ranks) for samples in smaller]
        through = [share(samples, rank + 1, ranks) for samples in smaller]
        last = [end - begin for begin, end in zip(before, through, strict=True)]
        begin = full * self.batch_size * rank + sum(before)
        return begin, [self.batch_size] * full + last

    def sizes(self) -> list[int]:
        """Return the number of samples in each batch of this rank."""
        return self.part()[1]

    def rows(self, epoch: int, first: int, device: Any = "cpu") -> Iterator[Any]:
        """Yield the numbers of the samples of each batch: tensors int64 [samples].

        Args:
            epoch: the order differs from epoch to epoch.
            first: the first batch to yield.
            device: of the tensors.
        """
        for order, sizes in self.groups(epoch, first, device):
            yield from order.split(sizes)

    def lists(self, epoch: int, first: int) -> Iterator[list[int]]:
        """Yield the same as lists."""
        for order, sizes in self.groups(epoch, first):
            numbers = iter(order.tolist())
            for size in sizes:
                yield list(islice(numbers, size))

    def groups(
        self, epoch: int, first: int, device: Any = "cpu"
    ) -> Iterator[tuple[Any, list[int]]]:
        """Yield the order of many batches at once, and the sizes of these batches."""
        begin, sizes = self.part()
        end = begin + sum(sizes)
        key = key_of(self.seed, epoch)
        if not self.shuffle:
            order = torch.arange(begin, end, device=device)
        elif self.order:
            order = self.order(key)[begin:end].to(device)
        else:
            order = shuffled(self.samples, key, device)[begin:end]
        order = order[sum(sizes[:first]) :]
        for number in range(first, len(sizes), _AT_ONCE):
            some = sizes[number : number + _AT_ONCE]
            yield order[: sum(some)], some
            order = order[sum(some) :]


class Feed:
    """An iterable of batches whose position can be saved, and continued after a restart.

    Attributes:
        dataset: as in DataLoader. Its length is the number of samples.
        batch_size: as in DataLoader.
        drop_last: as in DataLoader.
        epoch: the epoch that is running, or that the next iteration begins; the first is 0.
        batch: number of batches of this epoch that were given.
    """

    epoch = 0
    batch = 0
    _begins_here = True
    """Whether the next iteration begins at this position, and not with the next epoch."""

    def __init__(self, dataset: Any, batch_size: int | None, *, drop_last: bool) -> None:
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last

    def __iter__(self) -> Iterator[Any]:
        if not self._begins_here:  # the last iteration was left before its end
            self.set_epoch(self.epoch + 1)
        self._begins_here = False
        with closing(self.batches(self.epoch, self.batch)) as batches:
            for number, batch in enumerate(batches, self.batch + 1):
                self.batch = number
                yield batch
        self.set_epoch(self.epoch + 1)

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration be this epoch, as the method of DistributedSampler.

        After `load_state_dict`, a call with the epoch of the state keeps the position.
        """
        if epoch != self.epoch or not self._begins_here:
            self.epoch, self.batch, self._begins_here = epoch, 0, True

    def state_dict(self) -> dict[str, Any]:
        """Return the position: after the last batch that was given."""
        return {"epoch": self.epoch, "batch": self.batch, **self.fixed()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next iteration continue at a saved position.

        Raises:
            InputError: the state is for other data, another batch size or other ranks.
        """
        for name, value in self.fixed().items():
            if state.get(name) != value:
                raise InputError(
                    f"the saved state has {name}={state.get(name)!r}, and the feed has "
                    f"{name}={value!r}",
                    "the settings of the run that saved the state",
                    "begin a new epoch without load_state_dict if they shall differ",
                )
        self.epoch, self.batch, self._begins_here = state["epoch"], state["batch"], True

    def fixed(self) -> dict[str, Any]:
        """Return what must be the same if an epoch is continued."""
        raise NotImplementedError

    def batches(self, epoch: int, first: int) -> Any:
        """Return a generator of the batches of an epoch, from a batch on."""
        raise NotImplementedError
