"""Stacks of a process's threads, read while they run."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Iterator

from teho.unwind.code import LONGEST_CODE_BYTES, Code, head_bytes, mark_of, read_code
from teho.unwind.elf import addresses_of
from teho.unwind.layout import Layout, layout_of
from teho.unwind.memory import Memory, UnwindError, read_file

__all__ = ["Key", "Place", "Unwinder", "innermost_pid"]

_MOST_FRAMES = 512
_MOST_CODES = 50_000
_BLOCK_BYTES = 1 << 14
"""Size of Python's blocks of frames (`DATA_STACK_CHUNK_SIZE`). Large functions have longer ones."""
_MOST_BLOCKS = 16
_SPARE_BYTES = 512
"""Bytes that are read from the beginning of the innermost frame."""
_NEAR = 1 << 15
"""Limit in bytes between a frame and the beginning of its block."""
_POINTER = struct.Struct("<Q")
_TAGS = 3
"""Low bits of a frame's pointer to its code that are not a part of the address (3.14)."""
_TRIES = 20
_FIRST_TRIES = 5
_TURN_S = 0.01
"""A thread that waits for its core usually gets it within this time."""
_TIMES = 5
"""Samples in a row with the same new last frame, until it is accepted as the outermost one."""
_ALWAYS_CHECKED = 3
"""Innermost functions that are always checked: their address may have been used again."""
_HELPERS = frozenset(("__init__", "<shim>"))
"""Files of hidden frames that Python 3.12 and 3.13 insert between functions."""
_FRAME_AND_VALUES_BYTES = 640
_MOST_LISTED = 4096
_MOST_OTHERS = 16
"""Threads of a process of which the running one is searched."""

Place = tuple[Code, int]
"""A function, and the offset of the instruction in it, in bytes."""
Key = tuple[Place, ...]
"""A whole stack, the innermost function first."""


class Unwinder:
    """Reads one process's main thread.

    Args:
        pid: the process.
        version: its Python's major and minor version.

    Raises:
        UnwindError: the process cannot be read; the message says why.
    """

    def __init__(self, pid: int, version: tuple[int, int]) -> None:
        self._memory = Memory(pid)
        try:
            self._version = version
            self._interpreter = 0
            self._layout, self.thread = self._find(pid)
            self._is_nested = innermost_pid(pid) != pid
            self._codes: dict[int, Code] = {}
            self._newest: frozenset[int] = frozenset()
            self.frames: list[int] = []
            """Addresses of the frames of the last stack of the main thread."""
            self._frame = _struct_of(self._layout)
            self._blocks = _Blocks(self._memory, self.thread, self._layout)
            self._root = self._candidate = self._times = 0
            self._try()
        except BaseException:
            self._memory.close()
            raise

    def _try(self) -> None:
        """Read the stack once, to see whether it can be read.

        The kernel may have taken the core from the thread while it created a frame. Then it needs
        its next turn on the core before its stack is consistent again.
        """
        for _ in range(_FIRST_TRIES - 1):
            with contextlib.suppress(UnwindError):
                self.sample()
                return
            time.sleep(_TURN_S)
        self.sample()

    def close(self) -> None:
        """Close the process's memory."""
        self._memory.close()

    def _find(self, pid: int) -> tuple[Layout, int]:
        why = "the process's Python has no symbol _PyRuntime"
        for runtime in addresses_of(pid, "_PyRuntime"):
            try:
                layout = layout_of(self._version, self._memory, runtime)
                return layout, self._main_thread(pid, layout, runtime)
            except UnwindError as error:
                why = str(error)
        raise UnwindError(why)

    def _main_thread(self, pid: int, layout: Layout, runtime: int) -> int:
        interpreter = self._last(runtime + layout.interpreters, layout.interpreter_next)
        self._interpreter = interpreter
        if layout.thread_native_id is None:
            return self._last(interpreter + layout.threads, layout.thread_next)
        # In a container with a PID namespace, the thread has the number of that namespace.
        own = innermost_pid(pid)
        found = [
            thread
            for thread in self._list(interpreter + layout.threads, layout.thread_next)
            if self._memory.pointer(thread + layout.thread_native_id) in {pid, own}
        ]
        if not found:
            raise UnwindError("Python does not know the main thread of the process")
        # Until a new thread runs, it has the number of the thread that made it. The oldest is last.
        return found[-1]

    def _last(self, begin: int, following: int) -> int:
        listed = list(self._list(begin, following))
        if not listed:
            raise UnwindError("the Python of the process has not started yet")
        return listed[-1]

    def _list(self, begin: int, following: int) -> Iterator[int]:
        """Yield the addresses in a linked list.

        Args:
            begin: where the address of the first one is.
            following: where, in each of them, the address of the next one is.
        """
        one = self._memory.pointer(begin)
        for _ in range(_MOST_LISTED):
            if not one:
                return
            yield one
            one = self._memory.pointer(one + following)

    @property
    def memory(self) -> Memory:
        """The process's memory."""
        return self._memory

    @property
    def layout(self) -> Layout:
        """The layout of the process's Python."""
        return self._layout

    def sample(self) -> Key:
        """Return the stack of the main thread.

        The thread runs during the sample, so the parts that are read may not fit together. Then all
        is read again at once: waiting would favour slow code.

        Raises:
            UnwindError: the process has ended or executes another program, or no attempt gave a
                consistent stack.
        """
        for _ in range(_TRIES - 1):
            with contextlib.suppress(UnwindError):
                return self._sample(is_last=False)
        return self._sample(is_last=True)

    def others(self) -> list[tuple[int, int]]:
        """Return the other threads that execute Python functions: number and address of each.

        The list is empty if the numbers are not known: before Python 3.11, and in a PID namespace
        in which the threads have other numbers than here.
        """
        layout = self._layout
        if layout.thread_native_id is None or self._is_nested:
            return []
        found = []
        with contextlib.suppress(UnwindError):  # a thread that ends takes itself off the list
            for thread in self._list(self._interpreter + layout.threads, layout.thread_next):
                if thread != self.thread and self._innermost(thread):
                    number = self._memory.pointer(thread + layout.thread_native_id)
                    found.append((number, thread))
        return found[:_MOST_OTHERS]

    def sample_thread(self, thread: int) -> Key:
        """Return the stack of another thread; empty if it has just left its last function.

        Args:
            thread: the address from `others`.

        Raises:
            UnwindError: see `sample`.
        """
        blocks = _Blocks(self._memory, thread, self._layout)
        newest, self._newest = self._newest, frozenset()  # its functions are all checked
        try:
            places, _, _ = self._walk(blocks, [])
        finally:
            self._newest = newest
        return tuple(places)

    def innermost(self) -> tuple[int, bytes]:
        """Return the address and content of the innermost frame. They change while Python runs.

        The instruction is not enough, because a loop returns to it. Then the frame's variables and
        values differ.

        Raises:
            UnwindError: see `sample`.
        """
        frame = self._innermost(self.thread)
        if not frame:
            return 0, b""
        return frame, self._memory.some(frame, _FRAME_AND_VALUES_BYTES)

    def place_in(
        self, innermost: tuple[int, bytes], checked: set[int] | None = None
    ) -> Place | None:
        """Return the place of a frame; None if it belongs to no function, or was just left.

        Args:
            innermost: the result of `innermost`.
            checked: the addresses of functions that were checked not long ago; gets the function's.
        """
        layout, data = self._layout, innermost[1]
        if len(data) < self._frame.size:
            return None
        fields = self._frame.unpack_from(data)
        is_object = layout.frame_owner is None
        if not is_object and fields[3] >= layout.first_foreign_owner:
            return None
        address = fields[1] if is_object else fields[0] & ~_TAGS
        code = self._codes.get(address) if checked and address in checked else None
        if code is None:
            try:
                code = self._code(address)
            except UnwindError:
                return None
        if checked is not None:
            checked.add(address)
        if is_object:
            return code, fields[2] * layout.instruction_bytes
        offset = fields[2] - code.instructions
        is_whole = -2 <= offset < LONGEST_CODE_BYTES and code.file not in _HELPERS
        return (code, offset) if is_whole else None

    def _innermost(self, thread: int) -> int:
        layout = self._layout
        frame = self._memory.pointer(thread + layout.thread_frame)
        if layout.frame_pointer is not None and frame:
            frame = self._memory.pointer(frame + layout.frame_pointer)
        return frame

    def _sample(self, *, is_last: bool) -> Key:
        frames: list[int] = []
        places, used, root = self._walk(self._blocks, frames)
        if root != self._root:
            # A frame that was just left has no valid predecessor. The outermost seldom changes.
            self._times = self._times + 1 if root == self._candidate else 0
            self._candidate = root
            if self._root and self._times < _TIMES and not is_last:
                raise UnwindError("the stack of the process ends at another frame than before")
            self._root = root
        self._newest, self.frames = frozenset(used), frames
        return tuple(places)

    def _walk(self, blocks: _Blocks, frames: list[int]) -> tuple[list[Place], set[int], int]:
        """Return the places of a thread, the addresses of their functions, and the last frame.

        Args:
            blocks: the thread's.
            frames: gets the address of the frame of each place.
        """
        layout = self._layout
        frame = blocks.begin()
        places: list[Place] = []
        used: set[int] = set()
        size, unpack, unit = self._frame.size, self._frame.unpack_from, layout.instruction_bytes
        is_object, foreign = layout.frame_owner is None, layout.first_foreign_owner
        base, block, last, root = 0, b"", -1, 0
        while frame and len(places) < _MOST_FRAMES:
            if not 0 <= frame - base <= last:
                base, block, last = blocks.find(frame, size)
            fields = unpack(block, frame - base)
            if is_object:
                previous, address, instruction = fields
                owner = -1
            else:
                address, previous, instruction, owner = fields
                address &= ~_TAGS
            root, frame = frame, previous
            if owner >= foreign:
                continue
            code = self._codes.get(address)
            if code is None or address not in self._newest or len(places) < _ALWAYS_CHECKED:
                code = self._code(address)
            if code.file in _HELPERS:
                continue
            used.add(address)
            offset = instruction * unit if is_object else instruction - code.instructions
            if not -2 <= offset < LONGEST_CODE_BYTES:
                raise UnwindError("the current instruction is not in the function of its frame")
            places.append((code, offset))
            frames.append(root)
        return places, used, root

    def _code(self, address: int) -> Code:
        """Return the code object at an address; read it again if another one is there now."""
        layout = self._layout
        known = self._codes.get(address)
        if known is not None:
            head = self._memory.read(address, head_bytes(layout))
            if mark_of(self._memory, layout, head) == known.mark:
                return known
        if len(self._codes) >= _MOST_CODES:
            self._codes.clear()
        code = self._codes[address] = read_code(self._memory, layout, address, self._version)
        return code


class _Blocks:
    """The memory blocks with a thread's frames, each read as a whole.

    Frames of generators, and all frames before Python 3.11, are outside of the blocks.
    """

    def __init__(self, memory: Memory, thread: int, layout: Layout) -> None:
        self._memory = memory
        self._pointed = layout.frame_pointer
        self._has_blocks = layout.thread_chunk is not None
        chunk = layout.thread_frame if layout.thread_chunk is None else layout.thread_chunk
        self._begin = thread + min(layout.thread_frame, chunk)
        self._size = abs(chunk - layout.thread_frame) + _POINTER.size
        self._frame = max(0, layout.thread_frame - chunk)
        self._chunk = max(0, chunk - layout.thread_frame)
        self._blocks: list[tuple[int, bytes]] = []
        self._next = 0

    def begin(self) -> int:
        """Read the newest block, and return the address of the innermost frame; 0 if none.

        Raises:
            UnwindError: the process has ended, or the thread has just changed to another block.
        """
        thread = self._memory.read(self._begin, self._size)
        frame = int(_POINTER.unpack_from(thread, self._frame)[0])
        if self._pointed is not None and frame:
            frame = self._memory.pointer(frame + self._pointed)
        self._blocks, self._next = [], 0
        if self._has_blocks and frame:
            self._next = _POINTER.unpack_from(thread, self._chunk)[0]
            used = frame - self._next + _SPARE_BYTES
            self._read(used if 0 < used < _NEAR else _BLOCK_BYTES)
        return frame

    def _read(self, size: int) -> None:
        """Read the next older block. Each block begins with the address of its predecessor."""
        data = self._memory.some(self._next, size)
        if len(data) < _POINTER.size:
            raise UnwindError("a block of frames cannot be read")
        self._blocks.append((self._next, data))
        self._next = _POINTER.unpack_from(data)[0]

    def find(self, frame: int, size: int) -> tuple[int, bytes, int]:
        """Return the block with a frame: its address, its content, its last offset for a frame.

        Raises:
            UnwindError: the frame cannot be read.
        """
        for base, data in self._blocks:
            if 0 <= frame - base <= len(data) - size:
                return base, data, len(data) - size
        if len(self._blocks) < _MOST_BLOCKS and 0 <= frame - self._next < _NEAR:
            self._read(max(_BLOCK_BYTES, frame - self._next + size))
            return self.find(frame, size)
        return frame, self._memory.read(frame, size), 0


def _struct_of(layout: Layout) -> struct.Struct:
    """Return a struct that reads a frame's code, previous frame, instruction and owner."""
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
    """Return a process's number in its PID namespace."""
    lines = read_file(f"/proc/{pid}/status").splitlines()
    found = [int(line.split()[-1]) for line in lines if line.startswith(b"NSpid:")]
    return found[0] if found else pid
