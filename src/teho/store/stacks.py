"""Reading what a node's stack sampler saw of its Python processes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from teho.model.watched import Frame, Seen, State

__all__ = [
    "Outside",
    "Slice",
    "before",
    "in_all",
    "in_parts",
    "independent_looks",
    "is_of_stacks",
    "lines_of",
    "read_stacks",
]

_RUNNING = frozenset({State.RUNNING, State.MOVED})
_PARTS = 4
_STANDARD_ERRORS = 2.0
"""By more than so many a share differs from the kernel's, if not by chance."""
_HALVINGS = 30
_LEAST_WAITING = 0.1
"""Of the time that a thread ran at a line: where it waits less, looks are not late."""
_LEAST_RUNNING = 0.1
"""Of the time that a thread ran: lines with less say little of how often it changes cores."""
_LEAST_QUEUED = 0.02
"""Of the time in which a thread could run; what is less does not show."""
_CALL = re.compile(r"[(@]")
"""In the text of what goes on: a call, or a product of matrices."""
_SHORTEST_S = 20.0
"""Of a process's time, to be told part by part."""


class Slice(NamedTuple):
    """What was seen of one process from one moment to another."""

    from_s: float
    until_s: float
    seen: tuple[Seen, ...]
    queued_s: float = 0.0
    """For how long its main thread could have run, and had no core."""
    ran_s: float = 0.0
    """For how long it ran. Neither is known if both are zero."""


class Outside:
    """What was seen of one process from outside."""

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self.stayed: Counter[Frame] = Counter()
        """Innermost place -> how much more often the thread stayed there than it went on."""
        self.columns: dict[Frame, tuple[int, ...]] = {}
        """Of frames whose text is not known: where it is in its line, in bytes."""
        self.why = ""
        """Why nothing could be seen; empty if it could."""

    def tell(self, texts: Mapping[tuple[str, int], str]) -> None:
        """Give frames without a text that of their lines.

        Args:
            texts: file and line -> text.
        """
        new: dict[Frame, Frame] = {}
        for frame in {frame for one in self.slices for seen in one.seen for frame in seen.frames}:
            line = "" if frame.text else texts.get((frame.file, frame.line), "")
            if line:
                begin, end = self.columns.get(frame, (0, None))
                text = line.encode()[begin:end].decode("utf-8", "replace").strip()
                new[frame] = msgspec.structs.replace(frame, text=text)
        self.stayed = Counter({new.get(one, one): count for one, count in self.stayed.items()})
        self.slices = [
            one._replace(
                seen=tuple(
                    msgspec.structs.replace(
                        seen, frames=tuple(new.get(frame, frame) for frame in seen.frames)
                    )
                    for seen in one.seen
                )
            )
            for one in self.slices
        ]


def is_of_stacks(path: Path) -> bool:
    """Tell a stack sampler's file from those of probes: `NODE-stacks-PID.jsonl`."""
    return f"-{path.stem}".rpartition("-")[0].endswith("-stacks")


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield a file's whole lines; its writer may be in the midst of another."""
    data = path.read_bytes()
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        yield msgspec.json.decode(line, type=dict[str, Any])


def read_stacks(path: Path, problems: list[str]) -> dict[str, Outside]:
    """Return what was seen of each process, by the name of its probe's file without its ending.

    Args:
        path: the file.
        problems: gains a sentence if the file was full.
    """
    # In a recording each file's name begins with its node's, in the spool it does not.
    node = f"-{path.stem}".rpartition("-stacks-")[0].lstrip("-")
    frames: dict[int, Frame] = {}
    columns: defaultdict[Frame, set[tuple[int, ...]]] = defaultdict(set)
    stacks: dict[str, tuple[Frame, ...]] = {}
    found: defaultdict[str, Outside] = defaultdict(Outside)
    for line in lines_of(path):
        if "frame" in line:
            number, place = line["frame"], line["is"]
            frames[number] = msgspec.convert(place[:4], Frame)
            columns[frames[number]].add(tuple(place[4:]))
        elif "stack" in line:
            stacks[str(line["stack"])] = tuple(frames[number] for number in line["frames"])
        elif "full" in line:
            problems.append(f"{path}: the stack sampler's file is full: the end is not in it")
        elif "gave_up" in line:
            problems.append(f"{path}: stacks were not read to the end: {line['gave_up']}")
        elif "process" in line:
            of = found[f"{node}-{line['process']}" if node else line["process"]]
            if "failed" in line:
                of.why = line["failed"]
            elif "seen" in line:
                of.slices.append(_slice(line, stacks))
                for number, (stayed, went_on) in line["stayed"].items():
                    of.stayed[frames[int(number)]] += stayed - went_on
    for of in found.values():
        # Several calls of one line: the whole line.
        of.columns = {
            frame: next(iter(own))
            for frame, own in columns.items()
            if len(own) == 1 and () not in own
        }
        known = _with_reasons(of.slices)
        of.slices = _settled(_without_late_looks(_in_kernels_shares(known)), of.stayed)
    return dict(found)


def _slice(line: dict[str, Any], stacks: dict[str, tuple[Frame, ...]]) -> Slice:
    seen = tuple(
        Seen(
            frames=stacks.get(number, ()),
            state=State(state),
            looks=looks,
            wall_s=wall_s,
        )
        for number, states in line["seen"].items()
        for state, (looks, wall_s) in states.items()
    )
    return Slice(
        line["from_s"], line["until_s"], seen, line.get("queued_s", 0.0), line.get("ran_s", 0.0)
    )


def _by_line(
    slices: Sequence[Slice],
) -> tuple[defaultdict[tuple[str, int], float], defaultdict[tuple[str, int], dict[State, float]]]:
    """Return for how long the thread could run at each line, and waited there, by the reason."""
    running: defaultdict[tuple[str, int], float] = defaultdict(float)
    waits: defaultdict[tuple[str, int], dict[State, float]] = defaultdict(dict)
    for seen in (seen for one in slices for seen in one.seen):
        line = _line_of(seen)
        if seen.state in _RUNNING:
            running[line] += seen.wall_s
        else:
            waits[line][seen.state] = waits[line].get(seen.state, 0.0) + seen.wall_s
    return running, waits


def _with_reasons(slices: Sequence[Slice]) -> list[Slice]:
    """Give waits without a known reason those of the other waits of their line.

    If a thread was given a core while its stack was read, it had waited, or another thread had
    taken its core. At a line where it hardly ever waits, it was the latter.
    """
    running, reasons = _by_line(slices)

    def with_reason(one: Seen) -> Iterator[Seen]:
        line = _line_of(one)
        of = reasons[line]
        waited_s = sum(of.values())
        known_s = waited_s - of.get(State.WAITING, 0.0)
        if one.state is not State.WAITING or not waited_s:
            yield one
        elif waited_s <= _LEAST_WAITING * running[line]:
            yield from _as(one, {State.MOVED: 1.0})
        elif known_s > 0:
            yield from _as(
                one, {state: s / known_s for state, s in of.items() if state is not State.WAITING}
            )
        else:
            yield one

    return [
        one._replace(seen=tuple(new for seen in one.seen for new in with_reason(seen)))
        for one in slices
    ]


def _in_kernels_shares(slices: Sequence[Slice]) -> list[Slice]:
    """Weigh looks so that a thread does not wait for longer than it did by the kernel's count.

    If other processes use all cores, a look comes sooner while the thread waits and leaves it its
    core: waiting is seen too often. For how long the thread could run is known, from the kernel.
    The odds of waiting are lowered alike in all slices, and each keeps its time.
    """
    known = [one for one in slices if one.ran_s > 0]
    whole_s = sum(one.until_s - one.from_s for one in known)
    looks = sum(seen.looks for one in slices for seen in one.seen)
    parts = [(_waited_s(one), sum(seen.wall_s for seen in one.seen)) for one in slices]
    waited_s, seen_s = (sum(column) for column in zip(*parts, strict=True)) if parts else (0.0, 0.0)
    if whole_s <= 0 or not 0 < waited_s < seen_s:
        return list(slices)
    could_run = min(1.0, sum(one.ran_s + one.queued_s for one in known) / whole_s)
    share = waited_s / seen_s
    by_chance = _STANDARD_ERRORS * (share * (1 - share) / looks) ** 0.5
    if share - (1 - could_run) <= by_chance:
        return list(slices)

    def waits(odds: float) -> float:
        """Return how long it waited with these odds, relative to those that were seen."""
        return sum(
            whole * odds * part / (odds * part + whole - part) for part, whole in parts if part
        )

    least, most = 0.0, 1.0
    for _ in range(_HALVINGS):
        odds = (least + most) / 2
        least, most = (odds, most) if waits(odds) < seen_s * (1 - could_run) else (least, odds)

    def weighed(one: Slice, part: float, whole: float) -> Slice:
        of_rest = whole / (most * part + whole - part) if whole else 1.0
        seen = tuple(
            msgspec.structs.replace(seen, wall_s=weight * seen.wall_s, looks=weight * seen.looks)
            for seen in one.seen
            for weight in (of_rest if seen.state in _RUNNING else most * of_rest,)
        )
        return one._replace(seen=seen)

    return [weighed(one, *part) for one, part in zip(slices, parts, strict=True)]


def _waited_s(one: Slice) -> float:
    return sum(seen.wall_s for seen in one.seen if seen.state not in _RUNNING)


def _without_late_looks(slices: Sequence[Slice]) -> list[Slice]:
    """Count looks that came when a wait had just ended for what was waited for.

    A look needs some 0.05 ms to wake up before it reads the stack. A thread that runs is stopped
    meanwhile, and one that waits may be woken up: it is then found at the same line, or at one that
    follows, on another core, as the look has taken its own. The kernel counts for how long the
    thread could run; what looks found beyond that was waiting, in proportion at the lines where it
    waits and at those on another core, as far as it did not change cores by itself.
    """
    known = [one for one in slices if one.ran_s > 0]
    whole_s = sum(one.until_s - one.from_s for one in known)
    if whole_s <= 0:
        return _as_running(slices)
    could_run = sum(one.ran_s + one.queued_s for one in known) / whole_s
    running, waits = _by_line(slices)
    waited_s = {line: sum(of.values()) for line, of in waits.items()}
    late_s = sum(running.values()) * (1 - could_run) - sum(waited_s.values()) * could_run
    lines = {line for line, s in waited_s.items() if s > _LEAST_WAITING * running[line]}
    moved = _moved_s(slices, lines)
    woken = _woken_shares(moved, running)
    elsewhere_s = sum(moved[line] * part for line, part in woken.items())
    at_waits_s = sum(running[line] for line in lines) + (elsewhere_s if lines else 0.0)
    if late_s <= 0 or at_waits_s <= 0:
        return _as_running(slices)
    share = min(1.0, late_s / at_waits_s)

    def corrected(one: Seen) -> Iterator[Seen]:
        line = _line_of(one)
        if one.state in _RUNNING and line in lines:
            shares = {state: share * s / waited_s[line] for state, s in waits[line].items()}
            yield from _as(one, {State.RUNNING: 1 - share, **shares})
        elif one.state is State.MOVED:
            yield from _as(one, {State.RUNNING: 1 - share * woken[line]})
        else:
            yield one

    found = [
        one._replace(seen=tuple(new for seen in one.seen for new in corrected(seen)))
        for one in slices
    ]
    # What ran elsewhere had waited for what was waited for in all.
    more = 1 + share * elsewhere_s / sum(map(_waited_s, found)) if lines else 1.0
    return [
        one._replace(
            seen=tuple(
                seen
                if seen.state is State.RUNNING
                else msgspec.structs.replace(
                    seen, looks=more * seen.looks, wall_s=more * seen.wall_s
                )
                for seen in one.seen
            )
        )
        for one in found
    ]


def _moved_s(
    slices: Sequence[Slice], but: Collection[tuple[str, int]]
) -> dict[tuple[str, int], float]:
    """Return for how long the thread ran on another core than looked for, by line."""
    found: defaultdict[tuple[str, int], float] = defaultdict(float)
    for seen in (seen for one in slices for seen in one.seen):
        if seen.state in _RUNNING and _line_of(seen) not in but:
            found[_line_of(seen)] += seen.wall_s * (seen.state is State.MOVED)
    return dict(found)


def _woken_shares(
    moved_s: Mapping[tuple[str, int], float], running_s: Mapping[tuple[str, int], float]
) -> dict[tuple[str, int], float]:
    """Return which share of the time on other cores came after a wait, by line.

    Threads also go to another core by themselves, at each line alike: as often as at the line where
    that is the rarest.
    """
    least_s = _LEAST_RUNNING * sum(running_s[line] for line in moved_s)
    large = [line for line in moved_s if running_s[line] >= least_s > 0]
    # If there is only one line, there is nothing to compare it with.
    by_itself = min(moved_s[one] / running_s[one] for one in large) if len(large) > 1 else 0.0
    return {
        line: max(0.0, 1 - by_itself * running_s[line] / s) if s else 0.0
        for line, s in moved_s.items()
    }


def _as_running(slices: Sequence[Slice]) -> list[Slice]:
    """Return what was seen, with running on any core as one state."""
    return [
        one._replace(
            seen=tuple(
                msgspec.structs.replace(seen, state=State.RUNNING)
                if seen.state is State.MOVED
                else seen
                for seen in one.seen
            )
        )
        for one in slices
    ]


def _settled(slices: Sequence[Slice], stayed: Counter[Frame]) -> list[Slice]:
    """Return what was seen of a process with what no single look can tell.

    Whether a place is a call that lasts was found out by looks of another kind: a call that ends
    right after it seems to be Python, and Python that has no core a call, so that what was seen
    more often is true. Nor can a look tell a thread that computes from one that waits for a core;
    for how long it did is known, from the kernel.
    """
    lines: Counter[tuple[str, int]] = Counter()
    for frame, balance in stayed.items():
        lines[frame.file, frame.line] += balance
    queued = _queued_shares(
        [seen for one in slices for seen in one.seen],
        sum(one.queued_s for one in slices),
        sum(one.ran_s for one in slices),
    )

    def is_call(frame: Frame) -> bool:
        if frame in stayed:
            return stayed[frame] > 0
        key = frame.file, frame.line
        return lines[key] > 0 if key in lines else _CALL.search(frame.text) is not None

    def settled(one: Seen) -> Iterator[Seen]:
        if one.state is not State.RUNNING:
            yield one
            return
        is_native = not one.frames or is_call(one.frames[0])
        share = queued.get(_line_of(one), 0.0)
        state = State.NATIVE if is_native else State.PYTHON
        yield from _as(one, {state: 1 - share, State.CORE: share})

    return [
        one._replace(seen=tuple(new for seen in one.seen for new in settled(seen)))
        for one in slices
    ]


def _queued_shares(
    seen: Sequence[Seen], queued_s: float, ran_s: float
) -> dict[tuple[str, int], float]:
    """Return for which share of its time at each line a thread that could run had no core.

    A line at which it mostly waits for something else waits for a core after that; what is left is
    shared out over all others in proportion.
    """
    share = queued_s / (queued_s + ran_s) if queued_s > 0 else 0.0
    if share < _LEAST_QUEUED:
        return {}
    runnable: defaultdict[tuple[str, int], float] = defaultdict(float)
    waiting: defaultdict[tuple[str, int], float] = defaultdict(float)
    for one in seen:
        of = runnable if one.state is State.RUNNING else waiting
        of[_line_of(one)] += one.wall_s
    left_s = share * sum(runnable.values())
    after_s = sum(s for line, s in runnable.items() if waiting[line] > s)
    of_waits = min(1.0, left_s / after_s) if after_s else 0.0
    others_s = sum(runnable.values()) - after_s
    of_others = min(1.0, max(0.0, left_s - after_s) / others_s) if others_s else 0.0
    return {line: of_waits if waiting[line] > s else of_others for line, s in runnable.items()}


def _line_of(seen: Seen) -> tuple[str, int]:
    return (seen.frames[0].file, seen.frames[0].line) if seen.frames else ("", 0)


def _as(seen: Seen, shares: dict[State, float]) -> Iterator[Seen]:
    """Yield what was seen with these shares of it in these states."""
    for state, share in shares.items():
        if share > 0:
            yield msgspec.structs.replace(
                seen, state=state, wall_s=share * seen.wall_s, looks=share * seen.looks
            )


def in_all(slices: Sequence[Slice]) -> tuple[Seen, ...]:
    """Add slices up, most time first."""
    return _sum((seen, 1.0) for one in slices for seen in one.seen)


def before(slices: Sequence[Slice], moment_s: float | None) -> tuple[Seen, ...]:
    """Return what was seen before a moment; nothing if that is not known."""
    return _between(slices, -inf, moment_s) if moment_s is not None else ()


def independent_looks(slices: Sequence[Slice]) -> float:
    """Return how many looks of equal weight would be as exact (Kish's effective sample size)."""
    whole_s = sum(seen.wall_s for one in slices for seen in one.seen)
    squares = sum(seen.wall_s**2 / seen.looks for one in slices for seen in one.seen if seen.looks)
    return whole_s**2 / squares if squares else 0.0


def in_parts(
    slices: Sequence[Slice], began_s: float, until_s: float
) -> tuple[tuple[Seen, ...], ...]:
    """Divide what was seen over equal parts of the time; empty if that was short."""
    if until_s - began_s < _SHORTEST_S:
        return ()
    edges = [began_s + (until_s - began_s) * number / _PARTS for number in range(_PARTS + 1)]
    return tuple(_between(slices, begin, end) for begin, end in pairwise(edges))


def _between(slices: Sequence[Slice], begin_s: float, end_s: float) -> tuple[Seen, ...]:
    weights = [(one, _overlap(one, begin_s, end_s)) for one in slices]
    return _sum((seen, weight) for one, weight in weights if weight > 0 for seen in one.seen)


def _overlap(one: Slice, begin_s: float, end_s: float) -> float:
    """Return which share of a slice is between two moments."""
    inside_s = min(one.until_s, end_s) - max(one.from_s, begin_s)
    whole_s = one.until_s - one.from_s
    return max(0.0, inside_s / whole_s) if whole_s > 0 else float(begin_s <= one.from_s < end_s)


def _sum(weighted: Iterator[tuple[Seen, float]]) -> tuple[Seen, ...]:
    found: dict[tuple[tuple[Frame, ...], State], list[float]] = {}
    for seen, weight in weighted:
        of = found.setdefault((seen.frames, seen.state), [0.0, 0.0])
        of[0] += weight * seen.looks
        of[1] += weight * seen.wall_s
    return tuple(
        Seen(frames=frames, state=state, looks=looks, wall_s=wall_s)
        for (frames, state), (looks, wall_s) in sorted(found.items(), key=lambda pair: -pair[1][1])
    )
