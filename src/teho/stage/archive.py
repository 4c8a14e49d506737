"""The bytes of a tar archive, computed from a listing: a part of it can be sent again.

The archive has the form of GNU tar, which keeps every name as its bytes. Users and groups are left
out, because they differ on the other machine.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from teho.errors import InputError
from teho.stage.machine import as_bytes, shown
from teho.stage.plan import Entry

__all__ = ["Archive"]

_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 20
_END = b"\0" * tarfile.RECORDSIZE


class _Member(NamedTuple):
    entry: Entry
    header: bytes
    offset: int
    """Of the header."""

    @property
    def data_bytes(self) -> int:
        return self.entry.size if self.entry.kind == "f" else 0

    @property
    def data_offset(self) -> int:
        return self.offset + len(self.header)

    @property
    def end(self) -> int:
        """The offset of the next member."""
        return self.data_offset + -(-self.data_bytes // _BLOCK) * _BLOCK


class Archive:
    """A tar archive that has not been written.

    Args:
        entries: files, links and folders, in the order of the archive.

    Attributes:
        size: of the whole archive.
        mark: identifies its content by names, sizes and times.
        mtime_ns: the newest time of all entries; removing a file changes that of its folder.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._members: list[_Member] = []
        hashed = hashlib.sha256()
        offset = 0
        for entry in entries:
            member = _Member(entry, _header(entry), offset)
            self._members.append(member)
            hashed.update(member.header)
            hashed.update(b"%d" % entry.mtime_ns)
            offset = member.end
        self.size = offset + len(_END)
        self.mark = hashed.hexdigest()[:16]
        self.mtime_ns = max((entry.mtime_ns for entry in entries), default=0)

    def places(self) -> dict[str, int]:
        """Return the offset of the content of each file."""
        return {one.entry.name: one.data_offset for one in self._members if one.entry.kind == "f"}

    def headers(self) -> list[tuple[str, int, bytes]]:
        """Return name, offset and content of the header of each member."""
        return [(one.entry.name, one.offset, one.header) for one in self._members]

    def stream(self, folder: Path, begin: int) -> Iterator[bytes]:
        """Yield the bytes of the archive from an offset on.

        Args:
            folder: has the files, under their names in the archive.
            begin: the first byte.

        Raises:
            InputError: a file cannot be read, or has become shorter.
        """
        for member in self._members:
            if member.end > begin:
                yield from _bytes_of(member, folder, max(0, begin - member.offset))
        end = self.size - len(_END)
        yield _END[max(0, begin - end) :]


def _header(entry: Entry) -> bytes:
    found = tarfile.TarInfo(entry.name)
    found.mtime = entry.mtime_ns // 1_000_000_000
    found.mode = entry.mode
    if entry.kind == "d":
        found.type = tarfile.DIRTYPE
    elif entry.kind == "l":
        found.type, found.linkname = tarfile.SYMTYPE, entry.target
    else:
        found.size = entry.size
    return found.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _bytes_of(member: _Member, folder: Path, skip: int) -> Iterator[bytes]:
    """Yield header, content and padding of a member, without the first bytes."""
    if skip < len(member.header):
        yield member.header[skip:]
    begin = max(0, skip - len(member.header))
    left = member.data_bytes - begin
    if left > 0:
        path = bytes(folder) + b"/" + as_bytes(member.entry.name)
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - a name that may not be a text
                file.seek(begin)
                while left:
                    chunk = file.read(min(left, _CHUNK))
                    if not chunk:
                        raise InputError(f"{shown(member.entry.name)} has become shorter")
                    left -= len(chunk)
                    yield chunk
        except OSError as error:
            raise InputError(f"{shown(member.entry.name)}: {error.strerror}") from error
    padding = member.end - member.data_offset - member.data_bytes
    already = max(0, begin - member.data_bytes)
    yield b"\0" * (padding - already)
