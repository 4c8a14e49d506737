"""The search for causes on the CPU: calls, operators, and why the device waited for the CPU."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from teho.patterns import lazy_pattern
from teho.profile.causes_find import Found, Pattern, Places, Traced, most_of
from teho.profile.device import SYNCHRONISING, base_name
from teho.profile.launches import around
from teho.profile.load import Thread
from teho.profile.spans import (
    Span,
    Spans,
    intersection,
    is_inside,
    last_begun,
    length,
    subtracted,
    union,
)
from teho.profile.tracks import Track

__all__ = [
    "in_calls",
    "in_compilations",
    "in_one_line",
    "in_operators",
    "in_optimizers",
    "in_other_code",
    "in_searches",
    "in_syncs",
]

_SEARCHED = 10
"""Least number of different matrix kernels in one operator that mean a search. A convolution by
Winograd's algorithm, and the gradients of a convolution, need fewer. It is Teho's own choice."""
_OTHER_CODE_NS = 1_000_000
"""Least length of a pause without an operator that is other work. Between two operators, Python
needs some 10 µs. It is Teho's own choice."""
_ONE_LINE = 0.5
"""Share of the idle time before kernels from which one line is the cause. It is Teho's own
choice."""
_OPTIMIZER = lazy_pattern(r"Optimizer\.step#(\w+)\.step")
_Call = tuple[Thread, Span]
"""Thread and time of a call."""


def in_calls(traced: Traced, pattern: Pattern) -> Found | None:
    """Return the calls of the runtime or the driver that a pattern means."""
    calls = list(_calls_named(traced, pattern.expression.search))
    stacks = _stacks(traced, [(thread, span[0]) for thread, span in calls])
    meant = [
        (thread, span, span[1] - span[0])
        for thread, span in calls
        if pattern.is_outside(stacks[thread, span[0]])
    ]
    return _of_calls(traced, meant)


def _calls_named(traced: Traced, is_meant: Callable[[str], object]) -> Iterator[_Call]:
    """Yield the thread and the time of calls of the runtime in the steps."""
    loaded, calls = traced.loaded, traced.loaded.calls
    names = {name for name in set(calls.names) if is_meant(base_name(loaded.names[name]))}
    for place, name in enumerate(calls.names if names else ()):
        if name in names and traced.has(calls.starts[place]):
            thread = loaded.threads[calls.threads[place]]
            yield thread, (calls.starts[place], calls.ends[place])


def _of_calls(traced: Traced, calls: Sequence[tuple[Thread, Span, int]]) -> Found | None:
    """Return calls with their operators and lines.

    Args:
        traced: the trace.
        calls: thread and time of each call, and its weight.
    """
    if not calls:
        return None
    by = Places()
    stacks = _stacks(traced, [(thread, span[0]) for thread, span, _ in calls])
    lines = _lines(traced, [(thread, span[0]) for thread, span, _ in calls])
    for thread, span, weight in calls:
        stack = stacks[thread, span[0]]
        by.add(stack[-1] if stack else "", lines.get((thread, span[0]), ""), weight)
    return by.found([span for _, span, _ in calls], len(calls))


def _stacks(
    traced: Traced, moments: Iterable[tuple[Thread, int]]
) -> dict[tuple[Thread, int], list[str]]:
    """Return the names of the operators around each moment, the outermost first."""
    found = {}
    for thread, starts in _by_thread(moments).items():
        track = traced.loaded.operators.get(thread, Track())
        for moment, stack in zip(starts, around(track, starts), strict=True):
            found[thread, moment] = [traced.loaded.names[track.names[place]] for place in stack]
    return found


def _lines(traced: Traced, moments: Iterable[tuple[Thread, int]]) -> dict[tuple[Thread, int], str]:
    return {
        (thread, moment): line
        for thread, starts in _by_thread(moments).items()
        for moment, line in traced.user_lines.at_moments(thread, starts).items()
    }


def _by_thread(moments: Iterable[tuple[Thread, int]]) -> dict[Thread, list[int]]:
    found: defaultdict[Thread, set[int]] = defaultdict(set)
    for thread, moment in moments:
        found[thread].add(moment)
    return {thread: sorted(starts) for thread, starts in found.items()}


def in_operators(traced: Traced, pattern: Pattern) -> Found | None:
    """Return the operators that a pattern means, if their kernels are short."""
    loaded, expression = traced.loaded, pattern.expression
    meant = {number for number, name in enumerate(loaded.names) if expression.search(name)}
    spans: dict[Thread, Spans] = {}
    by = Places()
    count = 0
    for thread, track in loaded.operators.items() if meant else ():
        outermost: Spans = []
        for _, start, end, name in track.outermost_first() if meant & set(track.names) else ():
            is_inner = bool(outermost) and start < outermost[-1][1]
            if name in meant and traced.has(start) and not is_inner:
                outermost.append((start, end))
                by.operators[loaded.names[name]] += end - start
        if outermost:
            spans[thread] = union(outermost)
            count += len(outermost)
            lines = traced.user_lines.at_moments(thread, [start for start, _ in outermost])
            for start, end in outermost:
                by.lines[lines.get(start, "")] += end - start
    number, mean_us = _kernels_in(traced, spans) if count else (0, 0.0)
    if not number or mean_us > pattern.most_kernel_us or number < pattern.least_kernels * count:
        return None
    found = by.found([span for each in spans.values() for span in each], count)
    return found._replace(names=[f"{number / count:,.0f}"])


def _kernels_in(traced: Traced, spans: Mapping[Thread, Spans]) -> tuple[int, float]:
    """Return the number and the mean duration in µs of kernels that were launched in some spans."""
    work, times = traced.work, []
    for start, end, number in zip(work.starts, work.ends, work.correlations, strict=True):
        launch = traced.launched.get(number)
        if launch and is_inside(spans.get(launch.thread, []), launch.start):
            times.append(end - start)
    return len(times), sum(times) / max(len(times), 1) / 1000


def in_syncs(traced: Traced, pattern: Pattern) -> Found | None:
    """Return the idle time after calls that wait for the device, inside of the operators meant.

    An empty pattern (`^$`) means calls outside of all operators.
    """
    gaps = traced.line.idle.get("sync", []) if traced.line else []
    calls = list(_calls_named(traced, SYNCHRONISING.__contains__)) if gaps else []
    stacks = _stacks(traced, [(thread, span[0]) for thread, span in calls])
    expression = pattern.expression
    followed: list[tuple[Thread, Span, int]] = []
    spans: Spans = []
    for gap, (thread, span) in _followed(gaps, calls, traced.cpu.main):
        stack = stacks[thread, span[0]] or [""]
        is_meant = any(expression.search(name) for name in stack) and pattern.is_outside(stack)
        if is_meant and traced.has(gap[0]):
            followed.append((thread, span, gap[1] - gap[0]))
            spans.append(gap)
    found = _of_calls(traced, followed)
    return found._replace(spans=union(spans)) if found else None


def _followed(
    gaps: Spans, calls: Sequence[_Call], main: Thread | None
) -> Iterator[tuple[Span, _Call]]:
    """Yield each gap with the call in which it began; of two calls, the one of the main thread."""
    by_thread: defaultdict[Thread, Spans] = defaultdict(list)
    for thread, span in calls:
        by_thread[thread].append(span)
    threads = sorted(by_thread, key=lambda thread: thread != main)
    for spans in by_thread.values():
        spans.sort()
    for gap in gaps:
        for thread in threads:
            place = last_begun(by_thread[thread], gap[0])
            if place >= 0 and by_thread[thread][place][1] >= gap[0]:
                yield gap, (thread, by_thread[thread][place])
                break


def in_optimizers(traced: Traced, pattern: Pattern) -> Found | None:
    """Return the time in which the device waited for an optimizer of the classes meant."""
    classes = Counter(
        match[1] for mark in traced.loaded.marks if (match := _OPTIMIZER.match(mark.name))
    )
    name = most_of(classes)
    if traced.line is None or not pattern.expression.search(name):
        return None
    launched = sum(
        launch.is_optimizer and traced.has(start)
        for start, number in zip(traced.work.starts, traced.work.correlations, strict=True)
        if (launch := traced.launched.get(number))
    )
    updating = union(*traced.cpu.optimizers.values())
    spans = intersection(traced.line.idle.get("launch", []), updating)
    return Found(spans, launched, names=(name,))


def in_searches(traced: Traced, pattern: Pattern) -> Found | None:
    """Return operators in which so many matrix kernels ran that a library compared them."""
    kernels: defaultdict[tuple[Thread, int], set[int]] = defaultdict(set)
    work = traced.work
    for place, number in enumerate(work.correlations):
        launch = traced.launched.get(number)
        if (
            launch
            and launch.place >= 0
            and traced.categories[place] in {"convolution", "matmul"}
            and pattern.expression.search(launch.operator)
            and traced.has(launch.start)
        ):
            kernels[launch.thread, launch.place].add(work.names[place])
    found: list[tuple[Thread, Span, int]] = []
    for (thread, place), names in kernels.items():
        if len(names) >= _SEARCHED:
            track = traced.loaded.operators[thread]
            span = (track.starts[place], track.ends[place])
            found.append((thread, span, span[1] - span[0]))
    return _of_calls(traced, found)


def in_other_code(traced: Traced, _: Pattern) -> Found | None:
    """Return the long parts of the idle time in which no thread was in an operator or a call."""
    if traced.line is None:
        return None
    waiting = traced.line.idle.get("launch", [])
    long = [gap for gap in waiting if gap[1] - gap[0] >= _OTHER_CODE_NS and traced.has(gap[0])]
    tracks = [*traced.loaded.operators.values(), traced.loaded.calls] if long else []
    active = union(*(_touching(track, long) for track in tracks))
    spans = [span for span in subtracted(long, active) if span[1] - span[0] >= _OTHER_CODE_NS]
    if not spans or traced.cpu.main is None:
        return None
    by = Places()
    middles = {(start + end) // 2: end - start for start, end in spans}
    lines = traced.user_lines.at_moments(traced.cpu.main, middles)
    for moment, time in middles.items():
        by.lines[lines.get(moment, "")] += time
    return by.found(spans, len(spans))


def in_one_line(traced: Traced, _: Pattern) -> Found | None:
    """Return the idle time before the kernels that one line of the program launches."""
    work = traced.work
    gaps = traced.line.idle.get("launch", []) if traced.line and traced.loaded.frames else []
    coming = sorted(zip(work.starts, range(len(work.starts)), strict=True)) if gaps else []
    spans: defaultdict[str, Spans] = defaultdict(list)
    for gap in gaps:
        place = bisect_left(coming, (gap[1],))
        following = (
            traced.launched.get(work.correlations[coming[place][1]])
            if place < len(coming)
            else None
        )
        if following and not following.is_optimizer and gap[1] - gap[0] < _OTHER_CODE_NS:
            spans[following.line].append(gap)
    lengths = {line: length(found) for line, found in spans.items()}
    line = max(lengths, key=lengths.__getitem__, default="")
    if not line or lengths[line] < _ONE_LINE * length(gaps):
        return None
    launched = sum(
        launch.line == line and traced.has(start)
        for start, number in zip(work.starts, work.correlations, strict=True)
        if (launch := traced.launched.get(number))
    )
    return Found(union(spans[line]), launched, line=line)


def _touching(track: Track, spans: Spans) -> list[Span]:
    """Return the times of the outermost events that may have time in common with the spans."""
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    return [
        event
        for event in track.outermost()
        if bisect_right(starts, event[1]) > bisect_right(ends, event[0])
    ]


def in_compilations(traced: Traced, _: Pattern) -> Found | None:
    """Return what was compiled."""
    spans, functions = traced.cpu.compiled
    return Found(spans, len(spans), names=list(functions)) if spans else None
