"""The file in which the probe says what it saw: one JSON object a line."""

from __future__ import annotations

import os
import sys
from _json import encode_basestring_ascii
from itertools import islice
from math import isfinite

from _teho_probe.permit import permit

TYPE_CHECKING = False  # as in typing, which costs 5 ms that many a program never pays
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Dict, List, Tuple

    Stack = Tuple[Tuple[CodeType, int], ...]
    """Code and place in it, the innermost first."""
    Stacks = Dict[Stack, List[float]]

__all__ = ["Lines", "in_words", "is_library", "place_in_words"]

_MOST_BYTES = 16 * 1024**2
"""A file never grows beyond it, whatever the program does."""
_MOST_NAMES_BYTES = 1024**2
"""Of the folder itself, which grows with its files: some 20,000 to 50,000 of them."""
_LONGEST = 400
"""Characters of a line of the program."""
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/_teho_probe/", "/lib/python3.", "<frozen ")
_MOST_STACKS = 20_000
"""Different ones that are told of; the time in all others is that of stack -1."""


class Lines:
    """The lines of one process; the file is made with the first of them.

    Args:
        folder: where.
        began_s: monotonic time at which the process was first looked at.
    """

    def __init__(self, folder: str, began_s: float) -> None:
        self._folder = folder
        self._file = "%d-%d.jsonl" % (os.getpid(), int(began_s * 1e6))
        self._began_s = began_s
        self._size = 0
        self._is_full = False
        self._frames: dict[tuple[object, ...], int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._until_s = began_s
        self._answered = 0
        """Bytes of the file in which lines are asked for that only this process has."""

    def write(
        self, stacks: Stacks, notes: list[dict[str, Any]], now_s: float, cost_s: float, *,
        is_end: bool,
    ) -> bool:  # fmt: skip
        """Say where the time went since the last call that did, and tell whether this one did.

        Args:
            stacks: stack -> [looks, wall s, CPU s, s for which Python code ran].
            notes: what else is to be said, a line each.
            now_s: monotonic time.
            cost_s: CPU time of the probe so far.
            is_end: whether nothing comes after this.
        """
        if self._is_full:
            return True
        known = len(self._frames), len(self._stacks)
        is_written = False
        try:
            words = notes + self._texts() + self._words(stacks, now_s, cost_s)
            if is_end:
                words.append({"end_s": round(now_s, 4)})
            is_written = self._put(words)
            if is_written:
                self._until_s = now_s
        except OSError:  # no descriptor, or no folder, to be had: later there may be
            pass
        finally:
            if not is_written:  # what was not told must be told the next time
                tables: list[dict[Any, int]] = [self._frames, self._stacks]
                for told, count in zip(tables, known):
                    while len(told) > count:
                        told.popitem()
        return is_written

    def begin(self) -> None:
        """Make the file with its first line, by which the process is found from outside."""
        if self._size == 0:
            try:
                if permit(self._folder):
                    self._put([])
            except OSError:
                pass

    @property
    def is_seen_from_outside(self) -> bool:
        """Whether another process reads this one's stack, so that it need not look itself."""
        return os.path.exists(self._seen)

    @property
    def _seen(self) -> str:
        return os.path.join(self._folder, self._file[:-5] + "seen")

    def _texts(self) -> list[dict[str, Any]]:
        """Return the text of each line that was asked for: a notebook's cells are in no file."""
        try:
            with open(self._seen, "rb") as file:
                file.seek(self._answered)
                asked = file.read(_MOST_NAMES_BYTES)
        except OSError:
            return []
        asked = asked[: asked.rfind(b"\n") + 1]
        self._answered += len(asked)
        words: list[dict[str, Any]] = []
        for place in asked.decode("utf-8", "surrogateescape").splitlines():
            number, _, path = place.partition(" ")
            text = _source(path, int(number)) if number.isdigit() else ""
            if text:
                words.append({"text": _plain(text.rstrip()), "of": [_plain(path), int(number)]})
        return words

    def _words(self, stacks: Stacks, now_s: float, cost_s: float) -> list[dict[str, Any]]:
        words: list[dict[str, Any]] = []
        seen: dict[int, list[float]] = {}
        for stack, figures in stacks.items():
            numbers = tuple(
                self._frame(code, at, words, is_innermost=place == 0)
                for place, (code, at) in enumerate(stack)
            )
            number = self._stacks.get(numbers)
            if number is None and len(self._stacks) >= _MOST_STACKS:
                number = -1
            elif number is None:
                number = self._stacks[numbers] = len(self._stacks)
                words.append({"stack": number, "frames": numbers})
            before = seen.setdefault(number, [0, 0.0, 0.0, 0.0])
            seen[number] = [was + more for was, more in zip(before, figures)]
        words.append(
            {
                "from_s": round(self._until_s, 4),
                "until_s": round(now_s, 4),
                "cost_s": round(cost_s, 5),
                "seen": {
                    number: [round(one, 4) for one in figures] for number, figures in seen.items()
                },
            }
        )
        return words

    def _frame(
        self, code: CodeType, at: int, words: list[dict[str, Any]], *, is_innermost: bool
    ) -> int:
        """Return the number of a place, which is put into words the first time.

        Of a library's code only the call that is going on matters: to read all the files of a
        stack would take longer than all else here.
        """
        told = is_innermost or not is_library(code.co_filename)
        name = (code.co_filename, code.co_name, code.co_firstlineno, at, told)
        number = self._frames.get(name)
        if number is None:
            number = self._frames[name] = len(self._frames)
            words.append({"frame": number, "is": place_in_words(code, at, told=told)})
        return number

    def _put(self, words: list[dict[str, Any]]) -> bool:
        """Add lines to the file; tell whether they stand there, which is all of them or none."""
        if not self._is_ours():
            return False
        if self._size == 0:
            words.insert(0, self._head())
        text = "".join(_json(one) + "\n" for one in words).encode()
        if self._size + len(text) > _MOST_BYTES:
            self._is_full = True
            head = words[:1] if self._size == 0 else []
            last = {"failed": "its file is full: what came later is missing"}
            text = "".join(_json(one) + "\n" for one in [*head, last]).encode()
        path = os.path.join(self._folder, self._file)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        # Never kept open: a program that closes all descriptors, as daemons do, and opens a file
        # of its own then, would get our lines in it.
        descriptor = os.open(path, flags, 0o600)
        try:
            is_whole = _written(descriptor, text) == len(text)
            if is_whole:
                self._size += len(text)
            else:
                os.ftruncate(descriptor, self._size)
            return is_whole
        finally:
            os.close(descriptor)

    def _is_ours(self) -> bool:
        """Make the folder where that is still to do; it is in a place that all users share."""
        above = os.path.dirname(self._folder)
        for folder in (above, self._folder):
            try:
                os.mkdir(folder, 0o700)
            except FileExistsError:
                pass
            found = os.lstat(folder)
            if found.st_uid != os.getuid():
                return False
        # A script may start a Python each second, for weeks.
        return self._size > 0 or found.st_size < _MOST_NAMES_BYTES

    def _head(self) -> dict[str, Any]:
        return {
            "probe": 1,
            "pid": os.getpid(),
            "parent_pid": os.getppid(),
            "python": "%d.%d.%d" % sys.version_info[:3],
            "implementation": sys.implementation.name,
            "pid_namespace": _link("/proc/self/ns/pid"),
            "program": [_plain(word) for word in getattr(sys, "argv", [])[:1]],
            "began_s": round(self._began_s, 4),
        }


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _written(descriptor: int, text: bytes) -> int:
    try:
        return os.write(descriptor, text)
    except OSError:  # the disk is full, or the file as large as it may be: later there may be room
        return 0


def _json(value: Any) -> str:
    """Return a value as JSON: to load Python's own writer takes 5 ms, more than all else here."""
    if isinstance(value, str):
        return encode_basestring_ascii(_plain(value))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "{%s}" % ", ".join(_json(str(key)) + ": " + _json(one) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(_json, value))
    return repr(value) if isfinite(value) else "null"


def in_words(error: Exception) -> str:
    """Return what is said of an error."""
    return "%s: %s" % (type(error).__name__, error)


def is_library(path: str) -> bool:
    """Return whether a file is not the program's own."""
    return any(part in path for part in _LIBRARIES)


def place_in_words(code: CodeType, at: int, *, told: bool = True) -> list[Any]:
    """Return `[file, function, line, text]` of one place; the text is a call, or the line.

    Args:
        code: the function's.
        at: the instruction in it.
        told: whether its line and text are asked for.
    """
    name = _plain(getattr(code, "co_qualname", code.co_name))
    if not told or code.co_filename.startswith("<frozen"):
        return [_plain(code.co_filename), name, 0, ""]
    line, begin, end = _place(code, at)
    text = _source(code.co_filename, line)
    if begin is not None and text.isascii():  # columns count bytes
        text = text[begin:end]
    return [_plain(code.co_filename), name, line, _plain(text.strip())]


def _place(code: CodeType, at: int) -> tuple[int, int | None, int | None]:
    """Return the line of an instruction, and its columns where Python knows them (3.11)."""
    if hasattr(code, "co_positions"):
        for first, last, begin, end in islice(code.co_positions(), at // 2, None):
            return (first or 0, begin, end) if first == last else (first or 0, None, None)
    if hasattr(code, "co_lines"):
        for first, last, line in code.co_lines():
            if first <= at < last:
                return line or 0, None, None
    # Python 3.8 and 3.9: pairs of bytes of code and lines to go on by.
    address, line = 0, code.co_firstlineno
    for step, lines in zip(code.co_lnotab[::2], code.co_lnotab[1::2]):
        address += step
        if address > at:
            break
        line += lines - 256 if lines > 127 else lines
    return line, None, None


def _source(path: str, line: int) -> str:
    """Return a line of a program, shortened; empty if its file does not read."""
    if not line or path.startswith("<"):
        return ""
    if os.path.exists(path) and not os.path.isfile(path):  # whoever reads a pipe may wait for ever
        return ""
    # A notebook's cells are nowhere else. It is without it while it is being imported.
    getline = getattr(sys.modules.get("linecache"), "getline", None)
    try:
        if getline is not None:
            return str(getline(path, line))[:_LONGEST]
        with open(path, encoding="utf-8", errors="replace") as file:
            return next(islice(file, line - 1, None), "")[:_LONGEST]
    except Exception:  # the program's threads change what `linecache` holds
        return ""


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
