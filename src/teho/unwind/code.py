"""The functions of another process: their names, files and lines."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from teho.unwind.layout import Layout
from teho.unwind.memory import Memory, UnwindError

__all__ = [
    "FIRST_TASK",
    "LONGEST_CODE_BYTES",
    "ONE_OF_TASKS",
    "ONLY_TASK",
    "THREAD",
    "Code",
    "head_bytes",
    "mark_of",
    "read_code",
    "text_of",
]

_POINTER = struct.Struct("<Q")
_INT = struct.Struct("<i")
_LONGEST_TEXT = 4096
LONGEST_CODE_BYTES = 1 << 24
"""Limit for the offset of an instruction."""
_LONGEST_TABLE = 1 << 22
# State of `str`: bits 2 to 4 are the bytes per character, bit 6 is set if all are ASCII.
_ASCII = 1 << 6
_CODINGS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}
_AT_ONCE_BYTES = 512
# `tp_name` follows the head of an object of variable size, in every Python with a GIL.
_TYPE_NAME = 24
_CODE_NAME = b"code\0"
_MARK_BYTES = 128
"""Bytes of a name that are compared: its length, its hash and the beginning of its text."""


@dataclass(eq=False, slots=True)  # compared by identity
class Code:
    """A code object of another process."""

    file: str
    """Path, as the program names it."""
    function: str
    """Qualified name from Python 3.11 on, else the name."""
    first_line: int
    table: bytes
    """Lines and columns of its instructions."""
    version: tuple[int, int]
    instructions: int
    """Address of its first instruction."""
    mark: bytes
    """Bytes that identify it, because its address may be used again."""

    def place(self, offset: int) -> tuple[int, int | None, int | None]:
        """Return the line of an instruction, and its columns in bytes if Python knows them.

        Args:
            offset: offset of the instruction, in bytes.
        """
        if self.version >= (3, 11):
            line, begin, last, end = _span_3_11(self.table, self.first_line, offset)
            return (line, begin, end) if line == last else (line, None, None)
        if self.version == (3, 10):
            return _line_3_10(self.table, self.first_line, offset), None, None
        return _line_3_8(self.table, self.first_line, offset), None, None

    def lines(self, offset: int) -> tuple[int, int, int, int] | None:
        """Return where an expression of several lines is; None if it has one, or it is not known.

        Args:
            offset: offset of the instruction, in bytes.

        Returns:
            Its first line and the column in it, and its last line and the column behind it.
        """
        if self.version < (3, 11):
            return None
        line, begin, last, end = _span_3_11(self.table, self.first_line, offset)
        if last <= line or begin is None or end is None:
            return None
        return line, begin, last, end


THREAD = Code(
    file="<thread>", function="", first_line=0, table=b"", version=(0, 0), instructions=0, mark=b""
)
"""Separates the functions of a thread from those of the thread that waits for it."""
ONLY_TASK, FIRST_TASK, ONE_OF_TASKS = (
    Code(
        file="<task>", function=function, first_line=0, table=b"", version=(0, 0), instructions=0,
        mark=b"",
    )
    for function in ("only", "only, others wait for a lock", "one of several")
)  # fmt: skip
"""Separate the coroutines of a task from what waits for the task. The first two: no other task
waits for something outside of the program. The second one: some of them wait for a lock."""


def read_code(memory: Memory, layout: Layout, address: int, version: tuple[int, int]) -> Code:
    """Read the code object at an address.

    Raises:
        UnwindError: another object is at this address.
    """
    head = memory.read(address, head_bytes(layout))
    _expect_code(memory, _POINTER.unpack_from(head, layout.object_type)[0])

    def pointer(offset: int) -> int:
        return int(_POINTER.unpack_from(head, offset)[0])

    name = layout.code_name if layout.code_qualname is None else layout.code_qualname
    first_line = _INT.unpack_from(head, layout.code_firstlineno)[0]
    return Code(
        file=text_of(memory, layout, pointer(layout.code_filename)),
        function=text_of(memory, layout, pointer(name)),
        first_line=first_line,
        table=_bytes(memory, layout, pointer(layout.code_linetable)),
        version=version,
        instructions=address + layout.code_instructions,
        mark=mark_of(memory, layout, head),
    )


def _expect_code(memory: Memory, kind: int) -> None:
    """Raise UnwindError if a type is not the type of code objects.

    A frame that is read while Python creates or leaves it may contain any pointer.
    """
    if memory.read(memory.pointer(kind + _TYPE_NAME), len(_CODE_NAME)) != _CODE_NAME:
        raise UnwindError("a frame does not point to a function's code")


def mark_of(memory: Memory, layout: Layout, head: bytes) -> bytes:
    """Return bytes that identify a code object among others at the same address.

    A new function may get all the memory of a deleted one. So the addresses of its name and file
    are not enough: their text is compared.

    Args:
        memory: the process's.
        layout: its Python's.
        head: the first `head_bytes` of the code object.
    """
    texts = [
        memory.some(_POINTER.unpack_from(head, place)[0] + layout.str_size, _MARK_BYTES)
        for place in (layout.code_name, layout.code_filename)
    ]
    return b"".join(
        (
            head[layout.code_filename : layout.code_linetable + 8],
            head[layout.code_firstlineno : layout.code_firstlineno + 4],
            *texts,
        )
    )


def head_bytes(layout: Layout) -> int:
    """Return the number of bytes at the beginning of a code object that have its pointers."""
    return max(layout.code_linetable, layout.code_firstlineno) + 8


def _bytes(memory: Memory, layout: Layout, address: int) -> bytes:
    head = memory.some(address, _AT_ONCE_BYTES)
    if len(head) < layout.bytes_data:
        raise UnwindError("the table of line numbers of a function cannot be read")
    size = _POINTER.unpack_from(head, layout.bytes_size)[0]
    if size > _LONGEST_TABLE:
        raise UnwindError("the table of line numbers of a function is too long")
    return _part(memory, head, address, layout.bytes_data, size)


def text_of(memory: Memory, layout: Layout, address: int) -> str:
    """Return a string of the process.

    Raises:
        UnwindError: there is no string at this address.
    """
    head = memory.some(address, _AT_ONCE_BYTES)
    if len(head) < layout.str_ascii:
        raise UnwindError("the name of a function or its file cannot be read")
    size = _POINTER.unpack_from(head, layout.str_size)[0]
    bits = head[layout.str_state]
    if size > _LONGEST_TEXT:
        raise UnwindError("the name of a function or its file is too long")
    if bits & _ASCII:
        at, length, coding = layout.str_ascii, size, "ascii"
    else:
        width = bits >> 2 & 7
        if width not in _CODINGS:
            raise UnwindError("the name of a function or its file is not a string")
        at, length, coding = layout.str_other, size * width, _CODINGS[width]
    return _part(memory, head, address, at, length).decode(coding, "replace")


def _part(memory: Memory, head: bytes, address: int, at: int, size: int) -> bytes:
    """Return a part of an object, of which the first bytes were read before."""
    data = head[at : at + size]
    return data if len(data) == size else memory.read(address + at, size)


def _line_3_8(table: bytes, first_line: int, offset: int) -> int:
    """Read `co_lnotab` (Python 3.8, 3.9): pairs of steps, in instruction bytes and in lines."""
    address, line = 0, first_line
    for step, lines in zip(table[::2], table[1::2], strict=False):
        address += step
        if address > offset:
            break
        line += lines - 256 if lines > 127 else lines
    return line


def _line_3_10(table: bytes, first_line: int, offset: int) -> int:
    """Read the table of PEP 626 (Python 3.10): pairs of a range in bytes and a step in lines."""
    end, line = 0, first_line
    for step, lines in zip(table[::2], table[1::2], strict=False):
        if lines != 0x80:  # 128: these instructions have no line
            line += lines - 256 if lines > 127 else lines
        end += step
        if end > offset:
            break
    return line


def _span_3_11(
    table: bytes, first_line: int, offset: int
) -> tuple[int, int | None, int, int | None]:
    """Read the table of `Objects/locations.md` (from 3.11 on): entries of lines and columns.

    Returns:
        First line, column in it, last line, and column behind the expression.
    """
    data = iter(table)
    address, line = 0, first_line
    for head in data:
        kind = head >> 3 & 15
        last_delta = 0
        begin: int | None = None
        end: int | None = None
        if kind <= 9:  # short: columns in one more byte
            more = next(data, 0)
            begin = kind << 3 | more >> 4
            end = begin + (more & 15)
        elif kind <= 12:
            line += kind - 10
            begin, end = next(data, 0), next(data, 0)
        elif kind == 13:
            line += _signed(data)
        elif kind == 14:
            line += _signed(data)
            last_delta = _number(data)
            begin, end = _number(data) - 1, _number(data) - 1
        address += 2 * ((head & 7) + 1)
        if offset < address:
            if kind == 15:
                return 0, None, 0, None
            whole = begin is None or begin < 0 or end is None or end < 0
            return (line, None, line, None) if whole else (line, begin, line + last_delta, end)
    return line, None, line, None


def _number(data: Iterator[int]) -> int:
    """Read a number with six bits per byte, the lowest first."""
    value, shift = 0, 0
    for byte in data:
        value |= (byte & 63) << shift
        shift += 6
        if not byte & 64:
            break
    return value


def _signed(data: Iterator[int]) -> int:
    value = _number(data)
    return -(value >> 1) if value & 1 else value >> 1
