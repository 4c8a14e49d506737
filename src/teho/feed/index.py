"""The files of a packed dataset, and the index of one shard.

A shard `shard-000000.tar` is an ordinary tar archive, in which the files of a sample follow each
other, as webdataset expects them. Next to it, `shard-000000.idx` has the place and the checksum of
each file. `pack.json` is written last: with it, the dataset is complete.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from teho.errors import InputError

__all__ = [
    "FILES",
    "FORMAT",
    "SUMMARY",
    "Index",
    "read_index",
    "shard_name",
    "split_name",
    "write_index",
]

FORMAT = "teho.shards/1"
SUMMARY = "pack.json"
FILES = "files "
"""The mark of a packed folder begins so."""
_FIELDS = (("firsts", "I"), ("offsets", "Q"), ("sizes", "Q"), ("sums", "I"), ("ends", "I"))


def shard_name(number: int) -> str:
    """Return the name of a shard, without its ending."""
    return f"shard-{number:06d}"


def split_name(name: str) -> tuple[str, str]:
    """Return the key of a file's sample, and the rest of its name: `a/b.seg.png` gives `a/b`."""
    folder, slash, last = name.rpartition("/")
    stem, _, rest = last.partition(".")
    return (f"{folder}{slash}{stem}", rest) if stem and rest else (name, "")


class Index(NamedTuple):
    """The places of the samples of a shard. Each array is in the file in the byte order of x86."""

    head: dict[str, Any]
    """`samples`, `members`, `bytes` and `sha256` of the shard; `mark`: of the packed data."""
    firsts: Sequence[int]
    """Number of the first member of each sample, and the number of all members."""
    offsets: Sequence[int]
    """Of the content of each member, in bytes."""
    sizes: Sequence[int]
    """Of each member, in bytes."""
    sums: Sequence[int]
    """CRC-32 of the content of each member."""
    ends: Sequence[int]
    """The end of the name of each member, in `names`."""
    names: bytes

    def name(self, member: int) -> str:
        """Return the name of a member."""
        begin = self.ends[member - 1] if member else 0
        return os.fsdecode(self.names[begin : self.ends[member]])


def write_index(path: Path, index: Index) -> None:
    """Write an index so that it is complete, or does not exist."""
    new = path.with_suffix(".idx.part")
    with new.open("wb") as file:
        file.write(json.dumps({"format": FORMAT, **index.head}).encode() + b"\n")
        for name, kind in _FIELDS:
            file.write(array(kind, getattr(index, name)).tobytes())
        file.write(index.names)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def read_index(path: Path) -> Index:
    """Read an index.

    Raises:
        InputError: the file is damaged or of another version.
        OSError: it cannot be read.
    """
    line, _, data = path.read_bytes().partition(b"\n")
    try:
        head = json.loads(line)
        if head["format"] != FORMAT:
            raise InputError(f"{path} has the format {head['format']}", FORMAT)
        parts = list(_arrays(data, head["members"], head["samples"]))
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"{path} is damaged", "an index of `teho pack`", "delete the folder and pack again"
        ) from error
    used = sum(part.itemsize * len(part) for part in parts)
    firsts, offsets, sizes, sums, ends = parts
    return Index(head, firsts, offsets, sizes, sums, ends, data[used:])


def _arrays(data: bytes, members: int, samples: int) -> Iterator[array[int]]:
    begin = 0
    for name, kind in _FIELDS:
        part = array(kind)
        end = begin + part.itemsize * (samples + 1 if name == "firsts" else members)
        part.frombytes(data[begin:end])
        begin = end
        yield part
