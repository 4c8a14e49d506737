"""Who launched what: the operator and the line of the program around each launch call."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from teho.model.trace import Operator
from teho.patterns import lazy_pattern
from teho.profile.load import Loaded, Thread, Track
from teho.profile.phases import optimizer_spans
from teho.profile.spans import is_inside

__all__ = ["Launch", "Lines", "around", "launches", "operators"]

_NS = 1e9
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


def launches(loaded: Loaded, lines: Lines | None = None) -> dict[int, Launch]:
    """Return the launch of each correlation number of work on a device.

    Args:
        loaded: the trace.
        lines: of the same trace, if they are known already.
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
    lines = lines or Lines(loaded)
    optimizers = optimizer_spans(loaded)
    for thread, starts in by_thread.items():
        starts.sort()
        stacks = around(loaded.operators.get(thread, Track()), [start for start, _ in starts])
        for (start, correlation), stack in zip(starts, stacks, strict=True):
            place = calls.places[correlation]
            innermost = stack[-1] if stack else None
            track = loaded.operators.get(thread)
            found[correlation] = Launch(
                thread,
                start,
                calls.ends[place],
                loaded.names[track.names[innermost]] if track and innermost is not None else "",
                lines.at(thread, start, stack),
                is_inside(optimizers.get(thread, []), start),
                -1 if innermost is None else innermost,
            )
    return found


def operators(loaded: Loaded) -> list[Operator]:
    """Return all operators on the CPU, by the time without the operators that they call."""
    counts: defaultdict[int, int] = defaultdict(int)
    totals: defaultdict[int, int] = defaultdict(int)
    inner: defaultdict[int, int] = defaultdict(int)
    for track in loaded.operators.values():
        starts, ends, names = track.starts, track.ends, track.names
        stack: list[tuple[int, int]] = []  # the ends and names of the operators around
        for place in track.outermost_first():
            start, end, name = starts[place], ends[place], names[place]
            while stack and stack[-1][0] <= start:
                stack.pop()
            counts[name] += 1
            totals[name] += end - start
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
    starts, ends = track.starts, track.ends
    coming = iter(track.outermost_first())
    place = next(coming, None)
    stack: list[int] = []
    for moment in moments:
        while place is not None and (start := starts[place]) <= moment:
            while stack and ends[stack[-1]] <= start:
                stack.pop()
            stack.append(place)
            place = next(coming, None)
        while stack and ends[stack[-1]] <= moment:
            stack.pop()
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
        self._are_own: dict[int, bool] = {}
        self._known: dict[tuple[Thread, int], str] = {}
        self._forward = dict(loaded.forward)
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
                ordered = sorted(starts)
                for moment, stack in zip(ordered, around(track, ordered), strict=True):
                    self._known[thread, moment] = self._own(track, stack)

    def _add_outermost(self) -> None:
        starts: defaultdict[Thread, list[int]] = defaultdict(list)
        for thread, start in self._loaded.forward:
            starts[thread].append(start)
        for thread, moments in starts.items():
            track = self._loaded.operators.get(thread, Track())
            moments.sort()
            for moment, stack in zip(moments, around(track, moments), strict=True):
                if stack:
                    begin = self._loaded.forward[thread, moment]
                    self._forward.setdefault((thread, track.starts[stack[0]]), begin)

    def at(self, thread: Thread, moment: int, operators_around: list[int]) -> str:
        """Return the line at a moment; for a backward operator, the line of its forward operator.

        Args:
            thread: of the launch or the allocation.
            moment: of the launch or the allocation.
            operators_around: places of the operators around it.
        """
        if not self._known:
            return ""
        track = self._loaded.operators.get(thread)
        for place in reversed(operators_around) if track else ():
            begin = self._forward.get((thread, track.starts[place])) if track else None
            if begin is not None:
                return self._known.get(begin, "")
        return self._known.get((thread, moment), "")

    def at_moments(self, thread: Thread, moments: Iterable[int]) -> dict[int, str]:
        """Return the line that a thread was in at each moment; a moment without one is left out."""
        track = self._loaded.frames.get(thread)
        if track is None:
            return {}
        ordered = sorted(set(moments))
        stacks = zip(ordered, around(track, ordered), strict=True)
        lines = {moment: self._own(track, stack) for moment, stack in stacks}
        return {moment: line for moment, line in lines.items() if line}

    def _own(self, track: Track, stack: list[int]) -> str:
        for place in reversed(stack):
            name = track.names[place]
            if name not in self._are_own:
                self._are_own[name] = _is_own(self._loaded.names[name])
            if self._are_own[name]:
                return _FRAME.sub(r"\g<file>:\g<line> \g<function>", self._loaded.names[name])
        return ""


def _is_own(frame: str) -> bool:
    """Return whether a Python function belongs to the user's program."""
    match = _FRAME.fullmatch(frame)
    if match is None or "<" in match["file"] or "-packages/" in match["file"]:
        return False
    parts = match["file"].removesuffix(".py").strip("/").split("/")
    is_standard = not match["file"].startswith("/") and parts[0] in sys.stdlib_module_names
    return not is_standard and not _LIBRARIES & set(parts)
