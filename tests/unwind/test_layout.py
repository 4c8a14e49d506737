"""The offsets of each Python are those of its own headers."""

from __future__ import annotations

import functools
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.unwind import layout as module
from teho.unwind.elf import addresses_of
from teho.unwind.layout import Layout, layout_of
from teho.unwind.memory import Memory, UnwindError
from unwind.programs import EACH, NAMES, Program, closing

HEAD = """
#define Py_BUILD_CORE 1
#include <stddef.h>
#include <stdio.h>
#include "Python.h"
#include "frameobject.h"
#if PY_VERSION_HEX < 0x03090000
#include "internal/pycore_pystate.h"
#else
#include "internal/pycore_runtime.h"
#include "internal/pycore_interp.h"
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_interpframe.h"
#elif PY_VERSION_HEX >= 0x030B0000
#include "internal/pycore_frame.h"
#endif
"""


class Words:
    """A memory that holds only some bytes, from address 0 on."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def some(self, address: int, most_bytes: int) -> bytes:
        return self.data[address : address + most_bytes]

    def read(self, address: int, size: int) -> bytes:
        data = self.some(address, size)
        if len(data) < size:
            raise UnwindError("the process's memory has no such address")
        return data


def expressions(version: tuple[int, int]) -> dict[str, str]:
    """Return what each field of a layout is in C; the other fields have no counterpart there."""

    def of(kind: str, field: str) -> str:
        return f"offsetof({kind}, {field})"

    thread, code = "PyThreadState", "PyCodeObject"
    found = {
        "interpreters": of("_PyRuntimeState", "interpreters.head"),
        "interpreter_next": of("PyInterpreterState", "next"),
        "thread_next": of(thread, "next"),
        "code_filename": of(code, "co_filename"),
        "code_name": of(code, "co_name"),
        "code_firstlineno": of(code, "co_firstlineno"),
        "code_linetable": of(code, "co_linetable" if version >= (3, 10) else "co_lnotab"),
        "object_type": of("PyObject", "ob_type"),
        "bytes_size": of("PyVarObject", "ob_size"),
        "bytes_data": of("PyBytesObject", "ob_sval"),
        "str_size": of("PyASCIIObject", "length"),
        "str_state": of("PyASCIIObject", "state"),
        "str_ascii": "sizeof(PyASCIIObject)",
        "str_other": "sizeof(PyCompactUnicodeObject)",
    }
    if version < (3, 11):
        return found | {
            "threads": of("PyInterpreterState", "tstate_head"),
            "thread_frame": of(thread, "frame"),
            "frame_previous": of("PyFrameObject", "f_back"),
            "frame_code": of("PyFrameObject", "f_code"),
            "frame_instruction": of("PyFrameObject", "f_lasti"),
        }
    frame, is_new = "_PyInterpreterFrame", version >= (3, 13)
    if version < (3, 12):
        foreign = "FRAME_OWNED_BY_FRAME_OBJECT + 1"
    else:
        foreign = "FRAME_OWNED_BY_" + ("CSTACK" if version < (3, 14) else "INTERPRETER")
    found |= {
        "threads": of("PyInterpreterState", "threads.head"),
        "thread_frame": of(thread, "current_frame" if is_new else "cframe"),
        "thread_native_id": of(thread, "native_thread_id"),
        "thread_chunk": of(thread, "datastack_chunk"),
        "frame_previous": of(frame, "previous"),
        "frame_code": of(frame, "f_executable" if is_new else "f_code"),
        "frame_instruction": of(frame, "instr_ptr" if is_new else "prev_instr"),
        "frame_owner": of(frame, "owner"),
        "code_qualname": of(code, "co_qualname"),
        "code_instructions": of(code, "co_code_adaptive"),
        "first_foreign_owner": foreign,
    }
    if not is_new:
        found["frame_pointer"] = of("_PyCFrame", "current_frame")
    return found


def of_headers(python: str, version: tuple[int, int], folder: Path) -> dict[str, int]:
    """Return the offsets by a Python's headers; skip, and say why, if they cannot be compiled."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("this machine has no C compiler")
    words = "import sysconfig; print(sysconfig.get_paths()['include'])"
    include = Path(subprocess.check_output([python, "-c", words], text=True).strip())
    if not (include / "internal").is_dir():
        pytest.skip(f"this Python has no headers in {include}")
    lines = [
        f'printf("{name} %ld\\n", (long)({expression}));'
        for name, expression in expressions(version).items()
    ]
    source, program = folder / "offsets.c", folder / "offsets"
    source.write_text(HEAD + "int main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    places = [include, include / "internal", include / "internal" / "mimalloc"]
    options = [f"-I{place}" for place in places]
    subprocess.run([compiler, "-w", *options, "-o", str(program), str(source)], check=True)
    printed = subprocess.check_output([str(program)], text=True)
    return {name: int(value) for name, value in map(str.split, printed.splitlines())}


@pytest.mark.parametrize(("python", "version"), EACH, ids=NAMES)
def test_offsets_are_those_of_the_headers(
    program: Callable[..., Program], tmp_path: Path, python: str, version: tuple[int, int]
) -> None:
    wanted = of_headers(python, version, tmp_path)
    if version < (3, 13):
        found = layout_of(version, Words(b""), 0)
    else:
        running = program("say('ready'); time.sleep(600)", python=python)
        running.line()
        with closing(Memory(running.pid)) as memory:
            found = layout_of(version, memory, next(addresses_of(running.pid, "_PyRuntime")))
    assert {name: getattr(found, name) for name in wanted} == wanted
    others = {name: value for name, value in found._asdict().items() if name not in wanted}
    # What a Python of this version does not have.
    expected: dict[str, int | None] = {"instruction_bytes": 2 if version == (3, 10) else 1}
    if version >= (3, 13):
        expected["frame_pointer"] = None
    if version < (3, 11):
        expected |= dict.fromkeys(
            ("frame_pointer", "thread_chunk", "thread_native_id", "frame_owner", "code_qualname")
        )
        expected |= {"code_instructions": 0, "first_foreign_owner": 0}
    assert others == expected


@pytest.mark.parametrize("version", [(2, 7), (3, 7), (3, 15), (4, 0)])
def test_an_unknown_version_is_named(version: tuple[int, int]) -> None:
    with pytest.raises(UnwindError, match=rf"\b{version[0]}\.{version[1]}\b"):
        layout_of(version, Words(bytes(4096)), 0)


# ---- what Python 3.13 and later publish ----


@functools.cache
def names_of(version: tuple[int, int]) -> list[str]:
    parts = (line.partition(": ") for line in module._PUBLISHED[version])
    return [
        f"{head}:{name}" if name else head
        for head, _, fields in parts
        for name in fields.split() or [""]
    ]


def words_of(version: tuple[int, int], /, **changes: int) -> list[int]:
    """Return the words that a process publishes: each is different, but for those checked."""
    names = names_of(version)
    values = {name: 1000 + 8 * number for number, name in enumerate(names)}
    values |= {
        "version": version[0] << 24 | version[1] << 16 | 0xF0,
        "free_threaded": 0,
        "object:ob_type": 8,
        "bytes:ob_size": 16,
        "unicode:length": 16,
    }
    values |= {name.replace("__", ":"): value for name, value in changes.items()}
    assert len(values) == len(names)
    return [values[name] for name in names]


def memory_of(words: list[int], magic: bytes = b"xdebugpy") -> Words:
    return Words(magic + struct.pack(f"<{len(words)}Q", *words))


PUBLISHING = pytest.mark.parametrize("version", list(module._PUBLISHED))


@PUBLISHING
def test_published_words_are_read_by_name(version: tuple[int, int]) -> None:
    words = words_of(version)
    found = layout_of(version, memory_of(words), 0)
    at = dict(zip(names_of(version), words, strict=True))
    assert isinstance(found, Layout)
    assert found.interpreters == at["runtime:interpreters_head"]
    assert found.threads == at["interpreter:threads_head"]
    assert found.thread_frame == at["thread:current_frame"]
    assert found.code_instructions == at["code:co_code_adaptive"]
    assert found.str_other == at["unicode:asciiobject_size"] + 16


@PUBLISHING
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 0x030900F0}, "another version"),
        ({"version": 0}, "another version"),
        ({"version": 2**64 - 1}, "another version"),
        ({"free_threaded": 1}, "GIL"),
        ({"object__ob_type": 16}, "not plausible"),
        ({"bytes__ob_size": 0}, "not plausible"),
        ({"unicode__length": 24}, "not plausible"),
    ],
)
def test_wrong_words_are_refused(
    version: tuple[int, int], changes: dict[str, int], reason: str
) -> None:
    with pytest.raises(UnwindError, match=reason):
        layout_of(version, memory_of(words_of(version, **changes)), 0)


@PUBLISHING
def test_words_that_are_not_there_are_refused(version: tuple[int, int]) -> None:
    words = words_of(version)
    with pytest.raises(UnwindError, match="does not publish"):
        layout_of(version, memory_of(words, magic=b"notdebug"), 0)
    with pytest.raises(UnwindError, match="does not publish"):
        layout_of(version, Words(bytes(8192)), 0)
    with pytest.raises(UnwindError, match="no such address"):
        layout_of(version, memory_of(words[:-1]), 0)
    with pytest.raises(UnwindError, match="no such address"):
        layout_of(version, Words(b""), 0)


@PUBLISHING
def test_words_of_an_unfinished_version_are_refused(version: tuple[int, int]) -> None:
    """Before its release, a Python of this version may have had a word more, or a word less."""
    words = words_of(version)
    for place in range(2, names_of(version).index("unicode:length")):
        for wrong in (words[:place] + words[place + 1 :], [*words[:place], 4711, *words[place:]]):
            with pytest.raises(UnwindError):
                layout_of(version, memory_of([*wrong, 0]), 0)


@given(st.sampled_from(list(module._PUBLISHED)), st.binary(max_size=2000))
def test_other_bytes_never_do_anything_else(version: tuple[int, int], data: bytes) -> None:
    for published in (data, b"xdebugpy" + data):
        with pytest.raises(UnwindError):
            layout_of(version, Words(published), 0)
