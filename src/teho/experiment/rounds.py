"""Runs of a program in turns: every placement once a round."""

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
"""Share of the time that the first round may take. A verdict needs at least two rounds."""
_PATIENCE = 2.0
"""A run may take this many times as long as its earlier runs, even if less time is left."""


class RunOnce(Protocol):
    """A function that runs the program once, such as `Runner`."""

    def __call__(self, placement: Placement, limit_s: float) -> Recorded:
        """Run the program on a placement, with a time limit."""
        ...


class Rounds:
    """The results of each placement, round by round.

    Args:
        run: runs the program.
        placements: the smallest first.
        for_s: time limit for all runs together.
        progress: called with a line for each run.
        clock: monotonic time in s.
    """

    def __init__(
        self,
        run: RunOnce,
        placements: Sequence[Placement],
        for_s: float,
        progress: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._run = run
        self._for_s = for_s
        self._progress = progress
        self._clock = clock
        self._began_s = clock()
        self._rounds_s: list[float] = []
        self.runs: dict[Placement, list[Sample]] = {place: [] for place in placements}
        self.printed: dict[str, list[Printed]] = {}
        """Variant -> the output of each of its runs."""

    @property
    def left_s(self) -> float:
        """The remaining time."""
        return self._for_s - (self._clock() - self._began_s)

    @property
    def mean_s(self) -> float:
        """The mean time of a round; 0 before the first."""
        return fmean(self._rounds_s or [0.0])

    @property
    def count(self) -> int:
        """The number of rounds so far."""
        return len(self._rounds_s)

    @property
    def fit(self) -> int:
        """The number of placements without a failed run."""
        return len(self._fit())

    def affords(self, rounds: int) -> bool:
        """Return whether there is time for this many more rounds."""
        return self.left_s >= rounds * self.mean_s

    def until(self, count: int, fewest: int = 2) -> None:
        """Continue to this number of rounds, unless time or variants run out.

        Args:
            count: number of rounds, with the earlier ones.
            fewest: continue only with this number of placements without a failed run.
        """
        while self.count < count and self.affords(1):
            self.round()
            if self.fit < fewest:
                break

    def round(self) -> None:
        """Run each placement without a failed run once; every other round in reverse."""
        began_s = self._clock()
        fit = self._fit()
        # In reverse, so that a machine that slows down gradually affects all in the same way.
        for number, place in enumerate(fit[:: 1 if self.count % 2 == 0 else -1]):
            earlier_s = [sample.elapsed_s for sample in self.runs[place]]
            if earlier_s:  # a program that came to its end before is not stopped now
                limit_s = max(self.left_s, _PATIENCE * max(earlier_s))
            else:
                first_s = self.left_s - (1 - _LONGEST) * self._for_s
                limit_s = first_s / (len(fit) - number)
            recorded = self._run(place, max(limit_s, 1.0))
            self.runs[place].append(recorded.sample)
            if recorded.printed is not None:
                self.printed.setdefault(place.name, []).append(recorded.printed)
            self._progress(f"{place.name}: {_words(recorded.sample)}")
        self._rounds_s.append(self._clock() - began_s)

    def _fit(self) -> list[Placement]:
        return [place for place, own in self.runs.items() if not any(one.why for one in own)]


def _words(sample: Sample) -> str:
    if sample.why:
        return sample.why
    if sample.is_whole or sample.steps_per_s is None:
        return format_duration(sample.elapsed_s)
    return f"{format_pace(sample.steps_per_s)} {many(sample.unit)}/s"
