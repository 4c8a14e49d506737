"""Datasets that are read from their beginning to their end, with `__iter__`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any

from teho.errors import InputError
from teho.feed.epochs import divided as smaller_steps
from teho.feed.epochs import rank_and_size, share

__all__ = ["Stream", "is_stream", "streamed"]


def is_stream(dataset: Any) -> bool:
    """Return whether a dataset has no numbered samples."""
    import torch

    is_iterable = isinstance(dataset, torch.utils.data.IterableDataset)
    return is_iterable or not hasattr(dataset, "__getitem__")


def streamed(
    dataset: Any,
    batch_size: int | None,
    *,
    drop_last: bool,
    divided: bool | None,
    num_workers: int | None,
    place: tuple[int | None, int | None],
) -> Stream:
    """Return the batches of a dataset with `__iter__`; the arguments are the ones of `loader`.

    Raises:
        InputError: several ranks or workers would get the same samples.
    """
    if not hasattr(dataset, "__iter__"):
        raise InputError(
            f"a dataset of type {type(dataset).__name__}", "a dataset with __getitem__ or __iter__"
        )
    if (num_workers or 0) > 1 and not divided:
        raise InputError(
            f"num_workers={num_workers} with a dataset that has only __iter__: each worker would "
            "read all samples",
            "num_workers=1",
            "divided=True if the dataset divides its samples between the workers itself",
        )
    return Stream(dataset, batch_size, drop_last, divided, place)


class Stream:
    """The batches of one rank from a stream of samples."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None,
        drop_last: bool,  # noqa: FBT001 - only `streamed` calls it
        divided: bool | None,  # noqa: FBT001
        place: tuple[int | None, int | None],
    ) -> None:
        self._dataset, self._batch_size, self._drop_last = dataset, batch_size, drop_last
        self._divided, self._place = divided, place

    def fixed(self) -> dict[str, Any]:
        """Return what must be the same if an epoch is continued."""
        return {
            "batch_size": self._batch_size,
            "drop_last": self._drop_last,
            "world_size": rank_and_size(*self._place)[1],
        }

    def sizes(self) -> Any:
        """Refuse: the length is not known."""
        raise TypeError("the number of batches of a dataset with only __iter__ is not known")

    def lists(self, epoch: int, first: int) -> Iterator[int]:
        """Tell the dataset its epoch, and yield the number of batches to skip."""
        if hasattr(self._dataset, "set_epoch"):
            self._dataset.set_epoch(epoch)
        yield first

    def reader(self, options: dict[str, Any]) -> Callable[[Iterator[int]], Iterator[Any]]:
        """Return what yields batches after skipping some."""
        import torch

        from teho.feed.loading import checked

        rank, ranks = rank_and_size(*self._place)
        if ranks > 1 and self._divided is None:
            raise InputError(
                f"a dataset that has only __iter__, with {ranks} ranks: Teho does not know whether "
                "each rank reads other samples",
                "divided=True if the dataset divides its samples itself, or divided=False",
            )
        load = torch.utils.data.DataLoader
        # Workers that stay would keep the dataset of the first epoch.
        options = {**options, "persistent_workers": False}
        if self._divided or self._batch_size is None:
            made = load(
                self._dataset, batch_size=self._batch_size,
                drop_last=self._drop_last and self._batch_size is not None, **options,
            )  # fmt: skip
            return lambda skipped: checked(islice(iter(made), next(skipped), None))

        def read(skipped: Iterator[int]) -> Iterator[Any]:
            part = (rank, ranks, self._batch_size, self._drop_last, next(skipped))
            lists = _part_class()(self._dataset, *part)
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
    held = list(islice(samples, whole + ranks))
    while len(held) == whole + ranks:  # enough for one more step after this one
        yield held[batch_size * rank : batch_size * (rank + 1)]
        held = held[whole:] + list(islice(samples, whole))
    smaller = smaller_steps(len(held), batch_size, ranks, drop_last=drop_last)
    for size in [whole] * ((len(held) - sum(smaller)) // whole) + smaller:
        yield held[share(size, rank, ranks) : share(size, rank + 1, ranks)]
        del held[:size]


@cache
def _part_class() -> type:
    import torch

    class Part(torch.utils.data.IterableDataset):  # type: ignore[misc]
        """The batches of one rank, each as a list of samples."""

        def __init__(self, dataset: Any, *part: Any) -> None:
            self.dataset, self._part = dataset, part

        def __iter__(self) -> Iterator[list[Any]]:
            *how, first = self._part
            return islice(_lists(iter(self.dataset), *how), first, None)

    Part.__qualname__ = "Part"
    return Part


def __getattr__(name: str) -> Any:
    """Make the class when it is used, because PyTorch is imported late."""
    if name == "Part":
        return _part_class()
    raise AttributeError(name)
