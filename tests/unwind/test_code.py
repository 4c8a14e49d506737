"""Lines and columns are those that each Python itself gives for its code."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.unwind.code import Code, _number, _signed, read_code
from teho.unwind.layout import layout_of
from teho.unwind.memory import Memory, UnwindError
from unwind.programs import EACH, NAMES

MODULES = ("textwrap", "argparse", "asyncio.base_events", "dataclasses", "json.encoder")

# Prints the tables of code objects, and what this Python reads from them.
ASK = """
import dis, importlib.util, json, sys, types

def codes(code):
    yield code
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from codes(value)

def lines_of(code, size):
    lines = [None] * size
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            for offset in range(start, end, 2):
                lines[offset // 2] = line
        return lines
    starts = list(dis.findlinestarts(code))
    for (start, line), (end, _) in zip(starts, starts[1:] + [(2 * size, 0)]):
        for offset in range(start, end, 2):
            lines[offset // 2] = line
    return lines

for name in sys.argv[1:]:
    path = name if name.endswith(".py") else importlib.util.find_spec(name).origin
    with open(path, encoding="utf-8") as file:
        whole = compile(file.read(), path, "exec", dont_inherit=True)
    for code in codes(whole):
        size = len(code.co_code) // 2
        print(json.dumps({
            "name": "%s:%d %s" % (name, code.co_firstlineno, code.co_name),
            "table": getattr(code, "co_linetable", code.co_lnotab).hex()
            if sys.version_info >= (3, 10) else code.co_lnotab.hex(),
            "first": code.co_firstlineno,
            "lines": lines_of(code, size),
            "positions": list(code.co_positions()) if hasattr(code, "co_positions") else None,
        }))
"""


FORMS = """
def gaps(value):
    value += 1
{gap}
    value += 2
{long_gap}
    return value

def wide(a, b):
    {long_line}
    return [{long_list}]

def other_letters(s, f):
    s = 'äöü€𐌰' + f('ß', s); return f(s)('𐌰', s)

def backwards(f, g):
    return f(
        g(1,
          2),
        g
        (3),
{gap}
        g(4),
    )(5)

def kept(f):
    for n in f():
        try:
            with f(n) as x, f(x):
                f(x if n
                  else f)
        except (f,
            g):
            raise f from None
        finally:
            f(n)
    else:
        return {a: [b for b in f()] for a in f} if f else 3
    while f:
        if f(1) < f(2) < f(3): continue
        break

@print
@print.__call__
class Some(
    object, metaclass=
    type):
    @property
    def one(self): return f'{self} {self!r:>{3}}'
    async def two(self):
        async with self as a:
            async for b in a:
                yield await b
        return
    three = [x for x in range(3)
             if x]

def {long_name}(): return (lambda: (yield))
"""


def unusual_source() -> str:
    """Return a program with long lines, long gaps between lines and lines in another order."""
    parts = {
        "gap": "\n" * 300,
        "long_gap": "\n" * 40_000,
        "long_line": "; ".join(f"a = b + {number}" for number in range(60)),
        "long_list": "a, " * 300,
        "long_name": "n" * 300,
    }
    source = FORMS
    for name, text in parts.items():
        source = source.replace("{" + name + "}", text)
    return source


def code_of(table: bytes, first_line: int, version: tuple[int, int]) -> Code:
    return Code("file.py", "function", first_line, table, version, 0, b"")


def ask(python: str, *options: str) -> list[dict[str, Any]]:
    printed = subprocess.run(
        [python, *options], capture_output=True, check=True, encoding="utf-8"
    ).stdout
    return [json.loads(line) for line in printed.splitlines()]


def check(one: dict[str, Any], version: tuple[int, int]) -> int:
    """Compare each instruction of one code object; return the number of those without a line."""
    code = code_of(bytes.fromhex(one["table"]), one["first"], version)
    without = 0
    for number, line in enumerate(one["lines"]):
        found = code.place(2 * number)
        wanted: tuple[int | None, int | None, int | None] = (line, None, None)
        if line is None:
            without += 1
            if version >= (3, 11):  # no line: 0
                wanted = (0, None, None)
            else:  # the line of an instruction before it
                assert version == (3, 10), one["name"]
                assert found[0] in {*one["lines"], one["first"]}, (one["name"], number)
                wanted = (found[0], None, None)
        elif version >= (3, 11):
            begin_line, end_line, begin, end = one["positions"][number]
            assert begin_line == line
            # Columns are given only for what is in one line.
            if None not in {end_line, begin, end} and end_line == line:
                wanted = (line, begin, end)
        assert found == wanted, (one["name"], number)
    return without


@pytest.mark.parametrize(("python", "version"), EACH, ids=NAMES)
def test_lines_and_columns_are_as_python_reads_them(
    tmp_path: Path, python: str, version: tuple[int, int]
) -> None:
    script, source = tmp_path / "ask.py", tmp_path / "unusual.py"
    script.write_text(ASK)
    source.write_text(unusual_source(), encoding="utf-8")
    found = ask(python, str(script), *MODULES, str(source))
    assert len(found) > 200
    without = sum(check(one, version) for one in found)
    # From 3.10 on, Python has instructions without a line.
    assert bool(without) == (version >= (3, 10))


@pytest.mark.parametrize(("python", "version"), EACH, ids=NAMES)
def test_without_columns_the_lines_are_the_same(
    tmp_path: Path, python: str, version: tuple[int, int]
) -> None:
    if version < (3, 11):
        pytest.skip("before 3.11 Python has no columns")
    script, source = tmp_path / "ask.py", tmp_path / "unusual.py"
    script.write_text(ASK)
    source.write_text(unusual_source(), encoding="utf-8")
    found = ask(python, "-X", "no_debug_ranges", str(script), "textwrap", str(source))
    for one in found:
        check(one, version)
        code = code_of(bytes.fromhex(one["table"]), one["first"], version)
        for number in range(len(one["lines"])):
            assert code.place(2 * number)[1:] == (None, None)


@pytest.mark.parametrize(("python", "version"), EACH, ids=NAMES)
def test_before_its_first_instruction_a_function_is_at_its_beginning(
    tmp_path: Path, python: str, version: tuple[int, int]
) -> None:
    """A function that has just been called has not executed an instruction yet."""
    script = tmp_path / "ask.py"
    script.write_text(ASK)
    for one in ask(python, str(script), "textwrap"):
        code = code_of(bytes.fromhex(one["table"]), one["first"], version)
        lines = {line for line in one["lines"] if line is not None}
        assert code.place(-2)[0] in {0, one["first"], *lines}, one["name"]


# ---- numbers ----


def number_bytes(value: int) -> bytes:
    """Encode a number as `Objects/locations.md` describes it."""
    digits = []
    while value >= 64:
        digits.append(value & 63 | 64)
        value >>= 6
    return bytes([*digits, value])


def signed_bytes(value: int) -> bytes:
    return number_bytes(-value << 1 | 1 if value < 0 else value << 1)


@given(st.lists(st.integers(0, 2**40)))
def test_numbers_are_read_one_after_the_other(values: list[int]) -> None:
    data = iter(b"".join(map(number_bytes, values)))
    assert [_number(data) for _ in values] == values
    assert not list(data)


@given(st.lists(st.integers(-(2**40), 2**40)))
def test_signed_numbers_are_read_one_after_the_other(values: list[int]) -> None:
    data = iter(b"".join(map(signed_bytes, values)))
    assert [_signed(data) for _ in values] == values
    assert not list(data)


@pytest.mark.parametrize(
    ("data", "value"), [(b"\x00", 0), (b"\x3f", 63), (b"\x40\x01", 64), (b"\x7f\x03", 255)]
)
def test_numbers_have_six_bits_in_a_byte(data: bytes, value: int) -> None:
    assert _number(iter(data)) == value


# ---- what is damaged ----

VERSIONS = [(3, minor) for minor in range(8, 15)]


@given(
    st.sampled_from(VERSIONS),
    st.binary(max_size=60),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-2, 300),
)
def test_any_table_gives_a_place(
    version: tuple[int, int], table: bytes, first_line: int, offset: int
) -> None:
    """A process goes on while it is read: what is read as a table may be something else."""
    line, begin, end = code_of(table, first_line, version).place(offset)
    assert isinstance(line, int)
    assert (begin is None) == (end is None)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_table_gives_the_first_line(version: tuple[int, int]) -> None:
    assert code_of(b"", 7, version).place(0) == (7, None, None)


class Garbage(Memory):
    """A memory with the same bytes again and again."""

    def __init__(self, data: bytes) -> None:
        self.data = data * (2**15 // len(data) + 1)

    def some(self, address: int, most_bytes: int) -> bytes:
        begin = address % 4096
        return self.data[begin : begin + most_bytes]


@given(st.sampled_from([*VERSIONS[:5]]), st.binary(min_size=1, max_size=200), st.data())
def test_what_is_no_code_object_is_refused(
    version: tuple[int, int], data: bytes, more: st.DataObject
) -> None:
    memory = Garbage(data)
    layout = layout_of(version, memory, 0)
    try:
        code = read_code(memory, layout, more.draw(st.integers(0, 4095)), version)
    except UnwindError:
        return
    assert len(code.file) <= 4096
    code.place(more.draw(st.integers(-2, 500)))


class Objects(Memory):
    """A memory in which strings and tables can be put."""

    def __init__(self) -> None:
        self.data = bytearray(os.sysconf("SC_PAGE_SIZE"))

    def add(self, data: bytes) -> int:
        address = len(self.data)
        self.data += data + bytes(-len(data) % 16)
        return address

    def some(self, address: int, most_bytes: int) -> bytes:
        return bytes(self.data[address : address + most_bytes])


def type_in(memory: Objects, name: bytes) -> int:
    """Put a type into a memory; what it is called stands behind the head of every type."""
    body = bytearray(64)
    struct.pack_into("<Q", body, 24, memory.add(name + b"\0"))
    return memory.add(bytes(body))


def code_in(
    memory: Objects, version: tuple[int, int], texts: list[int], table: int, kind: bytes = b"code"
) -> int:
    """Put a code object into a memory: the addresses of its file, name and long name."""
    layout = layout_of(version, memory, 0)
    body = bytearray(512)
    struct.pack_into("<Q", body, layout.object_type, type_in(memory, kind))
    struct.pack_into("<Q", body, layout.code_filename, texts[0])
    struct.pack_into("<Q", body, layout.code_name, texts[1])
    if layout.code_qualname is not None:
        struct.pack_into("<Q", body, layout.code_qualname, texts[2])
    struct.pack_into("<Q", body, layout.code_linetable, table)
    struct.pack_into("<i", body, layout.code_firstlineno, 42)
    return memory.add(bytes(body))


def text_in(memory: Objects, version: tuple[int, int], text: str) -> int:
    layout = layout_of(version, memory, 0)
    highest = max(map(ord, text), default=0)
    width = 1 if highest < 256 else 2 if highest < 65536 else 4
    is_ascii = text.isascii()
    head = bytearray(layout.str_ascii if is_ascii else layout.str_other)
    struct.pack_into("<Q", head, layout.str_size, len(text))
    head[layout.str_state] = width << 2 | 1 << 5 | (1 << 6 if is_ascii else 0)
    coding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[width]
    return memory.add(bytes(head) + text.encode(coding, "surrogatepass"))


def table_in(memory: Objects, version: tuple[int, int], table: bytes) -> int:
    layout = layout_of(version, memory, 0)
    head = bytearray(layout.bytes_data)
    struct.pack_into("<Q", head, layout.bytes_size, len(table))
    return memory.add(bytes(head) + table + b"\0")


no_halves = st.text(st.characters(exclude_categories=["Cs"]), max_size=1500)


@given(st.sampled_from(VERSIONS[:5]), no_halves, no_halves, st.binary(max_size=3000))
def test_names_and_tables_of_any_length_are_read(
    version: tuple[int, int], file: str, name: str, table: bytes
) -> None:
    memory = Objects()
    texts = [text_in(memory, version, one) for one in (file, "short", name)]
    if version < (3, 11):
        texts[1] = texts[2]
    at = code_in(memory, version, texts, table_in(memory, version, table))
    code = read_code(memory, layout_of(version, memory, 0), at, version)
    assert (code.file, code.function, code.first_line) == (file, name, 42)
    assert code.table == table


@pytest.mark.parametrize("version", VERSIONS[:5])
def test_a_name_or_table_that_is_none_is_refused(version: tuple[int, int]) -> None:
    memory = Objects()
    layout = layout_of(version, memory, 0)
    good = text_in(memory, version, "good.py")
    table = table_in(memory, version, b"\x80\x00")
    not_string = bytearray(80)
    struct.pack_into("<Q", not_string, layout.str_size, 4)
    not_string[layout.str_state] = 3 << 2
    too_long = bytearray(80)
    struct.pack_into("<Q", too_long, layout.str_size, 1 << 20)
    too_long[layout.str_state] = 1 << 6
    for bad in (memory.add(bytes(not_string)), memory.add(bytes(too_long)), 1 << 40):
        for texts in ([bad, good, good], [good, bad, bad]):
            with pytest.raises(UnwindError):
                read_code(memory, layout, code_in(memory, version, texts, table), version)
    endless = bytearray(80)
    struct.pack_into("<Q", endless, layout.bytes_size, 1 << 62)
    for bad in (memory.add(bytes(endless)), 1 << 40):
        with pytest.raises(UnwindError):
            read_code(memory, layout, code_in(memory, version, [good] * 3, bad), version)
    with pytest.raises(UnwindError):
        read_code(memory, layout, 1 << 40, version)
    for kind in (b"codec", b"cod", b"function"):
        other = code_in(memory, version, [good] * 3, table, kind)
        with pytest.raises(UnwindError, match="does not point to a function"):
            read_code(memory, layout, other, version)
