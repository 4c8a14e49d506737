"""Who launched what: the operator and the line of the program around each launch call."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from teho.model.trace import Operator
from teho.patterns import lazy_pattern
from teho.profile.load import Loaded, Thread
from teho.profile.spans import Spans, is_inside
from teho.profile.tracks import Track

__all__ = ["Launch", "Lines", "around", "launches", "operators"]

_NS = 1e9
_NO_EVENT = (-1, math.inf, 0, -1)
"""What follows the last event: it never begins."""
_LIBRARIES = frozenset(
    {
        "accelerate", "apex", "datasets", "deepspeed", "flash_attn", "lightning", "numpy",
        "pandas", "pytorch_lightning", "scipy", "sklearn", "timm", "torch", "torchaudio",
        "torchvision", "transformers", "triton", "xformers",
    }
)  # fmt: skip
"""Packages whose functions are not the user's program."""
_FRAME = lazy_pattern(r"(?P<file>.*)\((?P<line>\d+)\): (?P<function>.*)", re.DOTALL)


class Launch(NamedTuple):
    """What was around the call that launched work on a device."""

    thread: Thread
    start: int
    end: int
    operator: str
    """Innermost operator; empty: none."""
    line: str
    """Innermost function of the user's program, as `FILE:LINE FUNCTION`; empty: unknown."""
    is_optimizer: bool
    place: int = -1
    """Place of this operator among the operators of its thread; -1: none."""


def launches(loaded: Loaded, lines: Lines, optimizers: Mapping[Thread, Spans]) -> dict[int, Launch]:
    """Return the launch of each correlation number of work on a device.

    Args:
        loaded: the trace.
        lines: of the same trace.
        optimizers: when each thread updated the parameters.
    """
    calls = loaded.calls
    by_thread: defaultdict[Thread, list[tuple[int, int]]] = defaultdict(list)
    for work in loaded.work.values():
        for correlation in set(work.correlations):
            place = calls.places.get(correlation)
            if place is not None:
                thread = loaded.threads[calls.threads[place]]
                by_thread[thread].append((calls.starts[place], correlation))
    found = {}
    for thread, starts in by_thread.items():
        starts.sort()
        track, updating = loaded.operators.get(thread, Track()), optimizers.get(thread, [])
        stacks = around(track, [start for start, _ in starts])
        for (start, correlation), stack in zip(starts, stacks, strict=True):
            place = calls.places[correlation]
            innermost = stack[-1] if stack else None
            found[correlation] = Launch(
                thread,
                start,
                calls.ends[place],
                "" if innermost is None else loaded.names[track.names[innermost]],
                lines.at(thread, start, stack),
                is_inside(updating, start),
                -1 if innermost is None else innermost,
            )
    return found


def operators(loaded: Loaded) -> list[Operator]:
    """Return all operators on the CPU, by the time without the operators that they call."""
    counts: Counter[int] = Counter()
    totals = [0] * len(loaded.names)
    inner = [0] * len(loaded.names)
    for track in loaded.operators.values():
        counts.update(track.names)
        stack: list[tuple[int, int]] = []  # the ends and names of the operators around
        for _, start, end, name in track.outermost_first():
            totals[name] += end - start
            while stack and stack[-1][0] <= start:
                stack.pop()
            if stack:
                end_around, name_around = stack[-1]
                inner[name_around] += min(end, end_around) - start
            stack.append((end, name))
    made = [
        Operator(
            name=loaded.names[name],
            count=counts[name],
            total_s=totals[name] / _NS,
            self_s=(totals[name] - inner[name]) / _NS,
        )
        for name in counts
    ]
    return sorted(made, key=lambda one: (-one.self_s, one.name))


def around(track: Track, moments: Iterable[int]) -> Iterator[list[int]]:
    """Yield the places of the events around each moment, the outermost first.

    Args:
        track: events of one thread, which enclose each other or do not overlap.
        moments: in order.
    """
    ends = track.ends
    coming = track.outermost_first()
    place, start, end, _ = next(coming, _NO_EVENT)
    stack: list[int] = []
    for moment in moments:
        while stack and ends[stack[-1]] <= moment:
            stack.pop()
        while start <= moment:
            if end > moment:
                stack.append(place)
            place, start, end, _ = next(coming, _NO_EVENT)
        yield stack


class Lines:
    """Finds the line of the user's program that runs on a thread at a moment.

    Args:
        loaded: the trace.
        moments: to find the lines of, in addition to the launches of work on a device.
    """

    def __init__(
        self, loaded: Loaded, moments: Mapping[Thread, Iterable[int]] | None = None
    ) -> None:
        self._loaded = loaded
        self._own: dict[int, str] = {}
        """The line of each Python function by the number of its name; empty: not of the user's."""
        self._known: defaultdict[Thread, dict[int, str]] = defaultdict(dict)
        self._forward: defaultdict[Thread, dict[int, tuple[Thread, int]]] = defaultdict(dict)
        """Thread and start of a forward operator, by thread and start of its backward operator, and
        of the outermost operator around this one, which also sums gradients."""
        wanted: defaultdict[Thread, set[int]] = defaultdict(set)
        if not loaded.frames:
            return
        for thread, extra in (moments or {}).items():
            wanted[thread].update(extra)
        self._add_outermost()
        calls = loaded.calls
        for thread, start in loaded.forward.values():
            wanted[thread].add(start)
        for work in loaded.work.values():
            for correlation in set(work.correlations):
                place = calls.places.get(correlation)
                if place is not None:
                    wanted[loaded.threads[calls.threads[place]]].add(calls.starts[place])
        for thread, starts in wanted.items():
            track = loaded.frames.get(thread)
            if track is not None:
                self._known[thread] = self._lines_at(track, sorted(starts))

    def _add_outermost(self) -> None:
        for (thread, start), begin in self._loaded.forward.items():
            self._forward[thread][start] = begin
        for thread, begins in self._forward.items():
            track = self._loaded.operators.get(thread, Track())
            moments = sorted(begins)
            for moment, stack in zip(moments, around(track, moments), strict=True):
                if stack:
                    begins.setdefault(track.starts[stack[0]], begins[moment])

    def at(self, thread: Thread, moment: int, operators_around: list[int]) -> str:
        """Return the line at a moment; for a backward operator, the line of its forward operator.

        Args:
            thread: of the launch or the allocation.
            moment: of the launch or the allocation.
            operators_around: places of the operators around it.
        """
        begins = self._forward.get(thread)
        if begins and operators_around:
            starts = self._loaded.operators[thread].starts
            for place in reversed(operators_around):
                if begin := begins.get(starts[place]):
                    thread, moment = begin
                    break
        return self._known[thread].get(moment, "") if thread in self._known else ""

    def at_moments(self, thread: Thread, moments: Iterable[int]) -> dict[int, str]:
        """Return the line that a thread was in at each moment; a moment without one is left out."""
        track = self._loaded.frames.get(thread)
        if track is None:
            return {}
        lines = self._lines_at(track, sorted(set(moments)))
        return {moment: line for moment, line in lines.items() if line}

    def _lines_at(self, track: Track, moments: list[int]) -> dict[int, str]:
        """Return the line at each of the sorted moments; empty: unknown."""
        for name in set(track.names) - self._own.keys():
            self._own[name] = _own_line(self._loaded.names[name])
        own = [self._own[name] for name in track.names]
        return {
            moment: next((line for place in reversed(stack) if (line := own[place])), "")
            for moment, stack in zip(moments, around(track, moments), strict=True)
        }


def _own_line(frame: str) -> str:
    """Return the line of a Python function of the user's program; empty: it belongs to others."""
    match = _FRAME.fullmatch(frame)
    if match is None or "<" in match["file"] or "-packages/" in match["file"]:
        return ""
    parts = match["file"].removesuffix(".py").strip("/").split("/")
    is_standard = not match["file"].startswith("/") and parts[0] in sys.stdlib_module_names
    if is_standard or _LIBRARIES & set(parts):
        return ""
    return f"{match['file']}:{match['line']} {match['function']}"
