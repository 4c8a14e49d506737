"""Datasets that are read from their beginning to their end, with `__iter__`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from teho.errors import InputError
from teho.feed.epochs import divided as smaller_steps
from teho.feed.epochs import rank_and_size, share
from teho.feed.workers import checked

__all__ = ["Stream", "is_stream"]


def is_stream(dataset: Any) -> bool:
    """Return whether a dataset has no numbered samples."""
    is_iterable = isinstance(dataset, torch.utils.data.IterableDataset)
    return is_iterable or not hasattr(dataset, "__getitem__")


@dataclass(frozen=True)
class Stream:
    """The batches of one rank from a stream of samples. The fields are arguments of `loader`.

    Raises:
        InputError: the dataset cannot be read, or several workers would read the same samples.
    """

    dataset: Any
    batch_size: int | None
    drop_last: bool
    divided: bool | None
    num_workers: int | None
    place: tuple[int | None, int | None]
    """Rank and number of ranks."""

    def __post_init__(self) -> None:
        kind = type(self.dataset).__name__
        if not hasattr(self.dataset, "__iter__"):
            raise InputError(f"a dataset of type {kind}", "a dataset with __getitem__ or __iter__")
        is_iterable = isinstance(self.dataset, torch.utils.data.IterableDataset)
        if isinstance(self.dataset, Iterator) and not is_iterable:
            raise InputError(
                f"a dataset of type {kind}, whose samples can be read only once",
                "an object whose __iter__ begins again in each epoch",
                "make a subclass of IterableDataset whose __iter__ returns such an iterator",
            )
        if (self.num_workers or 0) > 1 and not self.divided:
            raise InputError(
                f"num_workers={self.num_workers} with a dataset that has only __iter__: each "
                "worker would read all samples",
                "num_workers=1",
                "divided=True if the dataset divides its samples between the workers itself",
            )

    def fixed(self) -> dict[str, Any]:
        """Return what must be the same if an epoch is continued."""
        return {
            "batch_size": self.batch_size,
            "drop_last": self.drop_last,
            "world_size": rank_and_size(*self.place)[1],
        }

    def sizes(self) -> Any:
        """Refuse: the length is not known."""
        raise TypeError("the number of batches of a dataset with only __iter__ is not known")

    def lists(self, epoch: int, first: int) -> Iterator[int]:
        """Give the dataset its epoch, and yield the number of batches to skip."""
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(epoch)
        yield first

    def reader(self, options: dict[str, Any]) -> Callable[[Iterator[int]], Iterator[Any]]:
        """Return what yields batches after skipping some."""
        rank, ranks = rank_and_size(*self.place)
        if ranks > 1 and self.divided is None:
            raise InputError(
                f"a dataset that has only __iter__, with {ranks} ranks: Teho does not know whether "
                "each rank reads other samples",
                "divided=True if the dataset divides its samples itself, or divided=False",
            )
        load = torch.utils.data.DataLoader
        # Workers that stay would keep the dataset of the first epoch.
        options = {**options, "persistent_workers": False}
        if self.divided or self.batch_size is None:
            made = load(
                self.dataset, batch_size=self.batch_size, drop_last=self.drop_last, **options
            )
            return lambda skipped: checked(islice(iter(made), next(skipped), None))

        def read(skipped: Iterator[int]) -> Iterator[Any]:
            part = (rank, ranks, self.batch_size, self.drop_last, next(skipped))
            lists = _Part(self.dataset, *part)
            return checked(iter(load(lists, batch_size=None, **options)))

        return read


def _lists(
    samples: Iterator[Any],
    rank: int,
    ranks: int,
    batch_size: int,
    drop_last: bool,  # noqa: FBT001
) -> Iterator[list[Any]]:
    """Yield the samples of each batch of a rank; all ranks get the same number of batches."""
    whole = batch_size * ranks
    buffered = list(islice(samples, whole + ranks))
    while len(buffered) == whole + ranks:  # enough for one more step after this one
        yield buffered[batch_size * rank : batch_size * (rank + 1)]
        buffered = buffered[whole:] + list(islice(samples, whole))
    smaller = smaller_steps(len(buffered), batch_size, ranks, drop_last=drop_last)
    for size in [whole] * ((len(buffered) - sum(smaller)) // whole) + smaller:
        yield buffered[share(size, rank, ranks) : share(size, rank + 1, ranks)]
        del buffered[:size]


# Teho does not depend on PyTorch, so the checker does not know this class.
class _Part(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """The batches of one rank, each as a list of samples."""

    def __init__(self, dataset: Any, *part: Any) -> None:
        self.dataset, self._part = dataset, part

    def __iter__(self) -> Iterator[list[Any]]:
        *how, first = self._part
        return islice(_lists(iter(self.dataset), *how), first, None)
