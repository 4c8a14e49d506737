"""Addresses of symbols in the program and libraries of a running process.

Source: System V ABI, chapters 4 and 5 (ELF-64, little endian).
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from teho.unwind.memory import UnwindError

__all__ = ["HEADER", "SECTION", "SEGMENT", "SYMBOL", "addresses_of"]

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SEGMENT = struct.Struct("<IIQQQQQQ")
SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC_SYMBOLS = 11
_LOADED = 1
_PAGE = 4096


def addresses_of(pid: int, symbol: str) -> Iterator[int]:
    """Yield the addresses of a symbol in the program and in each loaded `libpython`.

    Args:
        pid: the process.
        symbol: its name.

    Raises:
        UnwindError: the list of loaded files cannot be read.
    """
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines()
        program = str(Path(f"/proc/{pid}/exe").readlink())
    except OSError as error:
        raise UnwindError(
            f"the process's list of loaded files cannot be read: {error.strerror}"
        ) from None
    seen: set[str] = set()
    for line in lines:
        span, _, offset, *_, path = [*line.split(maxsplit=5), ""][:6]
        name = path.rpartition("/")[2]
        if path in seen or int(offset, 16) or not (path == program or "libpython" in name):
            continue
        seen.add(path)
        try:
            found = Path(f"/proc/{pid}/root{path}").stat()
            key = found.st_dev, found.st_ino, found.st_mtime_ns
            place = _place_of(f"/proc/{pid}/root{path}", symbol, key)
        except (OSError, ValueError, OverflowError, IndexError, struct.error):
            continue
        if place is not None:
            yield int(span.partition("-")[0], 16) + place


@functools.lru_cache(maxsize=64)
def _place_of(path: str, symbol: str, _file: tuple[int, int, int]) -> int | None:
    """Return the offset of a symbol from the beginning of its loaded file; None if not found."""
    with Path(path).open("rb") as file:
        length = os.fstat(file.fileno()).st_size
        header = HEADER.unpack(file.read(HEADER.size))
        if header[0][:6] != b"\x7fELF\x02\x01":
            return None
        segments, sections = header[5], header[6]
        segment_size, segment_count, section_size, section_count = header[9:13]
        base = 0
        for number in range(segment_count):
            file.seek(segments + number * segment_size)
            kind, _, _, virtual, *_ = SEGMENT.unpack(file.read(SEGMENT.size))
            if kind == _LOADED:
                base = virtual // _PAGE * _PAGE
                break
        table = []
        for number in range(section_count):
            file.seek(sections + number * section_size)
            table.append(SECTION.unpack(file.read(SECTION.size)))
        for _, kind, _, _, offset, size, link, *_ in table:
            if kind != _DYNAMIC_SYMBOLS:
                continue
            if max(size, table[link][5]) > length:
                return None
            file.seek(offset)
            symbols = file.read(size // SYMBOL.size * SYMBOL.size)
            file.seek(table[link][4])
            names = file.read(table[link][5])
            wanted = names.find(b"\0" + symbol.encode() + b"\0") + 1
            for name, _, _, section, value, _ in SYMBOL.iter_unpack(symbols):
                if name == wanted and wanted and section:
                    return int(value - base)
    return None
