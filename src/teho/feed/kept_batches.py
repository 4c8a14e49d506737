"""Batches of a dataset that was copied to a device, or of which a part was copied."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from teho.feed.epochs import Epochs
from teho.feed.kept import Kept, is_on
from teho.feed.loading import loader
from teho.feed.tree import flat
from teho.feed.workers import ahead

__all__ = ["KeptBatches"]

_BUFFERS = 2
"""Batches that are copied to the device in advance."""


class KeptBatches:
    """Batches from arrays in memory."""

    def __init__(self, kept: Kept, epochs: Epochs) -> None:
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
        """Return what must be the same if an epoch is continued."""
        return self._epochs.fixed()

    def batches(self, epoch: int, first: int) -> Iterator[Any]:
        """Return a generator of the batches of an epoch, from a batch on."""
        arrays, device = self._kept.arrays, self._kept.device
        if self._rest is not None:
            parts = self._completed(list(self._epochs.rows(epoch, first)))
        elif not is_on(arrays.leaves[0], device):
            parts = _copied(arrays.leaves, device, self._epochs.rows(epoch, first))
        else:
            # The usual case: little else than PyTorch's own work is done for a batch.
            where = arrays.leaves[0].device
            groups = self._epochs.groups(epoch, first, where)
            return (batch for group in groups for batch in arrays.batches(*group))
        return (arrays.rebuild(leaves) for leaves in parts)

    def _completed(self, batches: list[Any]) -> Iterator[list[Any]]:
        """Yield batches of samples that are on the device, and of others that are loaded."""
        arrays, device = self._kept.arrays, self._kept.device
        missing = [rows[rows >= arrays.samples].tolist() for rows in batches]
        self._missing[:] = [rows for rows in missing if rows]
        rest: Iterator[Any] = iter(self._rest or ())
        for rows, lacking in zip(batches, missing, strict=True):
            is_here = rows < arrays.samples
            here = arrays.take(rows[is_here].to(device))
            if not lacking:
                yield here
                continue
            leaves: list[Any] = []
            for near, far in zip(here, flat(next(rest))[0], strict=True):
                whole = near.new_empty((len(rows), *near.shape[1:]))
                whole[is_here.to(device)] = near
                whole[~is_here.to(device)] = far.to(device, non_blocking=True)
                leaves.append(whole)
            yield leaves


def _copied(arrays: list[Any], device: Any, rows: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield batches on the device. A thread fills pinned buffers while the GPU computes."""
    module = getattr(torch, device.type)
    stream = module.Stream(device)

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
    for leaves, copied in ahead(pool, lambda some: pool.submit(copy, some), rows, _BUFFERS):
        current = module.current_stream(device)
        current.wait_event(copied)
        for leaf in leaves:  # its memory is free again only when the program's kernels ended
            leaf.record_stream(current)
        yield leaves
