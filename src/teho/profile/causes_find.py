"""What the causes of a trace are searched in, and the search for kernels and copies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Union

import msgspec

from teho.model.trace import Category
from teho.profile.categories import uses_tensor_cores
from teho.profile.device import Cpu, Timeline
from teho.profile.launches import Launch, Lines
from teho.profile.load import Loaded
from teho.profile.ranks import Windows
from teho.profile.spans import Span, Spans, clipped, length, subtracted, union
from teho.profile.tracks import Work

__all__ = ["Found", "Pattern", "Places", "Traced", "in_copies", "in_kernels", "in_small", "most_of"]


_SMALL_NS = 10_000
"""Longest small kernel. Launching a kernel takes about as long. It is Teho's own choice."""
_NEXT_NS = 50_000
"""Longest time from the start of a small kernel to the next kernel that follows it. It is Teho's
own choice."""


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """What to search for; `causes.toml` describes the fields."""

    what: Literal[
        "kernel",
        "copy",
        "small",
        "call",
        "operator",
        "sync",
        "optimizer",
        "search",
        "between",
        "line",
        "compile",
    ]
    name: str
    category: Union[Category, None] = None
    tensor_cores: Union[bool, None] = None
    siblings: bool = False
    least_capability: int = 0
    most_kernel_us: float = 0.0
    least_kernels: int = 0
    outside: str = ""

    @property
    def expression(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        return re.compile(self.name, re.IGNORECASE)

    def is_outside(self, stack: Iterable[str]) -> bool:
        """Return whether no operator around a call is one that does not count."""
        return not (self.outside and any(re.search(self.outside, name) for name in stack))


class Found(NamedTuple):
    """What was found in one trace."""

    spans: Spans
    """The time that it took."""
    number: int
    """Of kernels, calls or operators in the steps."""
    operator: str = ""
    line: str = ""
    names: Sequence[str] = ()
    """Names for the sentence."""


class Traced:
    """One trace, and what was computed from it.

    Args:
        loaded: its events.
        cpu: what the CPU did.
        launched: launch of each correlation number.
        timelines: of each device.
        categories: of the work of each device.
        windows: the steps.
        user_lines: finds lines of the program.
        is_xla: whether JAX or TensorFlow wrote it.
    """

    def __init__(
        self,
        loaded: Loaded,
        cpu: Cpu,
        launched: Mapping[int, Launch],
        timelines: Mapping[int, Timeline],
        categories: Mapping[int, Sequence[Category]],
        windows: Windows,
        user_lines: Lines,
        *,
        is_xla: bool,
    ) -> None:
        self.loaded = loaded
        self.cpu = cpu
        self.launched = launched
        self.windows = windows
        self.user_lines = user_lines
        self.is_xla = is_xla
        self.whole = (windows[0][1], windows[-1][2])
        device = max(timelines, key=lambda one: length(timelines[one].busy), default=None)
        self.work = Work() if device is None else loaded.work[device]
        self.line = None if device is None else timelines[device]
        self.categories: Sequence[Category] = () if device is None else categories[device]
        self.capability = _capability(loaded.values.get("deviceProperties"), device)

    @property
    def has_steps(self) -> bool:
        """Whether the trace has marks of steps."""
        return self.windows[0][0] is not None

    @cached_property
    def idle_share(self) -> float:
        """Part of the time, 0 to 1, in which the busiest device did nothing; 1 without a device."""
        if self.line is None:
            return 1.0
        return 1 - length(clipped(self.line.busy, *self.whole)) / max(
            self.whole[1] - self.whole[0], 1
        )

    def has(self, moment: int) -> bool:
        """Return whether a moment is in the steps."""
        return self.whole[0] <= moment < self.whole[1]


class Places:
    """Adds up by operator and by line."""

    def __init__(self) -> None:
        self.operators: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()

    def add(self, operator: str, line: str, time: int) -> None:
        """Add the time of one kernel or call."""
        self.operators[operator] += time
        self.lines[line] += time

    def found(self, spans: Iterable[Span], count: int) -> Found:
        """Return what was found, with the operator and the line that have the most time."""
        return Found(union(spans), count, most_of(self.operators), most_of(self.lines))


def most_of(counts: Counter[str]) -> str:
    """Return the name with the most; empty if there is none."""
    known = [(time, name) for name, time in counts.items() if name]
    return max(known)[1] if known else ""


def _capability(properties: Any, device: int | None) -> int | None:
    """Return the first number of a GPU's compute capability, such as 9; None: unknown."""
    for one in properties if isinstance(properties, list) else ():
        if isinstance(one, dict) and one.get("id") == device:
            major = one.get("computeMajor")
            return major if isinstance(major, int) else None
    return None


def in_kernels(traced: Traced, pattern: Pattern) -> Found | None:
    """Return the kernels that a pattern means."""
    if pattern.least_capability > (traced.capability or 0):
        return None
    places = set(_matching(traced, pattern, are_copies=False))
    if pattern.siblings and places:
        numbers = traced.work.correlations
        meant = {_operator(traced, numbers[place]) for place in places} - {""}
        places |= {
            place for place, number in enumerate(numbers) if _operator(traced, number) in meant
        }
    return _of_work(traced, sorted(places))


def in_copies(traced: Traced, pattern: Pattern) -> Found | None:
    """Return the copies that a pattern means, without the time in which the device computed."""
    found = _of_work(traced, list(_matching(traced, pattern, are_copies=True)))
    if found is None or traced.line is None:
        return None
    computing = union(traced.line.compute, traced.line.collective)
    return found._replace(spans=subtracted(found.spans, computing))


def _matching(traced: Traced, pattern: Pattern, *, are_copies: bool) -> Iterator[int]:
    """Yield the places of the kernels or copies that a pattern means."""
    work, names = traced.work, traced.loaded.names
    expression = pattern.expression
    meant = {name for name in set(work.names) if expression.search(names[name])}
    for place, name in enumerate(work.names if meant else ()):
        if name not in meant or bool(work.are_copies[place]) is not are_copies:
            continue
        category = traced.categories[place]
        if pattern.category is not None and category != pattern.category:
            continue
        if pattern.tensor_cores is None or (
            uses_tensor_cores(names[name], category) is pattern.tensor_cores
        ):
            yield place


def _operator(traced: Traced, correlation: int) -> str:
    launch = traced.launched.get(correlation)
    return launch.operator if launch else ""


def _of_work(traced: Traced, places: Sequence[int]) -> Found | None:
    work, by = traced.work, Places()
    inside = [place for place in places if traced.has(work.starts[place])]
    for place in inside:
        launch = traced.launched.get(work.correlations[place])
        time = work.ends[place] - work.starts[place]
        by.add(launch.operator if launch else "", launch.line if launch else "", time)
    spans = [(work.starts[place], work.ends[place]) for place in inside]
    return by.found(spans, len(inside)) if inside else None


def in_small(traced: Traced, _: Pattern) -> Found | None:
    """Return the time of small kernels that follow each other, with the pauses between them."""
    work = traced.work
    order = sorted(
        (place for place in range(len(work.starts)) if not work.are_copies[place]),
        key=work.starts.__getitem__,
    )
    names: Counter[str] = Counter()
    spans: Spans = []
    for place, following in pairwise(order):
        start, then = work.starts[place], work.starts[following]
        is_small = work.ends[place] - start < _SMALL_NS
        if is_small and then - start < _NEXT_NS and traced.has(start):
            spans.append((start, then))
            names[traced.loaded.names[work.names[place]]] += 1
    common = [name for name, _ in names.most_common(2)]
    return Found(union(spans), len(spans), names=common) if spans else None
