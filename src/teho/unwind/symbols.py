"""The functions of a program or library, from the symbols in its ELF file.

Source: System V ABI, chapters 4 and 5 (ELF-64, little endian), and the Linux Standard Base for
`.eh_frame_hdr`. No tool and no debug information is needed. A function without a symbol is named
by its first byte, such as `libc.so.6+0x55780`.
"""

from __future__ import annotations

import contextlib
import lzma
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from teho.unwind.elf import SYMBOL
from teho.unwind.elf_file import ElfData, ElfFile, Section
from teho.unwind.function_names import readable_name
from teho.unwind.line_table import LineTable

__all__ = ["Symbols"]

_MOST_BYTES = 8 << 20
"""Symbols or names of one file that are read, at most: a larger table is left out."""
_SYMBOL_TABLE, _DYNAMIC_SYMBOLS, _RELOCATIONS = 2, 11, 4
_EH_FRAME = 0x6474E550
_CHOOSER = 10
_FUNCTIONS = frozenset({2, _CHOOSER})
"""Types of symbols: a function, and a function that selects the function for this processor."""
_RELOCATION = struct.Struct("<QQq")
_TO_SLOT = frozenset({6, 7, 1025, 1026})
"""Relocations that write the address of an imported function: of x86-64 and of aarch64."""
_LONGEST = 65_536
"""A symbol without a size (written in assembler) has at most this number of bytes."""
_LINE_SECTIONS = frozenset((b".debug_line", b".debug_str", b".debug_line_str"))
_MOST_LINE_BYTES = 128 << 10
_PRODUCERS = (b"GNU C", b"GNU F", b"GNU GIMPLE")
"""How GCC names itself in debug information, with its options: C, C++, Fortran, linking."""


class Symbols:
    """The functions of one ELF file. Addresses are those in the file.

    Args:
        paths: where it can be read; the first path that exists is read.
        name: its name, for functions without a symbol.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a 64-bit little-endian ELF file.
    """

    def __init__(self, paths: Sequence[str], name: str) -> None:
        self.name = name
        self._choosers: set[int] = set()
        try:
            self._file = ElfFile(paths)
            self._frames = self._read_frames()
            self._starts, self._ends, self._labels, self._texts = self._functions()
        except (struct.error, IndexError, OverflowError) as error:
            raise ValueError(f"{name} is damaged: {error}") from None
        self._names: dict[int, str] = {}

    def read_from(self, paths: Sequence[str]) -> None:
        """Read the rest of the file from other paths: the process in the path may have ended."""
        self._file.paths = paths

    def virtual_of(self, offset: int) -> int | None:
        """Return the address of a byte of the file; None if the byte is not loaded."""
        return self._file.virtual_of(offset)

    def code_before(self, virtual: int, size: int) -> bytes:
        """Return the bytes before an address; empty if they cannot be read."""
        return self.code_at(virtual - size, size)

    def code_at(self, virtual: int, size: int) -> bytes:
        """Return the bytes at an address; empty if they cannot be read."""
        try:
            return self._file.bytes_at(virtual, size)
        except OSError:  # the file has been deleted
            return b""

    def function_at(self, virtual: int) -> tuple[int, str]:
        """Return the first byte and the name of the function at an address.

        Of a function without a symbol, the name is empty. If nothing is known of the address, the
        first byte is 0.
        """
        place = bisect_right(self._starts, virtual) - 1
        if place >= 0 and virtual < self._ends[place]:
            start = self._starts[place]
            if start not in self._names:
                self._names[start] = self._name(self._labels[place])
            return start, self._names[start]
        place = bisect_right(self._frames, virtual) - 1
        return (self._frames[place], "") if place >= 0 else (0, "")

    def ranges_of(self, name: str) -> list[tuple[int, int]]:
        """Return where the functions of a name begin and end; several versions may exist."""
        return [(self._starts[place], self._ends[place]) for place in self._places.get(name, ())]

    def is_chosen(self, start: int) -> bool:
        """Return whether a function only selects another function for this processor."""
        return start in self._choosers

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, label in enumerate(self._labels):
            places.setdefault(self._name(label), []).append(place)
        return places

    def _name(self, label: int) -> str:
        text = self._texts[label >> 32]
        begin = label & 0xFFFFFFFF
        return readable_name(text[begin : text.find(b"\0", begin)].decode("utf-8", "replace"))

    def _functions(self) -> tuple[array[int], array[int], array[int], list[bytes]]:
        """Return the begins, ends and names of all functions with a symbol, by address."""
        found: dict[int, tuple[int, int]] = {}
        texts: list[bytes] = []
        for data in self._symbol_sources():
            for section in data.sections:
                if section.kind not in {_SYMBOL_TABLE, _DYNAMIC_SYMBOLS}:
                    continue
                text = _text_of(data, section)
                if text is None:
                    continue
                number = len(texts) << 32
                texts.append(text)
                symbols = data.read(section.offset, section.size // SYMBOL.size * SYMBOL.size)
                for name, info, _, where, value, size in SYMBOL.iter_unpack(symbols):
                    if info & 15 in _FUNCTIONS and where and value and value not in found:
                        found[value] = size, number | name
                        if info & 15 == _CHOOSER:
                            self._choosers.add(value)
        starts = array("Q", sorted(found))
        ends = array("Q", (start + found[start][0] for start in starts))
        for place, start in enumerate(starts):
            if ends[place] == start:
                frame = bisect_right(self._frames, start)
                after = (*starts[place + 1 : place + 2], *self._frames[frame : frame + 1])
                ends[place] = min((start + _LONGEST, *after))
        return starts, ends, array("Q", (found[start][1] for start in starts)), texts

    def _symbol_sources(self) -> Iterator[ElfData]:
        """Yield the file, and the small file inside it that some Linux systems add.

        Red Hat's systems remove the symbols from their libraries, and add them again in
        compressed form (`.gnu_debugdata`).
        """
        yield self._file
        for section in self._file.sections:
            if section.name == b".gnu_debugdata" and section.size <= _MOST_BYTES:
                packed = self._file.read(section.offset, section.size)
                try:
                    inside = lzma.LZMADecompressor().decompress(packed, _MOST_BYTES)
                    yield ElfData(inside)
                except (lzma.LZMAError, ValueError):
                    continue

    def _read_frames(self) -> array[int]:
        """Return where functions begin, from the table for exceptions (`.eh_frame_hdr`)."""
        frames = array("Q")
        for one in self._file.segments:
            if one.kind != _EH_FRAME or one.size > _MOST_BYTES:
                continue
            data = self._file.read(one.offset, one.size)
            # Version 1; the encodings that all linkers use.
            if data[:1] != b"\1" or data[2:4] != b"\x03\x3b":
                continue
            (count,) = struct.unpack_from("<I", data, 8)
            table = data[12 : 12 + min(count, (len(data) - 12) // 8) * 8]
            frames.extend(sorted(one.virtual + at for at, _ in struct.iter_unpack("<ii", table)))
        return frames

    @cached_property
    def imports(self) -> dict[int, str]:
        """The slots for addresses of imported functions: address of the slot -> function."""
        try:
            return dict(self._read_imports())
        except (OSError, struct.error, IndexError):
            return {}

    def _read_imports(self) -> Iterator[tuple[int, str]]:
        data = self._file
        for section in data.sections:
            if section.kind != _RELOCATIONS or section.size > _MOST_BYTES:
                continue
            if section.link >= len(data.sections):
                continue
            linked = data.sections[section.link]
            text = _text_of(data, linked) if linked.kind == _DYNAMIC_SYMBOLS else None
            if text is None:
                continue
            symbols = data.read(linked.offset, linked.size)
            whole = data.read(section.offset, section.size // _RELOCATION.size * _RELOCATION.size)
            for slot, info, _ in _RELOCATION.iter_unpack(whole):
                if info & 0xFFFFFFFF in _TO_SLOT and (info >> 32) * SYMBOL.size < len(symbols):
                    begin = SYMBOL.unpack_from(symbols, (info >> 32) * SYMBOL.size)[0]
                    name = text[begin : text.find(b"\0", begin)].decode("utf-8", "replace")
                    yield slot, readable_name(name)

    def line_at(self, virtual: int) -> str:
        """Return `FILE:LINE` of an address; empty if the file has no debug information."""
        return self._lines.at(virtual)

    @cached_property
    def _lines(self) -> LineTable:
        parts: dict[bytes, bytes] = {}
        for one in self._file.sections:
            if one.name in _LINE_SECTIONS and not one.is_compressed:
                # Reading 100 kB takes some 0.1 s.
                most = _MOST_LINE_BYTES if one.name == b".debug_line" else _MOST_BYTES
                with contextlib.suppress(OSError):
                    parts[one.name] = (
                        self._file.read(one.offset, one.size) if one.size <= most else b""
                    )
        return LineTable(parts.pop(b".debug_line", b""), parts)

    @cached_property
    def is_unoptimised(self) -> bool:
        """Whether GCC's note of its options says that no file was compiled with optimisation.

        Without debug information, or from another compiler, this is False: it is not known.
        """
        producers: list[bytes] = []
        for section in self._file.sections:
            if section.name not in {b".debug_str", b".debug_line_str"} or section.is_compressed:
                continue
            if section.size > _MOST_BYTES:
                return False
            try:
                texts = self._file.read(section.offset, section.size).split(b"\0")
            except OSError:
                return False
            producers += [one for one in texts if one.startswith(_PRODUCERS)]
        return bool(producers) and not any(
            part.startswith(b"-O") and part != b"-O0" for one in producers for part in one.split()
        )


def _text_of(data: ElfData, section: Section) -> bytes | None:
    """Return the names of a table of symbols; None if the table is too large or damaged."""
    if section.link >= len(data.sections):
        return None
    names = data.sections[section.link]
    if max(section.size, names.size) > _MOST_BYTES:
        return None
    return data.read(names.offset, names.size)
