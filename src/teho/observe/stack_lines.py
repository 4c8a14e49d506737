"""The file in which a node's stack sampler says what it saw: one JSON object a line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from teho.model.watched import State, is_library
from teho.unwind.code import Code
from teho.unwind.stack import Key, Place

__all__ = ["StackLines"]

_MOST_BYTES = 16 * 1024**2
"""The file never grows beyond it."""
_LONGEST = 400
"""Characters of a line of the program."""
_MOST_STACKS = 50_000
_LONGEST_FILE = 1 << 22


class StackLines:
    """The lines of one node; the file is made with the first of them.

    Args:
        spool: its folder.
    """

    def __init__(self, spool: Path) -> None:
        self._path = spool / f"stacks-{os.getpid()}.jsonl"
        self._waiting: list[dict[str, Any]] = []
        self._frames: dict[tuple[object, ...], int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._size = 0
        self._is_full = False
        self._process = ""
        self._asked: dict[str, set[tuple[str, int]]] = {}
        """Process -> lines that no file has, such as those of a notebook's cells."""

    def began(self, process: str, now_s: float) -> None:
        """Say from when on a process is looked at."""
        self._add({"process": process, "began_s": round(now_s, 4)})

    def failed(self, process: str, why: str) -> None:
        """Say why a process is not."""
        self._add({"process": process, "failed": why})

    def gave_up(self, why: str) -> None:
        """Say why nothing more is looked at."""
        self._add({"gave_up": why})

    def saw(
        self,
        process: str,
        pid: int,
        seen: Mapping[tuple[Key, State], list[float]],
        watched: Mapping[Place, list[int]],
        about: Mapping[str, float],
    ) -> None:
        """Say where a process was since the last time.

        Args:
            process: the name of its probe's file.
            pid: its number here.
            seen: stack and state -> [looks, wall s].
            watched: innermost place -> how often the thread stayed there, and went on.
            about: further figures of that time.
        """
        if not seen or self._is_full:
            return
        self._process = process
        figures: dict[int, dict[str, list[float]]] = {}
        for (key, state), (looks, wall_s) in seen.items():
            of = figures.setdefault(self._stack(pid, key), {})
            before = of.get(state.value, [0, 0.0])
            of[state.value] = [before[0] + looks, round(before[1] + wall_s, 5)]
        stayed = {
            self._frame(pid, code, offset, is_innermost=True): counts
            for (code, offset), counts in watched.items()
        }
        self._add({"process": process, **about, "seen": figures, "stayed": stayed})

    def _add(self, line: dict[str, Any]) -> None:
        if not self._is_full:
            self._waiting.append(line)

    def _stack(self, pid: int, key: Key) -> int:
        if not key:
            return self._ending()
        numbers = tuple(
            self._frame(pid, code, offset, is_innermost=place == 0)
            for place, (code, offset) in enumerate(key)
        )
        number = self._stacks.get(numbers)
        if number is None:
            if len(self._stacks) >= _MOST_STACKS:
                return -1
            number = self._stacks[numbers] = len(self._stacks)
            self._add({"stack": number, "frames": numbers})
        return number

    def _ending(self) -> int:
        """Return the number of a stack without any function: Python begins or ends."""
        number = self._stacks.get(())
        if number is None:
            number = self._stacks[()] = len(self._stacks)
            frame = self._frames[("<python>",)] = len(self._frames)
            self._add({"frame": frame, "is": ["<python>", "", 0, ""]})
            self._add({"stack": number, "frames": [frame]})
        return number

    def _frame(self, pid: int, code: Code, offset: int, *, is_innermost: bool) -> int:
        """Return the number of a place, which is put into words the first time.

        Of a library's code only the call that is going on matters.
        """
        is_told = is_innermost or not is_library(code.file)
        # The file itself is a part: two programs of a script may have the same name.
        name = (code.file, code.function, code.first_line, offset, is_told)
        number = self._frames.get(name)
        if number is None:
            number = self._frames[name] = len(self._frames)
            self._add({"frame": number, "is": self._in_words(pid, code, offset, is_told=is_told)})
        return number

    def _in_words(self, pid: int, code: Code, offset: int, *, is_told: bool) -> list[Any]:
        """Return file, function, line and text; the text is a call, or the whole line."""
        if not is_told or code.file.startswith("<frozen"):
            return [code.file, code.function, 0, ""]
        line, begin, end = code.place(offset)
        line = line or code.first_line
        text = _line_of(pid, code.file, line)
        if not text and not code.file.startswith("<"):
            self._asked.setdefault(self._process, set()).add((code.file, line))
        if begin is not None and end is not None:  # columns count bytes
            text = text[begin:end]
        words = text.decode("utf-8", "replace").strip()[:_LONGEST]
        place: list[Any] = [code.file, code.function, line, words]
        return place if words or begin is None else [*place, begin, end]

    def flush(self, cost_s: float) -> None:
        """Write what waits: all of it or nothing, and then again the next time.

        Args:
            cost_s: CPU time of the sampler so far.
        """
        self._ask()
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
        try:
            if os.pwrite(descriptor, data, self._size) == len(data):
                self._size += len(data)
                self._waiting = []
            else:  # the disk is full
                os.ftruncate(descriptor, self._size)
        except OSError:
            os.ftruncate(descriptor, self._size)
        finally:
            os.close(descriptor)

    def _ask(self) -> None:
        """Ask each process for the text of its lines, in the file by which it knows of us."""
        for process, places in self._asked.items():
            text = "".join(f"{line} {file}\n" for file, line in sorted(places))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            with contextlib.suppress(OSError):
                descriptor = os.open(self._path.with_name(f"{process}.seen"), flags)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(text.encode("utf-8", "surrogateescape"))
        self._asked = {}


def _line_of(pid: int, path: str, line: int) -> bytes:
    """Return a line of a program's file; empty if it does not read.

    Args:
        pid: the process, whose files these are.
        path: as the process names it.
        line: its number, from 1 on.
    """
    if line < 1 or path.startswith("<"):
        return b""
    lines = _lines_of(pid, path)
    return lines[line - 1] if line <= len(lines) else b""


@lru_cache(maxsize=200)
def _lines_of(pid: int, path: str) -> list[bytes]:
    """Return the lines of a file as the process sees it; none if it is not a plain file."""
    seen = f"/proc/{pid}/root{path}" if path.startswith("/") else f"/proc/{pid}/cwd/{path}"
    try:
        found = Path(seen)
        if not found.is_file() or found.stat().st_size > _LONGEST_FILE:
            return []
        return found.read_bytes().split(b"\n")
    except OSError:
        return []
