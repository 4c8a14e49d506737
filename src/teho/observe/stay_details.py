"""What a process that stays in one line waits for: dead children, other threads, a file system."""

from __future__ import annotations

import contextlib
import os
import struct
from typing import NamedTuple

from teho.observe.sampled_process import SampledProcess, is_of_probe
from teho.unwind.memory import UnwindError, read_file
from teho.unwind.stack import Key

__all__ = ["StayDetails", "death_of", "details_of"]

_EXIT_CODE = 49
"""Index of the exit status among the fields of `stat` after the name (proc(5), field 52)."""
_MOST_TASKS = 64
_MOST_NAMED = 8


class StayDetails(NamedTuple):
    """What was found while a process stayed in one line."""

    dead: list[tuple[int, int]]
    """Its children that have ended, and that it has not waited for: pid and status, as of wait."""
    others: list[Key]
    """Stacks of its other threads that wait for a lock."""
    blocked_on: str | None
    """The file of a file system that does not answer; empty if its path is not known. None: the
    process does not wait for a file system, or can still be interrupted."""


def details_of(process: SampledProcess, proc: str = "/proc") -> StayDetails:
    """Return what a process waits for. Each call takes less than a millisecond.

    Args:
        process: a process that stays in one line.
        proc: mount point of the process file system.
    """
    others = []
    for number, thread in process.unwinder.others():
        if number == process.pid or not process.waits.is_in_lock(number):
            continue
        with contextlib.suppress(UnwindError, ValueError, IndexError, struct.error):
            key = process.unwinder.sample_thread(thread)
            if key and not is_of_probe(key):
                others.append(key)
    blocked_on = None
    with contextlib.suppress(UnwindError):
        blocked_on = process.waits.blocked_on()
    return StayDetails(_dead_children(process.pid, proc), others[:_MOST_NAMED], blocked_on)


def _dead_children(pid: int, proc: str) -> list[tuple[int, int]]:
    try:
        tasks = os.listdir(f"{proc}/{pid}/task")[:_MOST_TASKS]  # noqa: PTH208 - names are wanted
    except OSError:
        return []
    children = [
        int(child)
        for task in tasks
        for child in read_file(f"{proc}/{pid}/task/{task}/children").split()
    ]
    deaths = ((child, death_of(child, proc)) for child in children)
    return [(child, status) for child, status in deaths if status is not None][:_MOST_NAMED]


def death_of(pid: int, proc: str = "/proc") -> int | None:
    """Return the status of a process that has ended, and that its parent has not waited for.

    None if it still runs, or if it no longer exists.
    """
    fields = read_file(f"{proc}/{pid}/stat").rpartition(b")")[2].split()
    if not fields or fields[0] not in {b"Z", b"X"}:
        return None
    return int(fields[_EXIT_CODE]) if len(fields) > _EXIT_CODE else 0
