"""The events of one thread or one device as columns, in ns."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from teho.profile.stream import Event

__all__ = ["MATRIX_OPERATORS", "Calls", "Inputs", "Operators", "Track", "Work", "times_of"]

MATRIX_OPERATORS = frozenset(
    {
        "aten::mm",
        "aten::addmm",
        "aten::bmm",
        "aten::baddbmm",
        "aten::cudnn_convolution",
        "aten::miopen_convolution",
        "aten::convolution_backward",
    }
)
"""Operators whose arithmetic operations can be counted from the shapes of their inputs."""


class Track:
    """The events of one thread: operators, or Python functions."""

    def __init__(self) -> None:
        self.starts = array("q")
        self.ends = array("q")
        self.names = array("q")
        self._order: Sequence[int] = ()

    def add(self, start: int, end: int, name: int) -> None:
        """Add an event."""
        self.starts.append(start)
        self.ends.append(end)
        self.names.append(name)

    def extend(self, events: Sequence[Event], numbers: Mapping[str, int]) -> None:
        """Add events.

        Raises:
            ValueError, TypeError, OverflowError: a time of one of them is not a number that can be
                read in this way. Then none is added.
        """
        starts, ends = times_of(events)
        self.starts.extend(starts)
        self.ends.extend(ends)
        self.names.extend([numbers[event.name] for event in events])

    def outermost_first(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield place, start, end and name of each event by start; the longer of two is first."""
        places = range(len(self.starts))
        if len(self._order) != len(places):
            self._order = places if self._is_ordered() else self._ordered()
        columns = (self.starts, self.ends, self.names)
        if self._order == places:  # as in most traces
            return zip(places, *columns, strict=True)
        ordered = (map(column.__getitem__, self._order) for column in columns)
        return zip(self._order, *ordered, strict=True)

    def outermost(self) -> Iterator[tuple[int, int]]:
        """Yield start and end of each event that is not inside of an earlier one, by start."""
        finish = -1
        for _, start, end, _ in self.outermost_first():
            if end > finish:
                yield start, end
                finish = end

    def _is_ordered(self) -> bool:
        return all(
            start < start_after or (start == start_after and end >= end_after)
            for (start, end), (start_after, end_after) in pairwise(
                zip(self.starts, self.ends, strict=True)
            )
        )

    def _ordered(self) -> Sequence[int]:
        # Two stable sorts by numbers are faster than one sort by pairs.
        longest = sorted(range(len(self.starts)), key=self.ends.__getitem__, reverse=True)
        return array("q", sorted(longest, key=self.starts.__getitem__))


class Inputs(NamedTuple):
    """The inputs of one call of an operator, as JSON."""

    shapes: bytes
    types: bytes
    values: bytes


class Operators(Track):
    """The operators of one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: dict[int, Inputs] = {}
        """By the place of an operator that multiplies matrices; empty without shapes."""

    def extend(self, events: Sequence[Event], numbers: Mapping[str, int]) -> None:
        """Add events, with the shapes of matrices."""
        first = len(self.starts)
        super().extend(events, numbers)
        for place, event in enumerate(events, first):
            if event.name in MATRIX_OPERATORS and event.args is not None and event.args.shapes:
                self.inputs[place] = Inputs(
                    bytes(event.args.shapes), bytes(event.args.types), bytes(event.args.values)
                )


class Calls(Track):
    """Calls of the runtime or the driver by all threads."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = array("q")
        self.places: dict[int, int] = {}
        """Place of a call by its correlation number."""


class Work(Track):
    """Kernels, copies and fills of one device."""

    def __init__(self) -> None:
        super().__init__()
        self.correlations = array("q")
        """-1: the event has none."""
        self.are_copies = array("b")


def times_of(events: Sequence[Event]) -> tuple[array[int], array[int]]:
    """Return the starts and the ends of events.

    Raises:
        ValueError, TypeError, OverflowError: a time is not a number, or a duration is negative.
    """
    # The checker is silenced: a time that is not a number raises what the docstring says.
    starts = array("q", [round(event.ts * 1000) for event in events])  # type: ignore[operator,arg-type]
    times = array("q", [round(event.dur * 1000) for event in events])  # type: ignore[operator,arg-type]
    if min(times, default=0) < 0:
        raise ValueError("a negative duration")
    return starts, array("q", map(operator.add, starts, times))
