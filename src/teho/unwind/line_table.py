"""The source lines of a compiled program, if it was compiled with debug information (`-g`).

Source: DWARF Debugging Information Format, versions 2 to 5, section 6.2 (line number information).
Only the name of a file is kept, without its folder.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator

__all__ = ["LineTable"]

_V4, _V5 = 4, 5
_PATH = 1
_END = 0xFFFFFFF0
"""Lengths from here on are of the 64-bit format, which compilers do not write for usual sizes."""
_FIXED = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
"""Forms of a fixed size: data1, data2, data4, data8, data16."""
_STRING, _STRP, _LINE_STRP, _UDATA = 0x08, 0x0E, 0x1F, 0x0F
_STANDARD_OPERANDS = 9


class _Reader:
    """Reads numbers and texts one after the other."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data = data
        self.place = place

    def number(self, size: int) -> int:
        self.place += size
        return int.from_bytes(self.data[self.place - size : self.place], "little")

    def unsigned(self) -> int:
        """Read a number in LEB128."""
        value = shift = 0
        while True:
            byte = self.data[self.place]
            self.place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        """Read a signed number in LEB128."""
        value = shift = 0
        while True:
            byte = self.data[self.place]
            self.place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if byte & 0x40 else value

    def text(self) -> bytes:
        """Read a text that ends with a zero byte."""
        end = self.data.index(b"\0", self.place)
        text = self.data[self.place : end]
        self.place = end + 1
        return text


class LineTable:
    """From an address in the file to a file name and line.

    Args:
        lines: the section `.debug_line`.
        texts: the sections `.debug_str` and `.debug_line_str`, with their names.
    """

    def __init__(self, lines: bytes, texts: dict[bytes, bytes]) -> None:
        self._texts = texts
        self._files: list[str] = [""]
        rows: list[tuple[int, int, int]] = []
        try:
            for row in self._read(lines):
                rows.append((row[0], len(rows), row[1]))
        except (IndexError, ValueError):
            rows.clear()  # damaged, or of another version
        rows.sort()
        self._addresses = array("Q", (address for address, _, _ in rows))
        self._places = array("Q", (place for _, _, place in rows))

    def at(self, address: int) -> str:
        """Return `FILE:LINE` of an address; empty if it is not known."""
        index = bisect_right(self._addresses, address) - 1
        if index < 0 or not self._places[index]:
            return ""
        file, line = divmod(self._places[index], 1 << 32)
        return f"{self._files[file]}:{line}" if file and line else ""

    def _read(self, data: bytes) -> Iterator[tuple[int, int]]:
        place = 0
        while place + 4 < len(data):
            length = int.from_bytes(data[place : place + 4], "little")
            if length >= _END or length > len(data) - place - 4:
                return
            yield from self._unit(_Reader(data[place + 4 : place + 4 + length]))
            place += 4 + length

    def _unit(self, reader: _Reader) -> Iterator[tuple[int, int]]:
        """Yield the addresses and lines of one compiled file."""
        version = reader.number(2)
        if not 2 <= version <= _V5:
            return
        if version == _V5:
            reader.number(2)
        header_length = reader.number(4)
        program = reader.place + header_length
        step = reader.number(1)
        if version >= _V4:
            reader.number(1)
        reader.number(1)
        base, span, first = reader.number(1), reader.number(1), reader.number(1)
        base -= 256 if base > 127 else 0
        operands = [reader.number(1) for _ in range(first - 1)]
        names = self._names_new(reader) if version == _V5 else _names_old(reader)
        begin = len(self._files)
        self._files += [name.rpartition(b"/")[2].decode("utf-8", "replace") for name in names]
        # Files count from 0 in version 5, and from 1 before.
        shift = begin if version == _V5 else begin - 1
        reader.place = program
        yield from self._run(reader, step, base, span, first, operands, shift)

    def _run(
        self,
        reader: _Reader,
        step: int,
        base: int,
        span: int,
        first: int,
        operands: list[int],
        shift: int,
    ) -> Iterator[tuple[int, int]]:
        address, file, line = 0, 1, 1
        data, count = reader.data, len(self._files)
        while reader.place < len(data):
            code = data[reader.place]
            reader.place += 1
            if code >= first:
                address += (code - first) // span * step
                line += base + (code - first) % span
                yield address, self._place(file + shift, line, count)
            elif code == 0:
                length = reader.unsigned()
                following = reader.place + length
                kind = reader.number(1)
                if kind == 1:
                    yield address, 0
                    address, file, line = 0, 1, 1
                elif kind == 2:
                    address = reader.number(length - 1)
                reader.place = following
            elif code == 1:
                yield address, self._place(file + shift, line, count)
            elif code == 2:
                address += reader.unsigned() * step
            elif code == 3:
                line += reader.signed()
            elif code == 4:
                file = reader.unsigned()
            elif code == 8:
                address += (255 - first) // span * step
            elif code == _STANDARD_OPERANDS:
                address += reader.number(2)
            else:
                for _ in range(operands[code - 1]):
                    reader.unsigned()

    @staticmethod
    def _place(file: int, line: int, count: int) -> int:
        return (file << 32) | line if 0 < file < count and 0 < line < 1 << 32 else 0

    def _names_new(self, reader: _Reader) -> list[bytes]:
        """Return the files of a unit of version 5; the list of folders comes before them."""
        self._entries(reader)
        return self._entries(reader)

    def _entries(self, reader: _Reader) -> list[bytes]:
        forms = [(reader.unsigned(), reader.unsigned()) for _ in range(reader.number(1))]
        names = []
        for _ in range(reader.unsigned()):
            name = b""
            for content, form in forms:
                value: bytes = b""
                if form == _STRING:
                    value = reader.text()
                elif form in {_STRP, _LINE_STRP}:
                    section = b".debug_str" if form == _STRP else b".debug_line_str"
                    text, begin = self._texts.get(section, b"\0"), reader.number(4)
                    value = text[begin : text.index(b"\0", begin)]
                elif form == _UDATA:
                    reader.unsigned()
                elif form in _FIXED:
                    reader.number(_FIXED[form])
                else:
                    raise ValueError(f"form {form:#x} is not known")
                if content == _PATH:
                    name = value
            names.append(name)
        return names


def _names_old(reader: _Reader) -> list[bytes]:
    """Return the files of a unit of version 2 to 4."""
    while reader.text():
        pass
    names = []
    while name := reader.text():
        names.append(name)
        for _ in range(3):
            reader.unsigned()
    return names
