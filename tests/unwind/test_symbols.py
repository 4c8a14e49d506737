"""Functions, calls and lines in compiled programs, compared with what binutils say."""

from __future__ import annotations

import random
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from native_programs import built, needs_cc
from teho.unwind.call_sites import called_import, may_jump_away
from teho.unwind.exponents import with_exponent
from teho.unwind.function_names import readable_name
from teho.unwind.line_table import LineTable
from teho.unwind.loaded_files import LoadedFiles
from teho.unwind.symbols import Symbols

needs_binutils = pytest.mark.skipif(
    not (shutil.which("nm") and shutil.which("objdump") and shutil.which("addr2line")),
    reason="no binutils on this machine",
)


def said(*command: str | Path) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("_ZN4mesh6Solver4stepEv", "mesh::Solver::step"),
        ("_ZNKSt6vectorIdSaIdEE4sizeEv", "std::vector::size"),
        ("_ZN1aILb1EE1bEv", "a::b"),
        ("_ZNSo9_M_insertIdEERSoT_", "std::ostream::_M_insert"),
        ("_ZNSolsEd", "std::ostream::operator<<"),
        ("_ZN12_GLOBAL__N_13fooEv", "foo"),
        ("_ZN6ThingsD2Ev", "Things::~Things"),
        ("_Z3foov", "foo"),
        ("_ZL3foov", "foo"),
        ("_ZSt4sqrtf", "std::sqrt"),
        ("_Znwm", "operator new"),
        ("step.constprop.0", "step"),
        ("step.isra.0.part.1", "step"),
        ("memcpy@GLIBC_2.2.5", "memcpy"),
        # Names that are not read are kept.
        ("main._omp_fn.0", "main._omp_fn.0"),
        ("__mesh_MOD_step", "__mesh_MOD_step"),
        ("_ZZN3foo3barEvENKUlvE_clEv", "_ZZN3foo3barEvENKUlvE_clEv"),
        ("_Z", "_Z"),
        ("_ZN", "_ZN"),
        ("_ZN9", "_ZN9"),
    ],
)
def test_names(name: str, text: str) -> None:
    assert readable_name(name) == text


@needs_cc
@needs_binutils
@pytest.mark.parametrize("version", ["-gdwarf-2", "-gdwarf-4", "-gdwarf-5"])
def test_functions_and_lines(tmp_path: Path, version: str) -> None:
    program = built(tmp_path, "own", "-O2", version)
    symbols = Symbols([str(program)], "own")
    places = {
        words[-1]: (int(words[0], 16), int(words[1], 16))
        for line in said("nm", "-S", program)
        if len(words := line.split()) == 4 and words[2] in "tT"
    }
    for name in ("main", "first", "second"):
        begin, size = places[name]
        for address in (begin, begin + size // 2, begin + size - 1):
            assert symbols.function_at(address) == (begin, name)
            (expected,) = said("addr2line", "-e", program, hex(address))
            expected = expected.rpartition("/")[2].partition(" ")[0]
            assert symbols.line_at(address) == ("" if "?" in expected else expected)
    assert symbols.function_at(1) == (0, "")


@needs_cc
@needs_binutils
def test_calls_of_imported_functions(tmp_path: Path) -> None:
    for options in ((), ("-fno-plt",), ("-fcf-protection",)):
        program = built(tmp_path, "text", "-O2", *options)
        symbols = Symbols([str(program)], "text")
        lines = said("objdump", "-d", "--no-show-raw-insn", program)
        calls = 0
        for line, after in pairwise(lines):
            if "call" in line and "fprintf" in line and after.startswith(" "):
                calls += 1
                address = int(after.partition(":")[0], 16)
                assert called_import(symbols, address) == "fprintf"
                assert called_import(symbols, address + 1) == ""
        assert calls


@needs_cc
@needs_binutils
def test_constant_exponents(tmp_path: Path) -> None:
    for options in ((), ("-fno-plt",), ("-O3", "-mavx")):
        program = built(tmp_path, "powers", "-O2", *options)
        symbols = Symbols([str(program)], "powers")
        lines = said("objdump", "-d", "--no-show-raw-insn", program)
        returns = [
            int(after.partition(":")[0], 16)
            for line, after in pairwise(lines)
            if "call" in line and "<pow@" in line
        ]
        shown = {
            with_exponent(called_import(symbols, address), symbols, address) for address in returns
        }
        assert shown == {"pow", "pow(x, 3)"}


@needs_cc
def test_a_stripped_program_has_places_instead_of_names(tmp_path: Path) -> None:
    program = built(tmp_path, "own", "-O2")
    whole = Symbols([str(program)], "own")
    subprocess.run(["strip", program], check=True)
    stripped = Symbols([str(program)], "own")
    starts = [begin for begin, _ in whole.ranges_of("second")]
    assert starts
    for begin in starts:
        assert stripped.function_at(begin + 5) == (begin, "")
    assert stripped.line_at(starts[0]) == ""


def test_a_tail_call_leaves_no_trace(tmp_path: Path) -> None:
    path = next((one for one in LoadedFiles("/proc/self").spans if one.name == "libc.so.6"), None)
    if path is None:
        pytest.skip("another C library")
    symbols = Symbols([path.path], "libc.so.6")
    (malloc,) = symbols.ranges_of("malloc")[:1]
    assert symbols.function_at(malloc[0])[1] in {"malloc", "__libc_malloc"}
    assert isinstance(may_jump_away(symbols, *malloc), bool)
    assert any(symbols.is_chosen(begin) for begin, _ in symbols.ranges_of("memcpy"))


@needs_cc
def test_damaged_files_are_no_error(tmp_path: Path) -> None:
    good = built(tmp_path, "own", "-O2", "-g").read_bytes()
    bad = tmp_path / "bad"
    rolls = random.Random(7)
    for _ in range(150):
        data = bytearray(good[: rolls.randrange(len(good))] if rolls.random() < 0.3 else good)
        for _ in range(rolls.randrange(40)):
            place = rolls.choice([rolls.randrange(64), rolls.randrange(len(data) or 1)])
            if place < len(data):
                data[place] = rolls.randrange(256)
        bad.write_bytes(data)
        try:
            symbols = Symbols([str(bad)], "bad")
        except ValueError:
            continue
        for address in (0, 0x1100, 0x1200, 1 << 62):
            symbols.function_at(address)
            symbols.line_at(address)
            called_import(symbols, address)
            may_jump_away(symbols, address, address + 50)
        assert symbols.is_unoptimised in {True, False}


def test_a_damaged_line_table_has_no_lines() -> None:
    assert LineTable(b"\x20\0\0\0\x05\0\x08\0" + b"\xff" * 28, {}).at(5) == ""
    assert LineTable(b"", {}).at(5) == ""


def test_the_code_of_this_process() -> None:
    files = LoadedFiles("/proc/self")
    span = files.spans[0]
    assert files.at(span.begin) == files.at(span.end - 1) == span
    assert files.at(span.begin - 1) is None
    assert files.range_of("/no/such/file") == (0, 0)
