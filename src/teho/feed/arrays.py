"""Datasets that are in memory: their batches are read with one call for each array."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import torch

from teho.errors import InputError
from teho.feed.tree import Rebuild, flat

__all__ = ["Arrays", "arrays_of", "numbered"]


_TOGETHER_BYTES, _LEAST_TOGETHER = 64 * 1024, 8
"""If at least this number of batches fits into this size, their rows are copied together: for small
batches, the calls take longer than the copies."""
_TOGETHER_DEVICE_BYTES = 8 * 1024**2
"""The same for each array on a GPU, for which a call takes longer, and a copy takes less time."""


class Arrays(NamedTuple):
    """The arrays of a dataset, as tensors whose first dimension is the sample."""

    leaves: list[Any]
    rebuild: Rebuild
    """Makes a batch from the parts of all arrays."""
    indices: Any = None
    """Tensor int64 [samples]: the rows of the arrays that are in the dataset; None: all."""

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.leaves[0] if self.indices is None else self.indices)

    @property
    def sample_bytes(self) -> int:
        """Size of one sample."""
        return sum(leaf[0].numel() * leaf.element_size() for leaf in self.leaves if len(leaf))

    def take(self, rows: Any) -> list[Any]:
        """Return for each array a copy of some of its rows."""
        if self.indices is not None:
            rows = self.indices[rows]
        return [leaf.index_select(0, rows) for leaf in self.leaves]

    def batches(self, order: Any, sizes: list[int], *, pins: bool = False) -> Iterator[Any]:
        """Return an iterator of batches.

        Args:
            order: the rows of all these batches, as a tensor int64 [rows].
            sizes: number of rows of each batch.
            pins: whether the batches are in pinned memory.
        """
        rows = order if self.indices is None else self.indices[order]
        # Arrays with the same number of batches in a group share the pieces of the order.
        pieces: dict[int, Any] = {}
        parts: list[Iterator[Any]] = []
        for leaf, many in zip(self.leaves, self._together(sizes[0]), strict=True):
            groups = [sizes[first : first + many] for first in range(0, len(sizes), many)]
            if many not in pieces:
                pieces[many] = rows.split([*map(sum, groups)])
            select = partial(_pinned_rows, leaf) if pins else partial(leaf.index_select, 0)
            copied: Iterator[Any] = map(select, pieces[many])
            if many > 1:
                # For autograd, these parts are no views: a program may change a batch in place.
                split = torch.unsafe_split_with_sizes
                copied = chain.from_iterable(map(split, copied, groups))
            parts.append(copied)
        # The program gets a copy of the tuple of `zip`, which is then used again. Otherwise `zip`
        # would keep each second batch while the next two are made: three large batches in turn, in
        # place of two, fit less well into the caches of a core.
        return map(self.rebuild, map(list, zip(*parts, strict=True)))

    def _together(self, batch_size: int) -> list[int]:
        """Return for each array the number of batches whose rows are copied together."""
        sizes = [batch_size * leaf[0].numel() * leaf.element_size() for leaf in self.leaves]
        if self.leaves[0].device.type != "cpu":
            return [max(1, _TOGETHER_DEVICE_BYTES // max(1, size)) for size in sizes]
        many = _TOGETHER_BYTES // max(1, sum(sizes))
        return [many if many >= _LEAST_TOGETHER else 1] * len(sizes)


class _Samples:
    """Arrays as a dataset, whose length is the number of samples."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def __len__(self) -> int:
        return self.arrays.samples

    def __getitem__(self, row: int) -> Any:
        return self.arrays.rebuild([leaf[row] for leaf in self.arrays.leaves])


def numbered(dataset: Any) -> Any:
    """Return a dataset whose length is the number of samples.

    The length of a tuple or dictionary of arrays is the number of its arrays.

    Raises:
        InputError: the arrays have different lengths.
    """
    arrays = arrays_of(dataset) if isinstance(dataset, (tuple, Mapping)) else None
    return _Samples(arrays) if arrays else dataset


def _pinned_rows(leaf: Any, rows: Any) -> Any:
    return leaf.index_select(0, rows).pin_memory()


def arrays_of(dataset: Any) -> Arrays | None:
    """Return the arrays of a dataset; None if its samples have to be loaded one by one.

    In memory are: an array, a tuple or a mapping of arrays, PyTorch's `TensorDataset`, and a
    `Subset` of one. An array is a tensor, a NumPy array, or any object with `__dlpack__`.

    Raises:
        InputError: the arrays have different lengths.
    """
    data = torch.utils.data
    if isinstance(dataset, _Samples):
        return dataset.arrays
    if type(dataset) is data.Subset:
        inner = arrays_of(dataset.dataset)
        if inner is None:
            return None
        indices = torch.as_tensor(dataset.indices, dtype=torch.int64).to(inner.leaves[0].device)
        return inner._replace(indices=indices if inner.indices is None else inner.indices[indices])
    if type(dataset) is data.TensorDataset:
        dataset = list(dataset.tensors)
    elif not (_is_array(dataset) or isinstance(dataset, (tuple, Mapping))):
        return None
    leaves, rebuild = flat(dataset)
    if not leaves or not all(map(_is_array, leaves)):
        return None
    tensors = [_as_tensor(leaf) for leaf in leaves]
    lengths = [len(tensor) for tensor in tensors]
    if len(set(lengths)) > 1:
        raise InputError(
            f"the arrays of the dataset have the lengths {lengths}", "one length: all samples"
        )
    return Arrays(tensors, rebuild)


def _is_array(value: Any) -> bool:
    return hasattr(type(value), "__dlpack__") and bool(getattr(value, "ndim", 0))


def _as_tensor(array: Any) -> Any:
    """Return a tensor with the memory of an array.

    JAX, TensorFlow and CuPy hand over their memory by DLPack.
    """
    if isinstance(array, torch.Tensor):
        return array
    if type(array).__module__.partition(".")[0] == "numpy":
        with warnings.catch_warnings():
            # PyTorch warns of arrays that must not be written; here they are only read.
            warnings.simplefilter("ignore", UserWarning)
            return torch.from_numpy(array)
    return torch.from_dlpack(array)
