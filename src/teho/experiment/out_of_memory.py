"""Finds out whether a program failed because memory ran out, and on what evidence."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import NamedTuple

from teho.explain.exception import shortened
from teho.patterns import lazy_pattern

__all__ = ["Kills", "memory_failure"]

_LACKS_MEMORY = lazy_pattern(
    # PyTorch's allocators for GPUs and CPUs, Python, C++, CUDA's libraries, and the system calls.
    r"out ?of ?memory|not enough memory|can(?:'|no)t allocate memory|unable to allocate"
    r"|MemoryError|bad_alloc|_ALLOC_FAILED|RESOURCE_EXHAUSTED|insufficient shared memory"
    r"|\boom[-_ ]kill",
    re.IGNORECASE,
)
_WAS_KILLED = lazy_pattern(r"killed by signal: Killed|exitcode: -9\b|SIGKILL|Signal 9 ")
"""What PyTorch's loaders and launchers print about a process that got SIGKILL."""
_KILLED = "the operating system killed a process because memory ran out"
_BY_SIGKILL = frozenset({-signal.SIGKILL, 128 + signal.SIGKILL})
"""A shell reports the signal of its program as 128 and the signal's number."""


class Kills(NamedTuple):
    """Processes that the kernel killed during a run because memory ran out."""

    of_job: int | None
    """In the cgroup of the job; None if it has no cgroup of its own."""
    of_node: int | None
    """On the whole node, including other jobs; None: the kernel does not count them."""


def memory_failure(
    exit_code: int | None, raised: Sequence[str], tail: str, kills: Kills
) -> tuple[str, str]:
    """Return why a run ran out of memory, and why it failed otherwise; each may be empty.

    Args:
        exit_code: None if Teho ended the run; below 0: a signal's number.
        raised: the exceptions that ended its Python processes.
        tail: the last lines that it wrote to stderr.
        kills: what the kernel counted during the run.
    """
    if kills.of_job:
        return _KILLED, ""
    if not exit_code:
        return "", ""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    # If an exception is known, the lines before it may be about another problem. The probe leaves
    # out a message that may have a secret.
    messages = [one for one in raised if ": " in one or _LACKS_MEMORY.search(one)] or lines
    for line in messages:
        if match := _LACKS_MEMORY.search(line):
            return _around(line, match), ""
    is_killed = exit_code in _BY_SIGKILL or any(map(_WAS_KILLED.search, [*messages, *lines]))
    if not is_killed:
        return "", ""
    if kills.of_node:
        return _KILLED, ""
    if kills.of_job is None and kills.of_node is None:
        return "the program was killed (SIGKILL), probably because memory was full", ""
    return "", "the program was killed (SIGKILL), but the kernel did not report a lack of memory"


def _around(line: str, match: re.Match[str]) -> str:
    """Return the part of a long line that is about memory, after the name of the exception."""
    short = shortened(line)
    if short == line or match.end() < len(short):
        return short
    return shortened(f"{line.partition(':')[0]}: … {line[match.start() :]}")
