"""Symbols are found where the process has them."""

from __future__ import annotations

import mmap
import os
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.unwind.elf import addresses_of
from teho.unwind.memory import UnwindError
from unwind.programs import EACH, NAMES, Program

SYMBOL = "teho_symbol_of_a_test"
TELL = """
import ctypes
here = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
say(here)
time.sleep(600)
"""


@pytest.mark.parametrize(("python", "version"), EACH, ids=NAMES)
def test_the_runtime_of_each_python_is_found(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    running = program(TELL, python=python)
    wanted = running.line()
    assert list(addresses_of(running.pid, "_PyRuntime")) == wanted
    assert list(addresses_of(running.pid, "_PyRuntim")) == []
    assert list(addresses_of(running.pid, "PyRuntime")) == []
    assert list(addresses_of(running.pid, "")) == []
    # Python uses it, and another library defines it.
    assert list(addresses_of(running.pid, "malloc")) == []


def test_a_program_that_is_not_python_has_no_such_symbol(
    program: Callable[..., Program], tmp_path: Path
) -> None:
    running = program("say('ready'); os.execv('/bin/sleep', ['sleep', '600'])")
    running.line()
    exe = Path(f"/proc/{running.pid}/exe")
    while Path(sys.executable).resolve() == exe.resolve():
        assert running.process.poll() is None
    assert list(addresses_of(running.pid, "_PyRuntime")) == []


def test_a_process_that_has_ended_is_refused(program: Callable[..., Program]) -> None:
    running = program("")
    running.process.wait()
    with pytest.raises(UnwindError, match="cannot be read"):
        list(addresses_of(running.pid, "_PyRuntime"))


# ---- files that are no programs ----


def elf(**changes: int) -> bytes:
    """Return a small library that defines a symbol; some numbers in it can be changed."""
    names = b"\0other\0" + SYMBOL.encode() + b"\0"
    value = {
        "segments": 64, "segment_size": 56, "segment_count": 1, "virtual": 0x401000,
        "sections": 1024, "section_size": 64, "section_count": 3,
        "symbols": 256, "symbols_size": 72, "link": 2, "kind": 11,
        "names": 512, "names_size": len(names), "name": 7, "defined_in": 1, "value": 0x401234,
        "class": 2, "order": 1,
    }  # fmt: skip
    assert not set(changes) - set(value)
    value |= changes
    data = bytearray(2048)
    struct.pack_into(
        "<4sBBB9xHHIQQQIHHHHHH", data, 0, b"\x7fELF", value["class"], value["order"], 1,
        3, 62, 1, 0, value["segments"], value["sections"], 0, 64,
        value["segment_size"], value["segment_count"],
        value["section_size"], value["section_count"], 0,
    )  # fmt: skip
    struct.pack_into("<IIQQQQQQ", data, 64, 1, 5, 0, value["virtual"], 0, 2048, 2048, 4096)
    symbols = [(0, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0x77, 0),
               (value["name"], 17, 0, value["defined_in"], value["value"], 8)]  # fmt: skip
    for number, symbol in enumerate(symbols):
        struct.pack_into("<IBBHQQ", data, 256 + 24 * number, *symbol)
    data[512 : 512 + len(names)] = names
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, value["kind"], 2, 0, value["symbols"], value["symbols_size"], value["link"], 1, 8, 24),
        (2, 3, 2, 0, value["names"], value["names_size"], 0, 0, 1, 0),
    ]
    for number, section in enumerate(sections):
        struct.pack_into("<IIQQQQIIQQ", data, 1024 + 64 * number, *section)
    return bytes(data)


class Mapped:
    """Files that this process has loaded under the name of a Python library."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.maps: list[mmap.mmap] = []

    def load(self, data: bytes) -> Path:
        path = self.folder / f"libpython3.{len(self.maps)}.so"
        path.write_bytes(bytes(4096))
        with path.open("rb") as file:
            self.maps.append(mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ))
        path.write_bytes(data)
        return path

    def close(self) -> None:
        for one in self.maps:
            one.close()


@pytest.fixture
def mapped(tmp_path: Path) -> Iterator[Mapped]:
    files = Mapped(tmp_path)
    try:
        yield files
    finally:
        files.close()


def begin_of(path: Path) -> int:
    lines = Path("/proc/self/maps").read_text().splitlines()
    (found,) = [line for line in lines if line.endswith(str(path))]
    return int(found.partition("-")[0], 16)


def test_a_symbol_is_counted_from_the_begin_of_its_file(mapped: Mapped) -> None:
    first = mapped.load(elf())
    second = mapped.load(elf(virtual=0, value=0x10))
    found = set(addresses_of(os.getpid(), SYMBOL))
    assert found == {begin_of(first) + 0x234, begin_of(second) + 0x10}


def test_a_library_in_a_folder_with_an_unusual_name_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "größe  (deleted) 𐌰"
    folder.mkdir()
    files = Mapped(folder)
    try:
        path = files.load(elf())
        assert list(addresses_of(os.getpid(), SYMBOL)) == [begin_of(path) + 0x234]
    finally:
        files.close()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"#!/bin/sh\nexit 0\n",
        b"\x7fELF",
        elf()[:63],
        elf()[:64],
        elf()[:100],
        elf()[:1024],
        elf()[:1100],
        elf()[:-1024],
        bytes(4096),
        b"\xff" * 4096,
        elf()[:64] + b"\xff" * 4000,
    ],
    ids=[
        "empty", "text", "four bytes", "half a header", "only a header", "half a segment",
        "no sections", "half a section", "half of it", "zeros", "ones", "ones behind the header",
    ],
)  # fmt: skip
def test_a_file_that_is_no_program_is_passed_over(mapped: Mapped, data: bytes) -> None:
    mapped.load(data)
    assert list(addresses_of(os.getpid(), SYMBOL)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"class": 1},  # of 32 bits
        {"order": 2},  # big-endian
        {"kind": 2},  # not the symbols that are loaded
        {"defined_in": 0},  # only used here
        {"name": 8},
        {"name": 2**32 - 1},
        {"link": 3},
        {"link": 2**32 - 1},
        {"section_count": 0},
        {"section_count": 65535},
        {"section_size": 0},
        {"section_size": 65535},
        {"segment_count": 65535, "virtual": 0, "segments": 2000},
        {"segments": 2**63 - 1},
        {"segments": 2**64 - 1},
        {"sections": 2**63 - 1},
        {"sections": 2**64 - 1},
        {"symbols": 2**62},
        {"symbols": 2**64 - 1},
        {"symbols_size": 0},
        {"names": 2**62},
        {"names": 2**64 - 1},
        {"names_size": 0},
    ],
    ids=str,
)
def test_a_damaged_program_is_passed_over(mapped: Mapped, changes: dict[str, int]) -> None:
    mapped.load(elf(**changes))
    good = mapped.load(elf())
    assert list(addresses_of(os.getpid(), SYMBOL)) == [begin_of(good) + 0x234]


@pytest.mark.parametrize("size", [2**36, 2**48, 2**63 - 1, 2**64 - 1])
@pytest.mark.parametrize("field", ["symbols_size", "names_size"])
def test_a_size_beyond_the_end_of_the_file_takes_no_memory(
    mapped: Mapped, field: str, size: int
) -> None:
    """Whether the symbol is found does not matter; the read must not fail."""
    path = mapped.load(elf(**{field: size}))
    assert set(addresses_of(os.getpid(), SYMBOL)) <= {begin_of(path) + 0x234}


@given(st.lists(st.tuples(st.integers(0, 1215), st.integers(0, 255)), max_size=8), st.data())
def test_no_damage_raises_another_error(damage: list[tuple[int, int]], more: Any) -> None:
    data = bytearray(elf())
    for place, value in damage:
        data[place] = value
    cut = more.draw(st.one_of(st.just(len(data)), st.integers(0, len(data))))
    with tempfile.TemporaryDirectory() as folder:
        mapped = Mapped(Path(folder))
        try:
            mapped.load(bytes(data[:cut]))
            assert len(list(addresses_of(os.getpid(), SYMBOL))) <= 1
        finally:
            mapped.close()
