"""Moves the marks of steps in a trace of PyTorch by some µs, so that they fit viewers.

The probe counts a step inside the call of the optimizer, which PyTorch marks too. So the mark of a
step ends some µs before the mark of its optimizer. Viewers expect marks of one thread to be inside
each other, and may leave out others. In the copy of the trace, a step ends with its optimizer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from mmap import mmap
from typing import NamedTuple

from teho.patterns import lazy_pattern

__all__ = ["Change", "moved_marks"]

_MARK = lazy_pattern(
    rb'"cat": "user_annotation",\s*"name": "(ProfilerStep#\d+|Optimizer\.step#[^"]*)",\s*'
    rb'"pid": (\d+),\s*"tid": (\d+),\s*"ts": (\d+)\.(\d{3}),\s*"dur": (\d+)\.(\d{3})'
)


class Change(NamedTuple):
    """A part of a file, and what comes in its place."""

    start: int
    end: int
    text: bytes


class _Step(NamedTuple):
    match: re.Match[bytes]
    start_ns: int
    end_ns: int


def moved_marks(trace: mmap | bytes) -> list[Change]:
    """Return what to change in a trace, by place; nothing if no marks overlap."""
    steps: defaultdict[tuple[bytes, bytes], list[_Step]] = defaultdict(list)
    optimizers: defaultdict[tuple[bytes, bytes], list[tuple[int, int]]] = defaultdict(list)
    for match in _MARK.finditer(trace):
        name, pid, tid, *numbers = match.groups()
        us, ns, long_us, long_ns = map(int, numbers)
        start = 1000 * us + ns
        end = start + 1000 * long_us + long_ns
        if name.startswith(b"Prof"):
            steps[pid, tid].append(_Step(match, start, end))
        else:
            optimizers[pid, tid].append((start, end))
    changes = []
    for thread, found in steps.items():
        changes += _moved(sorted(found, key=lambda one: one.start_ns), sorted(optimizers[thread]))
    return sorted(changes)


def _moved(steps: list[_Step], optimizers: list[tuple[int, int]]) -> list[Change]:
    """Return the changes in one thread.

    The last step stays as it is: its optimizer's mark ends when the profiler has stopped.
    """
    new = list(steps)
    for place in range(1, len(steps)):
        before, step = new[place - 1], new[place]
        around = bisect_left(optimizers, (step.start_ns, 0)) - 1
        end = optimizers[around][1] if around >= 0 else 0
        if step.start_ns < end < step.end_ns:
            new[place] = step._replace(start_ns=end)
            if before.end_ns < end:
                new[place - 1] = before._replace(end_ns=end)
    return [
        Change(one.match.start(4), one.match.end(7), _times(one, one.match))
        for one, old in zip(new, steps, strict=True)
        if one != old
    ]


def _times(step: _Step, match: re.Match[bytes]) -> bytes:
    """Return the text from the start to the duration of an event."""
    whole = match.string
    between = bytes(whole[match.end(5) : match.start(6)])
    return _us(step.start_ns) + between + _us(step.end_ns - step.start_ns)


def _us(time_ns: int) -> bytes:
    return b"%d.%03d" % divmod(time_ns, 1000)
