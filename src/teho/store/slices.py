"""The stack samples of one process in spans of time: their sums, and parts of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

import msgspec

from teho.model.stack import Frame, Seen, State

__all__ = [
    "Slice",
    "at_end",
    "before",
    "changed",
    "entries",
    "in_parts",
    "independent_samples",
    "split",
    "totals",
]

_PARTS = 4
_END_S = 45.0
"""A run is called stuck if its processes waited for this time. Programs often pause for less."""
_SHORTEST_S = 20.0
"""A process that ran for less time is not divided into parts."""


class Slice(NamedTuple):
    """The samples of one process in a span of time."""

    from_s: float
    until_s: float
    seen: tuple[Seen, ...]
    queued_s: float = 0.0
    """How long its main thread could have run, but had no core."""
    ran_s: float = 0.0
    """How long the main thread ran. If both are zero, neither is known."""


def entries(slices: Sequence[Slice]) -> Iterator[Seen]:
    """Yield the entries of all slices."""
    for one in slices:
        yield from one.seen


def changed(slices: Sequence[Slice], change: Callable[[Seen], Iterable[Seen]]) -> list[Slice]:
    """Return slices in which each entry is replaced by the entries that `change` returns."""
    return [
        one._replace(seen=tuple(new for seen in one.seen for new in change(seen))) for one in slices
    ]


def split(seen: Seen, shares: dict[State, float]) -> Iterator[Seen]:
    """Yield an entry once for each state, with the state's share of its samples and time."""
    for state, share in shares.items():
        if share > 0:
            yield msgspec.structs.replace(
                seen, state=state, wall_s=share * seen.wall_s, samples=share * seen.samples
            )


def totals(slices: Sequence[Slice]) -> tuple[Seen, ...]:
    """Add up slices, and return the entries with the most time first."""
    return _sum((seen, 1.0) for seen in entries(slices))


def before(slices: Sequence[Slice], moment_s: float | None) -> tuple[Seen, ...]:
    """Return the entries before a moment; empty if the moment is not known."""
    return _between(slices, -inf, moment_s) if moment_s is not None else ()


def at_end(slices: Sequence[Slice], began_s: float) -> Slice:
    """Return the entries of the last seconds, and the time from which they are.

    In a long run, a slice is longer than that, and the entries are its means. Without samples, or
    if the time of the process is shorter, there are no entries.
    """
    until_s = slices[-1].until_s if slices else began_s
    if not slices or until_s - began_s < _END_S:
        return Slice(until_s, until_s, ())
    begin_s = until_s - _END_S
    first_s = min(one.from_s for one in slices if one.until_s > begin_s)
    return Slice(max(began_s, first_s), until_s, _between(slices, begin_s, inf))


def independent_samples(slices: Sequence[Slice]) -> float:
    """Return the number of equal samples with the same precision (Kish's effective size)."""
    whole_s = sum(seen.wall_s for seen in entries(slices))
    squares = sum(seen.wall_s**2 / seen.samples for seen in entries(slices) if seen.samples)
    return whole_s**2 / squares if squares else 0.0


def in_parts(
    slices: Sequence[Slice], began_s: float, until_s: float
) -> tuple[tuple[Seen, ...], ...]:
    """Divide the entries into equal parts of the time; empty if the time is short."""
    if until_s - began_s < _SHORTEST_S:
        return ()
    edges = [began_s + (until_s - began_s) * number / _PARTS for number in range(_PARTS + 1)]
    return tuple(_between(slices, begin, end) for begin, end in pairwise(edges))


def _between(slices: Sequence[Slice], begin_s: float, end_s: float) -> tuple[Seen, ...]:
    weights = [(one, _overlap(one, begin_s, end_s)) for one in slices]
    return _sum((seen, weight) for one, weight in weights if weight > 0 for seen in one.seen)


def _overlap(one: Slice, begin_s: float, end_s: float) -> float:
    """Return the share of a slice between two moments."""
    inside_s = min(one.until_s, end_s) - max(one.from_s, begin_s)
    whole_s = one.until_s - one.from_s
    return max(0.0, inside_s / whole_s) if whole_s > 0 else float(begin_s <= one.from_s < end_s)


def _sum(weighted: Iterator[tuple[Seen, float]]) -> tuple[Seen, ...]:
    sums: dict[tuple[tuple[Frame, ...], State], list[float]] = {}
    for seen, weight in weighted:
        total = sums.setdefault((seen.frames, seen.state), [0.0, 0.0])
        total[0] += weight * seen.samples
        total[1] += weight * seen.wall_s
    return tuple(
        Seen(frames=frames, state=state, samples=samples, wall_s=wall_s)
        for (frames, state), (samples, wall_s) in sorted(sums.items(), key=lambda pair: -pair[1][1])
    )
