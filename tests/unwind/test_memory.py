"""Memory of another process, and its number in its namespace."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from teho.unwind.memory import Memory, UnwindError
from teho.unwind.stack import innermost_pid
from unwind.programs import (
    Program,
    closing,
)


def test_memory_is_read_as_it_is(program: Callable[..., Program]) -> None:
    code = """
    import ctypes
    buffer = ctypes.create_string_buffer(bytes(range(256)))
    say(ctypes.addressof(buffer))
    time.sleep(600)
    """
    running = program(textwrap.dedent(code))
    (address,) = running.line()
    with closing(Memory(running.pid)) as memory:
        assert memory.read(address, 256) == bytes(range(256))
        assert memory.some(address, 16) == bytes(range(16))
        assert memory.pointer(address) == 0x0706050403020100
        for nowhere in (0, 1, 2**47 - 8, 2**63 - 8, 2**63, 2**64 - 1, -1):
            assert memory.some(nowhere, 16) == b""
            with pytest.raises(UnwindError, match="no such address"):
                memory.read(nowhere, 16)
            with pytest.raises(UnwindError, match="no such address"):
                memory.pointer(nowhere)


def test_a_process_has_its_own_number_in_its_namespace() -> None:
    status = Path("/proc/self/status").read_text()
    (numbers,) = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")]
    assert innermost_pid(os.getpid()) == int(numbers[-1])
    assert innermost_pid(2**22 + 5) == 2**22 + 5
