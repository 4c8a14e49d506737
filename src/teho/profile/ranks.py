"""Ranks together: for which rank the others waited in collectives, and how far clocks differ.

A collective ends on all ranks at about the same time. So the rank on which it is the shortest came
last, and each other rank waited for the rest of its own duration. This needs no common clock.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from teho.model.trace import RankWait
from teho.patterns import lazy_pattern
from teho.profile.categories import category_of
from teho.profile.device import Timeline, is_cpu_collective
from teho.profile.launches import Launch
from teho.profile.load import Loaded, Mark, Thread
from teho.profile.spans import Span, Spans, length, subtracted, union

__all__ = ["Collectives", "Windows", "collectives_of", "rank_waits"]

_NS = 1e9
_BETWEEN_TWO = lazy_pattern("send|recv", re.IGNORECASE)
"""Exchanges between two ranks: the n-th of one rank is not the n-th of another rank."""
_DEVICE_COLLECTIVES = ("nccl:", "rccl:", "ucc:")
_NO_STEP = -1
Windows = Sequence[tuple["int | None", int, int]]
"""Number of each step, its start and its end."""
_Kind = tuple[int, str, str]
"""Step, process group and name of a collective."""


class Collectives(NamedTuple):
    """The collectives of one rank."""

    spans: dict[_Kind, Spans]
    """In the order of their starts; they may overlap."""
    computing: Spans
    """When a device of the rank computed."""
    base_ns: int
    """Added to the times of this trace, to get a time of the clock of its node."""
    steps: int


class _Wait(NamedTuple):
    """A time in which one rank waited for another."""

    rank: int
    """Place of the trace."""
    span: Span
    last: int
    """Place of the trace of the rank that came last."""


def collectives_of(
    loaded: Loaded, launched: dict[int, Launch], lines: dict[int, Timeline], windows: Windows
) -> Collectives:
    """Return the collectives in the steps of one trace.

    A collective belongs to the step in which the CPU started it.
    """
    starts = [start for _, start, _ in windows]
    marks = _Marks(loaded)
    found: defaultdict[_Kind, Spans] = defaultdict(list)

    def add(name: str, group: str, begin: int, span: Span) -> None:
        place = bisect_right(starts, begin) - 1
        if place >= 0 and begin < windows[place][2] and not _BETWEEN_TWO.search(name):
            number = windows[place][0]
            found[_NO_STEP if number is None else number, group, name].append(span)

    for work in loaded.work.values():
        are_meant = {
            name for name in set(work.names) if category_of(loaded.names[name]) == "collective"
        }
        for place, name in enumerate(work.names):
            if name in are_meant:
                number = work.correlations[place]
                launch = launched.get(number)
                span = (work.starts[place], work.ends[place])
                begin = launch.start if launch else span[0]
                marked = marks.around(launch) if launch else ""
                add(marked or loaded.names[name], loaded.groups.get(number, ""), begin, span)
    for mark in loaded.marks:
        if is_cpu_collective(mark.name):
            add(mark.name, "", mark.start, (mark.start, mark.end))
    base = loaded.values.get("baseTimeNanoseconds")
    return Collectives(
        {kind: sorted(spans) for kind, spans in found.items()},
        union(*(line.compute for line in lines.values())),
        base if isinstance(base, int) else 0,
        len(windows),
    )


class _Marks:
    """Finds PyTorch's mark of a collective on the CPU, such as `nccl:all_to_all`.

    The kernel of an all-to-all has the same name as the kernel of an exchange between two ranks.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._marks: defaultdict[Thread, list[Mark]] = defaultdict(list)
        for mark in loaded.marks:
            if mark.name.startswith(_DEVICE_COLLECTIVES):
                self._marks[mark.thread].append(mark)
        for marks in self._marks.values():
            marks.sort(key=_start)

    def around(self, launch: Launch) -> str:
        """Return the name of the mark in which a launch is; empty: in none."""
        marks = self._marks.get(launch.thread, [])
        place = bisect_right(marks, launch.start, key=_start) - 1
        return marks[place].name if place >= 0 and launch.start < marks[place].end else ""


def _start(mark: Mark) -> int:
    return mark.start


def rank_waits(ranks: Sequence[Collectives]) -> list[RankWait | None]:
    """Return how long each rank waited, and how long the others waited for it.

    Args:
        ranks: of one program.

    Returns:
        In the same order; None for a rank without a collective that another rank has too.
    """
    counts = [0] * len(ranks)
    partners: list[set[int]] = [set() for _ in ranks]
    ahead: list[list[int]] = [[] for _ in ranks]
    waits: list[_Wait] = []
    for members, spans in _matched(ranks):
        shortest = min(end - start for start, end in spans)
        last = min(range(len(spans)), key=lambda place: spans[place][1] - spans[place][0])
        for member, (start, end) in zip(members, spans, strict=True):
            counts[member] += 1
            partners[member].update(members)
            waits.append(_Wait(member, (start, end - shortest), members[last]))
            if members[0] == 0:
                ahead[member].append(end + ranks[member].base_ns - spans[0][1] - ranks[0].base_ns)
    exposed: defaultdict[tuple[int, int], Spans] = defaultdict(list)
    for wait in waits:
        exposed[wait.rank, wait.last].append(wait.span)
    lengths = {
        pair: length(subtracted(union(spans), ranks[pair[0]].computing)) / _NS
        for pair, spans in exposed.items()
    }
    return [
        RankWait(
            collectives=counts[place],
            waited_s=sum(time_s for (rank, _), time_s in lengths.items() if rank == place)
            / ranks[place].steps,
            awaited_s=sum(time_s for (_, last), time_s in lengths.items() if last == place)
            / ranks[place].steps
            / (len(partners[place]) - 1),
            clock_s=median(ahead[place]) / _NS if ahead[place] else None,
        )
        if counts[place]
        else None
        for place in range(len(ranks))
    ]


def _matched(ranks: Sequence[Collectives]) -> Iterator[tuple[list[int], list[Span]]]:
    """Yield each collective that at least two ranks have: the ranks, and its time on each.

    Collectives of one kind are counted in each step. If a rank has another number of them than the
    others, none of this kind in this step is compared.
    """
    kinds = dict.fromkeys(kind for rank in ranks for kind in rank.spans)
    for kind in kinds:
        members = [place for place, rank in enumerate(ranks) if kind in rank.spans]
        found = [ranks[place].spans[kind] for place in members]
        if len(members) > 1 and len({len(spans) for spans in found}) == 1:
            for spans in zip(*found, strict=True):
                yield members, list(spans)
