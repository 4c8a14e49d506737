"""The stack of a process's main thread, read while it runs."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple

from teho.unwind.code import Code, mark_in, read_code
from teho.unwind.elf import addresses_of
from teho.unwind.layout import Layout, layout_of
from teho.unwind.memory import Memory, UnwindError

__all__ = ["Key", "Place", "Stack", "Unwinder", "innermost_pid"]

_MOST_FRAMES = 512
_MOST_CODES = 50_000
_CHUNK_BYTES = 1 << 16
"""Python's blocks of frames are 16 KiB; a large function's own block may be more."""
_TAGS = 3
"""Low bits of a frame's pointer to its code that do not belong to the address (3.14)."""
_TRIES = 5
_FRAME_AND_VALUES_BYTES = 640
_MOST_LISTED = 4096

Place = tuple[Code, int]
"""A function, and the offset of the instruction in it, in bytes."""
Key = tuple[Place, ...]
"""A whole stack, the innermost function first."""


class Stack(NamedTuple):
    """One look at a thread."""

    key: Key
    top: int
    """Address of the innermost frame."""


class Unwinder:
    """Reads one process's main thread.

    Args:
        pid: the process.
        version: its Python's major and minor version.

    Raises:
        UnwindError: it cannot be read; the message says why.
    """

    def __init__(self, pid: int, version: tuple[int, int]) -> None:
        self._memory = Memory(pid)
        try:
            self._version = version
            self._layout, self.thread = self._find(pid)
            self._codes: dict[int, Code] = {}
            self._newest: frozenset[int] = frozenset()
            self._frame = _struct_of(self._layout)
            self._frame_bytes = self._frame.size
            self.look()
        except BaseException:
            self._memory.close()
            raise

    def close(self) -> None:
        """Let go of the process."""
        self._memory.close()

    def _find(self, pid: int) -> tuple[Layout, int]:
        why = "its Python has no symbol _PyRuntime"
        for runtime in addresses_of(pid, "_PyRuntime"):
            try:
                layout = layout_of(self._version, self._memory, runtime)
                return layout, self._main_thread(pid, layout, runtime)
            except UnwindError as error:
                why = str(error)
        raise UnwindError(why)

    def _main_thread(self, pid: int, layout: Layout, runtime: int) -> int:
        interpreter = self._last(runtime + layout.interpreters, layout.interpreter_next)
        if layout.thread_native_id is None:
            return self._last(interpreter + layout.threads, layout.thread_next)
        thread = self._memory.pointer(interpreter + layout.threads)
        # In a container with process numbers of its own, the thread knows the number there.
        own = innermost_pid(pid)
        for _ in range(_MOST_LISTED):
            if not thread:
                break
            if self._memory.pointer(thread + layout.thread_native_id) in {pid, own}:
                return thread
            thread = self._memory.pointer(thread + layout.thread_next)
        raise UnwindError("its main thread is not known to Python")

    def _last(self, begin: int, following: int) -> int:
        one = self._memory.pointer(begin)
        for _ in range(_MOST_LISTED):
            after = self._memory.pointer(one + following) if one else 0
            if not after:
                break
            one = after
        if not one:
            raise UnwindError("its Python has not begun yet")
        return one

    # ---- looking ----

    @property
    def memory(self) -> Memory:
        """The process's memory."""
        return self._memory

    def look(self) -> Stack:
        """Return where the main thread is.

        The thread goes on meanwhile: what does not fit together is read again.

        Raises:
            UnwindError: the process has ended or become another program, or what was read made
                no sense, however often.
        """
        for attempt in range(_TRIES):
            try:
                return self._look()
            except UnwindError:
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError

    def innermost(self) -> tuple[int, bytes]:
        """Return the address of the innermost frame, and what it holds: both change as Python runs.

        Its instruction alone would not do: a loop comes back to the same one. Its variables and
        the values that it works on differ then.

        Raises:
            UnwindError: as `look`.
        """
        frame = self._innermost()
        if not frame:
            return 0, b""
        try:
            return frame, os.pread(self._memory.descriptor, _FRAME_AND_VALUES_BYTES, frame)
        except OSError:
            raise UnwindError("its innermost frame is gone") from None

    def _innermost(self) -> int:
        layout = self._layout
        frame = self._memory.pointer(self.thread + layout.thread_frame)
        if layout.frame_pointer is not None and frame:
            frame = self._memory.pointer(frame + layout.frame_pointer)
        return frame

    def _look(self) -> Stack:
        layout, read, size = self._layout, self._memory.read, self._frame_bytes
        frame = self._innermost()
        if not frame:
            return Stack((), 0)
        base, block = 0, b""
        if layout.thread_chunk is not None:
            base = self._memory.pointer(self.thread + layout.thread_chunk)
            if 0 <= frame - base < _CHUNK_BYTES:
                block = read(base, frame - base + size)
        places: list[Place] = []
        used: set[int] = set()
        top = frame
        unpack, unit = self._frame.unpack_from, layout.instruction_bytes
        is_object, foreign = layout.frame_owner is None, layout.first_foreign_owner
        last = len(block) - size
        while frame and len(places) < _MOST_FRAMES:
            at = frame - base
            fields = unpack(block, at) if 0 <= at <= last else unpack(read(frame, size), 0)
            if is_object:
                previous, address, instruction = fields
                owner = -1
            else:
                address, previous, instruction, owner = fields
                address &= ~_TAGS
            frame = previous
            if owner >= foreign:
                continue
            code = self._codes.get(address)
            if code is None or address not in self._newest:
                code = self._code(address)
            used.add(address)
            offset = instruction * unit if is_object else instruction - code.instructions
            if not -2 <= offset < 1 << 24:
                raise UnwindError("an instruction is not in its function")
            places.append((code, offset))
        self._newest = frozenset(used)
        return Stack(tuple(places), top)

    def _code(self, address: int) -> Code:
        """Return the code object at an address, read again if it is not the one from before."""
        layout = self._layout
        known = self._codes.get(address)
        if known is not None:
            head = self._memory.read(
                address, max(layout.code_filename + 32, layout.code_firstlineno + 4)
            )
            if mark_in(head, layout) == known.mark:
                return known
        if len(self._codes) >= _MOST_CODES:
            self._codes.clear()
        code = self._codes[address] = read_code(self._memory, layout, address, self._version)
        return code


def _struct_of(layout: Layout) -> struct.Struct:
    """Return how a frame's code, previous frame, instruction and owner are read, by offset."""
    fields = [
        (layout.frame_code, "Q"),
        (layout.frame_previous, "Q"),
        (layout.frame_instruction, "i" if layout.frame_owner is None else "Q"),
    ]
    if layout.frame_owner is not None:
        fields.append((layout.frame_owner, "B"))
    form, at = "<", 0
    for offset, code in sorted(fields):
        form += f"{offset - at}x{code}"
        at = offset + struct.calcsize(f"<{code}")
    return struct.Struct(form)


def innermost_pid(pid: int) -> int:
    """Return a process's number in its own namespace."""
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:
        return pid
    found = [int(line.split()[-1]) for line in lines if line.startswith(b"NSpid:")]
    return found[0] if found else pid
