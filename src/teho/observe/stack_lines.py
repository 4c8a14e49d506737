"""Writes the file of a node's stack sampler: one JSON object a line."""

from __future__ import annotations

import contextlib
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from teho.model.stack import Frame, State, is_library
from teho.patterns import lazy_pattern
from teho.source.text import LONGEST_TEXT, one_line
from teho.unwind.code import Code
from teho.unwind.stack import Key, Place

__all__ = ["StackLines"]

_MOST_BYTES = 16 * 1024**2
"""Maximum size of the file."""
_ROOM_SHARE = 0.25
_MOST_STACKS = 50_000
_MOST_LINES = 20
"""Number of lines from which the text of an expression is taken."""
_LONGEST_FILE = 1 << 22
_PACKAGES = lazy_pattern(rb"(/\S*/(?:site|dist)-packages)/")
_MOST_TRIES = 5
"""How often the memory map of a process is read until it has a library."""


class StackLines:
    """The file of one node; the first lines create it.

    Args:
        spool: its folder.
    """

    def __init__(self, spool: Path) -> None:
        self._path = spool / f"stacks-{os.getpid()}.jsonl"
        self._waiting: list[dict[str, Any]] = []
        self._frames: dict[tuple[object, ...], int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._places: list[Frame] = []
        """The frames, by their numbers."""
        self._times: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
        """Process and its pid -> stack -> its time, in ms."""
        self._packages: set[str] = set()
        """Folders with libraries that the processes have loaded."""
        self._tries: Counter[int] = Counter()
        self._size = 0
        self._is_full = False
        self._process = ""
        self._wanted: dict[str, set[tuple[str, int]]] = {}
        """Process -> lines that are in no file, such as a notebook's."""

    def began(self, process: str, now_s: float) -> None:
        """Add the time from which a process is sampled."""
        self._append({"process": process, "began_s": round(now_s, 4)})

    def ended(self, process: str, now_s: float, status: int | None) -> None:
        """Add that a process has ended.

        Args:
            process: the name of its probe's file.
            now_s: monotonic time.
            status: how it ended, as of wait; None: this is not known.
        """
        self._append({"process": process, "ended_s": round(now_s, 4), "status": status})

    def stays(
        self,
        process: str,
        pid: int,
        times_s: tuple[float, float],
        dead: Sequence[tuple[int, int]],
        others: Sequence[Key],
        blocked_on: str | None,
    ) -> None:
        """Add what a process that stays in one line waits for.

        Args:
            process: the name of its probe's file.
            pid: its pid in this namespace.
            times_s: since when it stays there, and the present time, both monotonic.
            dead: its children that have ended: pid and status.
            others: stacks of its other threads that wait for a lock.
            blocked_on: the file of a file system that does not answer.
        """
        self._process = process
        numbers = [self._stack(pid, key) for key in others]
        since_s, now_s = (round(one, 4) for one in times_s)
        figures = {"since_s": since_s, "at_s": now_s, "dead": dead, "others": numbers}
        self._append({"process": process, "stays": {**figures, "blocked_on": blocked_on}})

    def left(self, process: str) -> None:
        """Add that a process has continued."""
        self._append({"process": process, "stays": {}})

    def failed(self, process: str, why: str) -> None:
        """Add the reason why a process is not sampled."""
        self._append({"process": process, "failed": why})

    def gave_up(self, why: str) -> None:
        """Add the reason why sampling ended early."""
        self._append({"gave_up": why})

    def add(
        self,
        process: str,
        pid: int,
        seen: Mapping[tuple[Key, State], list[float]],
        watched: Mapping[Place, list[int]],
        figures: Mapping[str, float],
    ) -> None:
        """Add the samples of a process.

        Args:
            process: the name of its probe's file.
            pid: its pid in this namespace.
            seen: stack and state -> [samples, wall s].
            watched: innermost place -> [how often the thread stayed there, how often not].
            figures: further figures of this time.
        """
        if not seen or self._is_full:
            return
        self._process = process
        self._find_packages(pid)
        by_stack: dict[int, dict[str, list[float]]] = {}
        for (key, state), (samples, wall_s) in seen.items():
            number = self._stack(pid, key)
            self._times[process, pid][number] += round(1000 * wall_s)
            states = by_stack.setdefault(number, {})
            before = states.get(state.value, [0, 0.0])
            states[state.value] = [before[0] + samples, round(before[1] + wall_s, 5)]
        stayed = {
            self._frame(pid, code, offset, is_innermost=True): counts
            for (code, offset), counts in watched.items()
        }
        self._append({"process": process, **figures, "seen": by_stack, "stayed": stayed})

    def _find_packages(self, pid: int) -> None:
        """Find the folders of a process's libraries, also if no sample has a function of them."""
        if self._tries[pid] >= _MOST_TRIES:
            return
        self._tries[pid] += 1
        try:
            content = Path(f"/proc/{pid}/maps").read_bytes()
        except OSError:  # it has ended
            return
        if found := {os.fsdecode(one) for one in _PACKAGES.findall(content)}:
            self._packages |= found
            self._tries[pid] = _MOST_TRIES

    @property
    def has_room(self) -> bool:
        """Whether most of the file's maximum size is left."""
        return self._size < _ROOM_SHARE * _MOST_BYTES

    def frame_at(self, process: str, pid: int, place: Place, *, is_innermost: bool) -> Frame:
        """Return a place of a stack as the file describes it.

        Args:
            process: the name of its probe's file.
            pid: its pid in this namespace.
            place: the place.
            is_innermost: whether it is the innermost one of the stack.
        """
        self._process = process
        return self._places[self._frame(pid, *place, is_innermost=is_innermost)]

    def _append(self, line: dict[str, Any]) -> None:
        if not self._is_full:
            self._waiting.append(line)

    def _stack(self, pid: int, key: Key) -> int:
        numbers = tuple(
            self._frame(pid, code, offset, is_innermost=place == 0)
            for place, (code, offset) in enumerate(key)
        )
        number = self._stacks.get(numbers)
        if number is None:
            if numbers and len(self._stacks) >= _MOST_STACKS:
                return -1
            number = self._stacks[numbers] = len(self._stacks)
            if not numbers:  # a stack without functions: Python begins or ends
                numbers = (len(self._frames),)
                self._frames["<python>",] = numbers[0]
                self._add_frame(numbers[0], ["<python>", "", 0, ""])
            self._append({"stack": number, "frames": numbers})
        return number

    def _add_frame(self, number: int, place: list[Any]) -> None:
        self._places.append(msgspec.convert(place[:4], Frame))
        self._append({"frame": number, "is": place})

    def _frame(self, pid: int, code: Code, offset: int, *, is_innermost: bool) -> int:
        """Return the number of a place; the first call adds its line.

        Of the frames of a library, only the innermost one gets a line number and a text.
        """
        has_text = is_innermost or not is_library(code.file)
        # The file is a part of the key: two scripts may have functions of the same name.
        key = (code.file, code.function, code.first_line, offset, has_text)
        number = self._frames.get(key)
        if number is None:
            number = self._frames[key] = len(self._frames)
            self._add_frame(number, self._described(pid, code, offset, has_text=has_text))
        return number

    def _described(self, pid: int, code: Code, offset: int, *, has_text: bool) -> list[Any]:
        """Return file, function, line and text; the text is a call, or the whole line."""
        if not has_text or code.file.startswith("<frozen"):
            return [code.file, code.function, 0, ""]
        line, begin, end = code.place(offset)
        line = line or code.first_line
        text = _line_of(pid, code.file, line)
        if not text and not code.file.startswith("<"):
            self._wanted.setdefault(self._process, set()).add((code.file, line))
        if begin is not None and end is not None:  # columns count bytes
            text = text[begin:end]
        words = text.decode("utf-8", "replace").strip()
        if (span := code.lines(offset)) and not text.rstrip().endswith(b":"):
            words = _joined(pid, code.file, *span) or words
        words = words[:LONGEST_TEXT]
        place: list[Any] = [code.file, code.function, line, words]
        return place if words or begin is None else [*place, begin, end]

    def search_sources(self) -> None:
        """Add what the program's source shows about the stacks: repeated calls and slow queries."""
        # Only the end of a run needs these modules.
        from teho.observe.source_search import source_lines

        stacks = [[self._places[number] for number in numbers] for numbers in self._stacks]
        numbers = {frame: number for number, frame in enumerate(self._places)}
        try:
            for line in source_lines(
                self._times, stacks, numbers, _lines_of, sorted(self._packages)
            ):
                self._append(line)
        except Exception as error:  # noqa: BLE001 - the source may be anything
            self._append({"not_searched": f"{type(error).__name__}: {error}"})

    def flush(self, cost_s: float) -> None:
        """Write all new lines. If this fails, the next call tries again.

        Args:
            cost_s: CPU time of the sampler so far.
        """
        self._ask_for_texts()
        if not self._waiting or self._is_full:
            return
        lines = [*self._waiting, {"cost_s": round(cost_s, 4)}]
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        if self._size + len(data) > _MOST_BYTES:
            self._is_full = True
            data = msgspec.json.encode({"full": True}) + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(self._path, flags, 0o600)
        except OSError:
            return
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                file.seek(self._size)
                if file.write(data) == len(data):
                    self._size += len(data)
                    self._waiting = []
            file.truncate(self._size)  # if the disk is full

    def _ask_for_texts(self) -> None:
        """Ask each process for the text of its lines, in its `.seen` file."""
        for process, places in self._wanted.items():
            text = "".join(f"{line} {file}\n" for file, line in sorted(places))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            with contextlib.suppress(OSError):
                descriptor = os.open(self._path.with_name(f"{process}.seen"), flags)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(text.encode("utf-8", "surrogateescape"))
        self._wanted = {}


def _joined(pid: int, path: str, first: int, begin: int, last: int, end: int) -> str:
    """Return an expression of several lines as one line."""
    lines = [_line_of(pid, path, line) for line in range(first, min(last, first + _MOST_LINES) + 1)]
    if last - first <= _MOST_LINES:
        lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    return one_line(lines)


def _line_of(pid: int, path: str, line: int) -> bytes:
    """Return a line of a program's file; empty if the file cannot be read.

    Args:
        pid: the process, which may see other files than this process.
        path: its path in the process.
        line: its number; the first is 1.
    """
    if line < 1 or path.startswith("<"):
        return b""
    lines = _lines_of(pid, path)
    return lines[line - 1] if line <= len(lines) else b""


@lru_cache(maxsize=200)
def _lines_of(pid: int, path: str) -> list[bytes]:
    """Return the lines of a file as the process sees it; empty if it is not a regular file."""
    seen = f"/proc/{pid}/root{path}" if path.startswith("/") else f"/proc/{pid}/cwd/{path}"
    try:
        found = Path(seen)
        if not found.is_file() or found.stat().st_size > _LONGEST_FILE:
            return []
        return found.read_bytes().split(b"\n")
    except OSError:
        return []
