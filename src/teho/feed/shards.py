"""`packed`: a dataset that `pack` has written."""

from __future__ import annotations

import copy
import io
import json
import os
import threading
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from teho.errors import InputError
from teho.feed.index import FILES, FORMAT, SUMMARY, Index, read_index, split_name

__all__ = ["Packed", "packed"]

_BLOCK_BYTES = 2 * 1024**2
_MEMBER_BYTES = 1024
"""What a file needs in an archive in addition to its content, at most: its header of 512 bytes, and
zeros up to the next multiple of 512."""
_MOST_INDEXES = 64

Sample = dict[str, Any]
"""`__key__`, and for each file of the sample the rest of its name and its content."""


def packed(
    folder: str | Path,
    decode: Callable[[Sample], Any] | None = None,
    *,
    window_bytes: int = 16 * _BLOCK_BYTES,
) -> Packed:
    """Return the dataset in a folder that `pack` has written.

    It has a length and numbered samples, for `loader` and for DataLoader. `loader` reads it in
    blocks, one after another. With `shuffle=True`, the blocks are in a random order, and the
    samples are shuffled in a window. The checksum of each file is compared when it is read.

    Args:
        folder: the folder `out` of `pack`.
        decode: makes a sample from a dictionary: `__key__` is the name without its endings, and
            `jpg` is the content of the file that ends with `.jpg`. None: this dictionary; for a
            packed dataset, the sample as it was.
        window_bytes: size of the window. About twice as much memory is used in each process.

    Raises:
        InputError: the folder has no complete dataset.
    """
    path = Path(folder)
    try:
        summary = json.loads((path / SUMMARY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path} has no {SUMMARY}",
            "a folder that `teho pack` has finished",
            f"`teho pack SOURCE {path}`",
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path / SUMMARY} cannot be read: {error}") from error
    if summary.get("format") != FORMAT:
        raise InputError(f"{path} has the format {summary.get('format')}", FORMAT)
    is_folder = summary["mark"].startswith(FILES)
    return Packed(
        path, summary["shards"], decode or (dict if is_folder else _as_it_was), window_bytes
    )


class Packed:
    """A packed dataset, with the methods of a dataset of PyTorch.

    Threads of one process may load samples at the same time.
    """

    def __init__(
        self,
        folder: Path,
        shards: Sequence[dict[str, Any]],
        decode: Callable[[Sample], Any],
        window_bytes: int,
    ) -> None:
        self._folder, self._decode = folder, decode
        self._names = [shard["name"] for shard in shards]
        self._counts = [shard["samples"] for shard in shards]
        self._ends = list(accumulate(self._counts))
        # With the headers: of small files, an archive has more bytes than the files.
        sizes = [shard["bytes"] + _MEMBER_BYTES * shard["members"] for shard in shards]
        self._per_block = [
            max(1, _BLOCK_BYTES * count // max(1, size))
            for count, size in zip(self._counts, sizes, strict=True)
        ]
        self._window = max(1, window_bytes * len(self) // max(1, sum(sizes)))
        self._in_blocks = False
        self._lock = threading.Lock()
        self._indexes: OrderedDict[int, Index] = OrderedDict()
        self._blocks: OrderedDict[tuple[int, int], _Block] = OrderedDict()
        self._most_blocks = 2 * window_bytes // _BLOCK_BYTES + 4

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, row: int) -> Any:
        place = row + len(self) if row < 0 else row
        if not 0 <= place < len(self):
            raise IndexError(row)
        shard = bisect_right(self._ends, place)
        number = place - self._ends[shard] + self._counts[shard]
        index = self._index(shard)
        block = number // self._per_block[shard]
        if self._in_blocks:
            return self._decode(self._block(shard, block, index).sample(number, index))
        one = _Block(self._folder / self._names[shard], index, number, number + 1)
        return self._decode(one.sample(number, index))

    def __iter__(self) -> Iterator[Any]:
        whole = self.in_blocks()
        return (whole[row] for row in range(len(self)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_indexes": None, "_blocks": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._indexes, self._blocks = threading.Lock(), OrderedDict(), OrderedDict()

    def in_blocks(self) -> Packed:
        """Return the same dataset for reading many samples near each other."""
        found = copy.copy(self)
        found._in_blocks = True  # noqa: SLF001 - of this class
        return found

    def order(self, key: int) -> Any:
        """Return a random order in which samples of the same block are near each other."""
        from teho.feed.order import windowed  # imports PyTorch

        sizes: list[int] = []
        for count, step in zip(self._counts, self._per_block, strict=True):
            sizes += [step] * (count // step) + [count % step] * bool(count % step)
        return windowed(sizes, key, self._window)

    def _index(self, shard: int) -> Index:
        with self._lock:
            if shard not in self._indexes:
                path = self._folder / self._names[shard]
                self._indexes[shard] = read_index(path.with_suffix(".idx"))
                if len(self._indexes) > _MOST_INDEXES:
                    self._indexes.popitem(last=False)
            self._indexes.move_to_end(shard)
            return self._indexes[shard]

    def _block(self, shard: int, number: int, index: Index) -> _Block:
        step = self._per_block[shard]
        with self._lock:
            block = self._blocks.get((shard, number))
            if block is None:
                last = min((number + 1) * step, self._counts[shard])
                path = self._folder / self._names[shard]
                block = _Block(path, index, number * step, last)
                self._blocks[shard, number] = block
                if len(self._blocks) > self._most_blocks:
                    self._blocks.popitem(last=False)
            self._blocks.move_to_end((shard, number))
        return block


class _Block:
    """Samples that follow each other in a shard. They are read together when one is needed."""

    def __init__(self, path: Path, index: Index, first: int, last: int) -> None:
        self._path = path
        end = index.firsts[last] - 1
        self._begin = index.offsets[index.firsts[first]]
        self._size = index.offsets[end] + index.sizes[end] - self._begin
        self._data: memoryview | None = None
        self._lock = threading.Lock()

    def sample(self, number: int, index: Index) -> Sample:
        """Return a sample.

        Raises:
            InputError: a file is damaged.
        """
        with self._lock:  # another thread may be reading
            if self._data is None:
                self._data = memoryview(_read(self._path, self._begin, self._size))
        found: Sample = {}
        for member in range(index.firsts[number], index.firsts[number + 1]):
            begin, size = index.offsets[member] - self._begin, index.sizes[member]
            content = bytes(self._data[begin : begin + size])
            name = index.name(member)
            if zlib.crc32(content) != index.sums[member]:
                raise InputError(
                    f"{self._path}: {name} is damaged: its checksum differs",
                    "",
                    "delete this shard and its .idx file, and pack again",
                )
            key, rest = split_name(name)
            found["__key__"] = key
            found[rest] = content
        return found


def _read(path: Path, begin: int, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while size and (part := os.pread(descriptor, size, begin)):
            parts.append(part)
            begin, size = begin + len(part), size - len(part)
    finally:
        os.close(descriptor)
    if size:
        raise InputError(f"{path} is too short", "", "delete it and its .idx file, and pack again")
    return b"".join(parts) if len(parts) != 1 else parts[0]


def _as_it_was(sample: Sample) -> Any:
    """Return a sample of a dataset from its files, which are named as `pack` names them."""
    values = {
        name[2:].rpartition(".")[0]: _decoded(name, content)
        for name, content in sample.items()
        if name != "__key__"
    }
    kind = list(sample)[1][0]
    return values if kind == "d" else tuple(values.values()) if kind == "t" else values[""]


def _decoded(name: str, content: bytes) -> Any:
    if name.endswith(".npy"):
        import numpy as np

        return np.load(io.BytesIO(content), allow_pickle=False)
    return json.loads(content) if name.endswith(".json") else content
