"""The batches of a sampler of the user."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from typing import Any

import torch

from teho.errors import InputError

__all__ = ["Given"]


class Given:
    """The batches of a sampler, which chooses the order itself.

    A saved position has a checksum of all batches before it. If the sampler gives other batches
    after a restart, samples would be lost or seen twice.
    """

    def __init__(self, batch_sampler: Any) -> None:
        self._batch_sampler = batch_sampler
        self.batch_size: int | None = getattr(batch_sampler, "batch_size", None)
        self.drop_last: bool = getattr(batch_sampler, "drop_last", False)
        self._sums = array("I", [0])

    def sizes(self) -> range:
        """Return something with the length of an epoch."""
        return range(len(self._batch_sampler))

    def fixed(self) -> dict[str, Any]:
        """Return what must be the same if an epoch is continued."""
        sampler = getattr(self._batch_sampler, "sampler", self._batch_sampler)
        return {"sampler": type(sampler).__name__}

    def sum_before(self, batch: int) -> int:
        """Return the checksum of the batches of this epoch before a batch."""
        return self._sums[batch]

    def expect(self, batch: int, sum_before: int) -> None:
        """Let the next epoch be compared when it reaches this batch."""
        self._sums = array("I", [*[0] * batch, sum_before])

    def groups(self, epoch: int, first: int, device: Any) -> Iterator[tuple[Any, list[int]]]:
        """Yield each batch as a tensor int64 [samples], and its size, as `Epochs.groups`."""
        for rows in self.lists(epoch, first):
            yield torch.as_tensor(rows, device=device), [len(rows)]

    def lists(self, epoch: int, first: int) -> Iterator[list[int]]:
        """Yield the numbers of the samples of each batch.

        Raises:
            InputError: the batches before the first one are not the ones of the saved position.
        """
        for one in (self._batch_sampler, getattr(self._batch_sampler, "sampler", None)):
            if one is not None and hasattr(one, "set_epoch"):
                one.set_epoch(epoch)
        expected, self._sums = self._sums[first], array("I", [0])
        for number, rows in enumerate(self._batch_sampler):
            if number == first and self._sums[first] != expected:
                raise InputError(
                    f"the sampler {self.fixed()['sampler']} gives another order than in the run "
                    "that saved the position",
                    "the same order for the same epoch",
                    "use `shuffle=True` and `seed` in place of the sampler, or a sampler with "
                    "`set_epoch`",
                )
            self._sums.append(zlib.crc32(repr(list(rows)).encode(), self._sums[-1]))
            if number >= first:
                yield rows
