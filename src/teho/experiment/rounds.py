"""Runs of a program that take turns: every placement once a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Protocol

from teho.experiment.outputs import Printed
from teho.experiment.placement import Placement
from teho.experiment.recorded import Recorded
from teho.model.compared import Sample
from teho.units import format_duration, format_pace, many

__all__ = ["Rounds", "RunOnce"]

_LONGEST = 0.5
"""Share of the time that the first round may take: with fewer than two, nothing can be said."""

_PATIENCE = 2.0
"""So many times as long as its earlier runs a run may take, however little time is left."""


class RunOnce(Protocol):
    """What runs the program once under a placement, `Runner.run`."""

    def __call__(self, placement: Placement, limit_s: float) -> Recorded:
        """Run it, for so long at most."""
        ...


class Rounds:
    """What was seen of each placement, round for round.

    Args:
        run: runs the program.
        placements: the smallest first.
        for_s: how long all may take.
        tell: called with a line for each run.
        clock: monotonic time in s.
    """

    def __init__(
        self,
        run: RunOnce,
        placements: Sequence[Placement],
        for_s: float,
        tell: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._run = run
        self._placements = placements
        self._for_s = for_s
        self._tell = tell
        self._clock = clock
        self._began_s = clock()
        self._rounds_s: list[float] = []
        self.runs: dict[Placement, list[Sample]] = {place: [] for place in placements}
        self.printed: dict[str, list[Printed]] = {}
        """Variant -> what each of its runs printed."""

    @property
    def left_s(self) -> float:
        """What is left of the time."""
        return self._for_s - (self._clock() - self._began_s)

    @property
    def mean_s(self) -> float:
        """How long a round takes; 0 before there was one."""
        return fmean(self._rounds_s or [0.0])

    def affords(self, rounds: int) -> bool:
        """Return whether the time suffices for so many more."""
        return self.left_s >= rounds * self.mean_s

    def round(self) -> None:
        """Run each placement once that is still in; every other round in reverse."""
        began_s = self._clock()
        fit = [place for place in self._placements if not _is_out(self.runs[place])]
        # A machine that slows down by and by favours nobody.
        for number, place in enumerate(fit[:: 1 if len(self._rounds_s) % 2 == 0 else -1]):
            earlier_s = [sample.elapsed_s for sample in self.runs[place]]
            if earlier_s:  # who came to an end before is not out because the time is
                limit_s = max(self.left_s, _PATIENCE * max(earlier_s))
            else:
                first_s = self.left_s - (1 - _LONGEST) * self._for_s
                limit_s = first_s / (len(fit) - number)
            recorded = self._run(place, max(limit_s, 1.0))
            self.runs[place].append(recorded.sample)
            if recorded.printed is not None:
                self.printed.setdefault(place.name, []).append(recorded.printed)
            self._tell(f"{place.name}: {_words(recorded.sample)}")
        self._rounds_s.append(self._clock() - began_s)

    @property
    def count(self) -> int:
        """How many there were."""
        return len(self._rounds_s)

    @property
    def fit(self) -> int:
        """How many placements are still in."""
        return sum(not _is_out(own) for own in self.runs.values())


def _is_out(samples: Sequence[Sample]) -> bool:
    return any(sample.why for sample in samples)


def _words(sample: Sample) -> str:
    if sample.why:
        return sample.why
    if sample.is_whole or sample.steps_per_s is None:
        return format_duration(sample.elapsed_s)
    return f"{format_pace(sample.steps_per_s)} {many(sample.unit)}/s"
