"""Reads the shell scripts that run, to find the loops that start programs."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from heapq import nsmallest
from pathlib import Path

import msgspec

from teho.config.privacy import masked_command
from teho.devices.host.procstat import slurp
from teho.model.run import ShellLoop
from teho.patterns import lazy_pattern
from teho.source.shell import shell_loops

__all__ = ["ShellScripts"]

_SHELL = lazy_pattern(rb"(?:.*/)?(?:ba|da|k|z|a)?sh")
_COMMAND = lazy_pattern(rb"-[A-Za-z]*c")
"""Option of a shell before a command, which is no file."""
_MOST_SCRIPTS, _MOST_PROCESSES, _MOST_LOOPS = 8, 8, 16
_LONGEST_BYTES = 64 * 1024


class ShellScripts:
    """The loops of the shell scripts of a node.

    Args:
        proc: mount point of the process file system.
    """

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._known: set[int] = set()
        """The processes of the last call."""
        self._loops: dict[Path, tuple[ShellLoop, ...]] = {}

    def read(self, pids: Collection[int]) -> None:
        """Read the scripts of new shells. A file is read only once.

        Args:
            pids: the program's processes on this node; the oldest ones are the scripts, and the
                youngest ones the programs that they start.
        """
        oldest = set(nsmallest(_MOST_PROCESSES, pids))
        for pid in sorted(oldest - self._known):
            path = self._script(pid) if len(self._loops) < _MOST_SCRIPTS else None
            if path is not None and path not in self._loops:
                self._loops[path] = _loops_of(path)
        self._known = oldest  # a long run has millions of processes

    def loops(self) -> tuple[ShellLoop, ...]:
        """Return the loops of all scripts that start programs."""
        found = [loop for loops in self._loops.values() for loop in loops]
        return tuple(found[:_MOST_LOOPS])

    def _script(self, pid: int) -> Path | None:
        """Return the script that a process executes; None: it is no shell, or has no file."""
        directory = f"{self._proc}/{pid}"
        try:
            name, *given = slurp(directory + "/cmdline").split(b"\0")
            script = next((one for one in given if not one.startswith((b"-", b"+"))), b"")
            if not _SHELL.fullmatch(name) or not script or any(map(_COMMAND.fullmatch, given)):
                return None
            folder = os.readlink(directory + "/cwd")  # noqa: PTH115 - a text
        except (OSError, ValueError):
            return None  # it has ended, or it cannot be read
        return Path(folder, os.fsdecode(script))


def _loops_of(path: Path) -> tuple[ShellLoop, ...]:
    """Return the loops of a file, with secrets masked; none if it is a pipe or a device.

    `bash <(command)` and `bash /dev/stdin` read pipes, whose content belongs to the shell.
    """
    try:
        # Without O_NONBLOCK, the recorder would wait until somebody writes into the pipe.
        place = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(place, "rb") as file:
            if not stat.S_ISREG(os.fstat(place).st_mode):
                return ()
            content = file.read(_LONGEST_BYTES)
    except (OSError, ValueError):
        return ()
    return tuple(
        msgspec.structs.replace(
            loop,
            text=" ".join(masked_command(loop.text.split())),
            read_again=tuple(
                (line, " ".join(masked_command([file]))) for line, file in loop.read_again
            ),
        )
        for loop in shell_loops(content.decode("utf-8", "replace"), path.name)
    )
