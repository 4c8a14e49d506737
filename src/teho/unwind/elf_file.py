"""Reads parts of an ELF file: segments, sections, and bytes by their address.

Source: System V ABI, chapters 4 and 5 (ELF-64, little endian).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from teho.unwind.elf import HEADER, SECTION, SEGMENT

__all__ = ["ElfData", "ElfFile", "Section", "Segment"]

_LOADED = 1
_NO_BITS = 8
_COMPRESSED = 0x800
_MOST_PARTS = 4096
"""A file with more segments or sections than this is damaged."""


class Segment(NamedTuple):
    """A part of the file that is loaded into memory, or describes such a part."""

    kind: int
    offset: int
    virtual: int
    size: int


class Section(NamedTuple):
    """A part of the file with a name."""

    name: bytes
    kind: int
    offset: int
    size: int
    link: int
    is_compressed: bool


class ElfData:
    """An ELF file in memory.

    Args:
        data: all its bytes.

    Raises:
        ValueError: it is not a 64-bit little-endian ELF file.
    """

    def __init__(self, data: bytes = b"") -> None:
        self._data = data
        self._describe()

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file; fewer at its end."""
        return self._data[offset : offset + size]

    def _describe(self) -> None:
        start = self.read(0, HEADER.size)
        if len(start) < HEADER.size or start[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        header = HEADER.unpack(start)
        segments = self.read(header[5], min(header[10], _MOST_PARTS) * header[9])
        self.segments = [
            Segment(one[0], one[2], one[3], one[5])
            for place in range(0, len(segments) - SEGMENT.size + 1, max(1, header[9]))
            for one in [SEGMENT.unpack_from(segments, place)]
        ]
        table = self.read(header[6], min(header[12], _MOST_PARTS) * header[11])
        raw = [
            SECTION.unpack_from(table, place)
            for place in range(0, len(table) - SECTION.size + 1, max(1, header[11]))
        ]
        names = self.read(*raw[header[13]][4:6]) if header[13] < len(raw) else b""
        self.sections = [
            Section(
                names[name : names.find(b"\0", name)],
                kind,
                offset,
                0 if kind == _NO_BITS else size,
                link,
                bool(flags & _COMPRESSED),
            )
            for name, kind, flags, _, offset, size, link, *_ in raw
        ]

    def virtual_of(self, offset: int) -> int | None:
        """Return the address of a byte of the file; None if the byte is not loaded."""
        for one in self.segments:
            if one.kind == _LOADED and one.offset <= offset < one.offset + one.size:
                return offset - one.offset + one.virtual
        return None

    def bytes_at(self, virtual: int, size: int) -> bytes:
        """Return the bytes at an address; empty if they are not in the file."""
        for one in self.segments:
            if one.kind == _LOADED and one.virtual <= virtual < one.virtual + one.size:
                return self.read(one.offset + virtual - one.virtual, size)
        return b""


class ElfFile(ElfData):
    """An ELF file that is read as needed. It is never kept open.

    An open file could not be deleted from a network file system.

    Args:
        paths: where it can be read; the first path that exists is read.

    Attributes:
        paths: can be changed, if the file can be read in another place later.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a 64-bit little-endian ELF file.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        super().__init__()

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file; fewer at its end.

        Raises:
            OSError: it cannot be read.
        """
        for path in self.paths:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                if path == self.paths[-1]:
                    raise error from None
                continue
            try:
                left = os.fstat(descriptor).st_size - offset  # a damaged file has any numbers
                return os.pread(descriptor, min(size, left), offset) if left > 0 else b""
            finally:
                os.close(descriptor)
        return b""
