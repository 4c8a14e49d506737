"""Writes the probe's file: one JSON object a line."""

from __future__ import annotations

import os
import sys
from _json import encode_basestring_ascii
from itertools import islice
from math import isfinite

from _teho_probe.permit import permit

TYPE_CHECKING = False  # as in typing, whose import would take 5 ms
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Dict, List, Tuple

    Stack = Tuple[Tuple[CodeType, int], ...]
    """Code and instruction of each frame, the innermost first."""
    Stacks = Dict[Stack, List[float]]

__all__ = ["Lines", "described_place", "error_text", "is_library"]

_MOST_BYTES = 16 * 1024**2
"""Maximum size of a file."""
_MOST_NAMES_BYTES = 1024**2
"""Maximum size of the folder, which grows with its number of files: 20,000 to 50,000 files."""
_LONGEST = 400
"""Maximum number of characters of a line of the program."""
_LIBRARIES = (
    *("/site-packages/", "/dist-packages/", "/_teho_probe/", "/lib/python3.", "<frozen "),
    *("/torchinductor_", "/.triton/cache/", "/__autograph_generated_file"),
)
_MOST_STACKS = 20_000
"""Maximum number of different stacks; all further ones count as stack -1."""


class Lines:
    """The file of one process; the first lines create it.

    Args:
        folder: its folder.
        began_s: monotonic time from which the process is observed.
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
        """Number of bytes read from the file in which the sampler asks for lines."""

    def write(
        self, stacks: Stacks, notes: list[dict[str, Any]], now_s: float, cost_s: float, *,
        is_end: bool,
    ) -> bool:  # fmt: skip
        """Write the time since the last successful call; return whether this one succeeded.

        Args:
            stacks: stack -> [samples, wall s, CPU s, s in which Python code ran].
            notes: further lines.
            now_s: monotonic time.
            cost_s: CPU time of the probe so far.
            is_end: whether this is the last call.
        """
        if self._is_full:
            return True
        known = len(self._frames), len(self._stacks)
        is_written = False
        try:
            lines = notes + self._texts() + self._sample_lines(stacks, now_s, cost_s)
            if is_end:
                lines.append({"end_s": round(now_s, 4)})
            is_written = self._append(lines)
            if is_written:
                self._until_s = now_s
        except OSError:  # no descriptor or no folder: the next call may succeed
            pass
        finally:
            if not is_written:  # the next call must write these numbers
                tables: list[dict[Any, int]] = [self._frames, self._stacks]
                for numbers, count in zip(tables, known):
                    while len(numbers) > count:
                        numbers.popitem()
        return is_written

    def begin(self) -> None:
        """Create the file with its first line, so that the sampler finds the process."""
        if self._size == 0:
            try:
                if permit(self._folder):
                    self._append([])
            except OSError:
                pass

    @property
    def is_sampled_from_outside(self) -> bool:
        """Whether another process samples this one."""
        return os.path.exists(self._seen)

    @property
    def _seen(self) -> str:
        return os.path.join(self._folder, self._file[:-5] + "seen")

    def _texts(self) -> list[dict[str, Any]]:
        """Return the text of each line that the sampler asked for, such as a notebook's."""
        try:
            with open(self._seen, "rb") as file:
                file.seek(self._answered)
                asked = file.read(_MOST_NAMES_BYTES)
        except OSError:
            return []
        asked = asked[: asked.rfind(b"\n") + 1]
        self._answered += len(asked)
        lines: list[dict[str, Any]] = []
        for place in asked.decode("utf-8", "surrogateescape").splitlines():
            number, _, path = place.partition(" ")
            text = _source(path, int(number)) if number.isdigit() else ""
            if text:
                lines.append({"text": _plain(text.rstrip()), "of": [_plain(path), int(number)]})
        return lines

    def _sample_lines(self, stacks: Stacks, now_s: float, cost_s: float) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        seen: dict[int, list[float]] = {}
        for stack, figures in stacks.items():
            numbers = tuple(
                self._frame(code, at, lines, is_innermost=place == 0)
                for place, (code, at) in enumerate(stack)
            )
            number = self._stacks.get(numbers)
            if number is None and len(self._stacks) >= _MOST_STACKS:
                number = -1
            elif number is None:
                number = self._stacks[numbers] = len(self._stacks)
                lines.append({"stack": number, "frames": numbers})
            before = seen.setdefault(number, [0, 0.0, 0.0, 0.0])
            seen[number] = [was + more for was, more in zip(before, figures)]
        rounded = {number: [round(one, 4) for one in figures] for number, figures in seen.items()}
        times = {"from_s": round(self._until_s, 4), "until_s": round(now_s, 4)}
        lines.append({**times, "cost_s": round(cost_s, 5), "seen": rounded})
        return lines

    def _frame(
        self, code: CodeType, at: int, lines: list[dict[str, Any]], *, is_innermost: bool
    ) -> int:
        """Return the number of a place; the first call adds its line.

        Of a library's frames, only the innermost one gets a text: reading all source files of a
        stack would take longer than everything else here.
        """
        has_text = is_innermost or not is_library(code.co_filename)
        name = (code.co_filename, code.co_name, code.co_firstlineno, at, has_text)
        number = self._frames.get(name)
        if number is None:
            number = self._frames[name] = len(self._frames)
            lines.append({"frame": number, "is": described_place(code, at, has_text=has_text)})
        return number

    def _append(self, lines: list[dict[str, Any]]) -> bool:
        """Add all lines to the file, or none; return whether they were added."""
        if not self._is_ours():
            return False
        if self._size == 0:
            lines.insert(0, self._head())
        text = "".join(_json(one) + "\n" for one in lines).encode()
        if self._size + len(text) > _MOST_BYTES:
            self._is_full = True
            head = lines[:1] if self._size == 0 else []
            last = {"failed": "the file of samples is full: later samples are missing"}
            text = "".join(_json(one) + "\n" for one in [*head, last]).encode()
        path = os.path.join(self._folder, self._file)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        # The file is not kept open. A daemon closes all descriptors, and its next file would get
        # the same number: the lines would go into that file.
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
        """Create the folder if it is missing; return whether it belongs to this user."""
        above = os.path.dirname(self._folder)
        for folder in (above, self._folder):
            try:
                os.mkdir(folder, 0o700)
            except FileExistsError:
                pass
            found = os.lstat(folder)
            if found.st_uid != os.getuid():
                return False
        # A script may start a Python process every second for weeks.
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
    except OSError:  # the disk is full, or a file size limit is reached: this may change
        return 0


def _json(value: Any) -> str:
    """Return a value as JSON. Importing `json` takes 5 ms, more than everything else here."""
    if isinstance(value, str):
        return encode_basestring_ascii(_plain(value))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "{%s}" % ", ".join(_json(str(key)) + ": " + _json(one) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(_json, value))
    return repr(value) if isfinite(value) else "null"


def error_text(error: Exception) -> str:
    """Return the type and the message of an error."""
    return "%s: %s" % (type(error).__name__, error)


def is_library(path: str) -> bool:
    """Return whether a file belongs to a library, not to the program."""
    return any(part in path for part in _LIBRARIES)


def described_place(code: CodeType, at: int, *, has_text: bool = True) -> list[Any]:
    """Return `[file, function, line, text]` of one place; the text is a call, or the line.

    Args:
        code: the function's.
        at: the instruction in it.
        has_text: whether its line and text are needed.
    """
    name = _plain(getattr(code, "co_qualname", code.co_name))
    if not has_text or code.co_filename.startswith("<frozen"):
        return [_plain(code.co_filename), name, 0, ""]
    line, begin, end = _place(code, at)
    text = _source(code.co_filename, line)
    if begin is not None and text.isascii():  # columns count bytes
        text = text[begin:end]
    return [_plain(code.co_filename), name, line, _plain(text.strip())]


def _place(code: CodeType, at: int) -> tuple[int, int | None, int | None]:
    """Return the line of an instruction, and its columns (from Python 3.11 on)."""
    if hasattr(code, "co_positions"):
        for first, last, begin, end in islice(code.co_positions(), at // 2, None):
            return (first or 0, begin, end) if first == last else (first or 0, None, None)
    if hasattr(code, "co_lines"):
        for first, last, line in code.co_lines():
            if first <= at < last:
                return line or 0, None, None
    # Python 3.8 and 3.9: pairs of increments, of the byte address and of the line.
    address, line = 0, code.co_firstlineno
    for step, lines in zip(code.co_lnotab[::2], code.co_lnotab[1::2]):
        address += step
        if address > at:
            break
        line += lines - 256 if lines > 127 else lines
    return line, None, None


def _source(path: str, line: int) -> str:
    """Return a line of a program, shortened; empty if its file cannot be read."""
    if not line or path.startswith("<"):
        return ""
    if os.path.exists(path) and not os.path.isfile(path):  # reading a pipe may block forever
        return ""
    # Only `linecache` has a notebook's cells. While it is being imported, it has no `getline`.
    getline = getattr(sys.modules.get("linecache"), "getline", None)
    try:
        if getline is not None:
            return str(getline(path, line))[:_LONGEST]
        with open(path, encoding="utf-8", errors="replace") as file:
            return next(islice(file, line - 1, None), "")[:_LONGEST]
    except Exception:  # the program's threads change the data of `linecache`
        return ""


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
