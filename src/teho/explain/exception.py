"""The exception that ended a Python program, from its process or from its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from teho.config.privacy import masked_text
from teho.explain.step import failed
from teho.model.run import Run
from teho.model.watched import Raised, WatchedProcess
from teho.patterns import lazy_pattern
from teho.store.layout import output_file

__all__ = ["exception_in", "last_exceptions", "shortened"]

_OF_LAUNCHERS = ("ChildFailedError", "CalledProcessError", "ProcessRaisedException")
"""They report only that another process failed: the exception of that process is named."""
_SOON_S = 30.0
"""A process that failed earlier before the end of its parent was not the cause."""

_HEAD = "Traceback (most recent call last):"
_NAMED = lazy_pattern(r"^[A-Za-z_][\w.]*(?:: .*)?$")
_LINES_AFTER = 20
"""If the program printed more lines after an exception, it had caught the exception."""
_SHOWN = 80
"""Longest line in a sentence: a message can be as long as a page."""


def last_exceptions(
    run: Run, recording: Path, processes: Sequence[WatchedProcess]
) -> Mapping[int | None, Raised]:
    """Return the known exceptions that ended a failed program, or each of its failed tasks.

    Args:
        run: the description of the run.
        recording: folder of the recording. The program's output is read if it was kept
            (`--keep-output`). It has a traceback only if the program prints its errors there.
        processes: the Python processes.

    Returns:
        Rank -> exception; for a program without ranks, None -> exception.
    """
    if run.has_tasks:
        tasks = [task for task in run.tasks if task.end is not None and failed(task.end)]
        of_ranks = {task.rank: _raised(_below(processes, task.node, task.pid)) for task in tasks}
        return {rank: raised for rank, raised in of_ranks.items() if raised is not None}
    if run.end is None or not failed(run.end):
        return {}
    raised = _raised(processes) or _printed(recording)
    return {None: raised} if raised is not None else {}


def _raised(processes: Sequence[WatchedProcess]) -> Raised | None:
    """Return the exception of the process that started the others and ended last.

    If this process has none, the first exception of a process that ended shortly before it.
    """
    known = {(one.node, one.pid) for one in processes}
    tops = [one for one in processes if (one.node, one.parent_pid) not in known]
    top = max(tops, key=lambda one: one.until_s, default=None)
    if top is None or (top.raised is not None and not _is_of_launcher(top.raised)):
        return top.raised if top is not None else None
    others = [
        one.raised
        for one in processes
        if one.raised is not None
        and one.node == top.node
        and one.raised.at_s >= top.until_s - _SOON_S
        and not _is_of_launcher(one.raised)
    ]
    return min(others, key=lambda raised: raised.at_s, default=top.raised)


def _is_of_launcher(raised: Raised) -> bool:
    return raised.text.partition(":")[0].rpartition(".")[2] in _OF_LAUNCHERS


def _below(processes: Sequence[WatchedProcess], node: str, pid: int) -> list[WatchedProcess]:
    """Return a task's process and the processes that it started."""
    pids, family = {pid}, []
    for process in sorted(processes, key=lambda process: process.began_s):
        if process.node == node and pids & {process.pid, process.parent_pid}:
            pids.add(process.pid)
            family.append(process)
    return family


def _printed(recording: Path) -> Raised | None:
    try:
        kept = output_file(recording).read_bytes()
    except OSError:
        return None
    text = exception_in(kept.decode(errors="replace"))
    return Raised(text=text, at=None, at_s=0.0) if text else None


def exception_in(printed: str) -> str:
    """Return the line with the exception of the last traceback; empty if there is none."""
    lines = printed.splitlines()
    heads = [place for place, line in enumerate(lines) if line.strip() == _HEAD]
    if not heads:
        return ""
    for place in range(heads[-1] + 1, len(lines)):
        if _NAMED.match(lines[place]):
            went_on = len(lines) - place - 1 > _LINES_AFTER
            return "" if went_on else shortened(masked_text(lines[place]))
    return ""


def shortened(line: str) -> str:
    """Return an exception for a sentence, shortened if it is long."""
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1].rstrip()}…"
