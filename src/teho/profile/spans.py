"""Arithmetic with sets of time spans.

A span is a pair of integers, start and end, with start < end: it contains the start, but not the
end. `Spans` are sorted, and between two of them is a gap.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import chain

__all__ = [
    "Span",
    "Spans",
    "clipped",
    "intersection",
    "is_inside",
    "last_begun",
    "length",
    "subtracted",
    "union",
]

Span = tuple[int, int]
Spans = list[Span]


def union(*sets: Iterable[Span]) -> Spans:
    """Return the time in at least one of the spans, which may overlap, in any order.

    A span without length is left out.
    """
    merged: Spans = []
    ordered = sorted(chain.from_iterable(sets))
    begin, finish = ordered[0] if ordered else (0, 0)
    for start, end in ordered:
        if start > finish:
            if begin < finish:
                merged.append((begin, finish))
            begin, finish = start, end
        elif end > finish:
            finish = end
    if begin < finish:
        merged.append((begin, finish))
    return merged


def intersection(first: Spans, second: Spans) -> Spans:
    """Return the time in both sets."""
    common: Spans = []
    place = other = 0
    while place < len(first) and other < len(second):
        start = max(first[place][0], second[other][0])
        end = min(first[place][1], second[other][1])
        if start < end:
            common.append((start, end))
        if first[place][1] <= second[other][1]:
            place += 1
        else:
            other += 1
    return common


def subtracted(spans: Spans, taken: Spans) -> Spans:
    """Return the time that is in the first set, but not in the second."""
    rest: Spans = []
    place = 0
    for start, end in spans:
        begin = start
        while place < len(taken) and taken[place][1] <= begin:
            place += 1
        number = place
        while number < len(taken) and taken[number][0] < end:
            if begin < taken[number][0]:
                rest.append((begin, taken[number][0]))
            begin = taken[number][1]
            number += 1
        if begin < end:
            rest.append((begin, end))
    return rest


def clipped(spans: Spans, start: int, end: int) -> Spans:
    """Return the time of the set between start and end."""
    if start >= end or not spans:
        return []
    first = max(last_begun(spans, start), 0)
    if spans[first][1] <= start:
        first += 1
    last = bisect_left(spans, (end,), lo=first)
    inside = spans[first:last]
    if inside:
        inside[0] = (max(inside[0][0], start), inside[0][1])
        inside[-1] = (inside[-1][0], min(inside[-1][1], end))
    return inside


def length(spans: Iterable[Span]) -> int:
    """Return the total time of spans that do not overlap."""
    return sum([end - start for start, end in spans])


def is_inside(spans: Spans, moment: int) -> bool:
    """Return whether a moment is in the set."""
    place = last_begun(spans, moment)
    return place >= 0 and moment < spans[place][1]


def last_begun(spans: Spans, moment: int) -> int:
    """Return the place of the last span that begins at this moment or before; -1: none does."""
    # A tuple is compared in C, and a key would be a call of Python for each span that is compared.
    return bisect_left(spans, (moment + 1,)) - 1
