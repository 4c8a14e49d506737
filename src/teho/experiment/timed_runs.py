"""Runs of one program that share a time limit."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from teho.experiment.attempt import Attempt
from teho.model.tuned import Settings

__all__ = ["Run", "TimedRuns"]

Run = Callable[[Settings, float, "tuple[str, int] | None"], Attempt]
"""Runs the program with settings, a time limit in s, and the place of the loader."""


class TimedRuns:
    """Runs a program, and knows whether there is time for more runs.

    Args:
        run: runs the program.
        for_s: time limit for all runs together.
        clock: monotonic time in s.
    """

    def __init__(self, run: Run, for_s: float, clock: Callable[[], float]) -> None:
        self._run = run
        self.for_s = for_s
        self._clock = clock
        self._began_s = clock()
        self._runs_s: list[float] = []

    def __call__(
        self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None
    ) -> Attempt:
        """Run the program; the arguments are the same as for `Run`."""
        began_s = self._clock()
        run = self._run(settings, limit_s, made_at)
        self._runs_s.append(self._clock() - began_s)
        return run

    @property
    def elapsed_s(self) -> float:
        """Time since the beginning."""
        return self._clock() - self._began_s

    @property
    def left_s(self) -> float:
        """Time until the limit."""
        return self.for_s - self.elapsed_s

    def affords(self, count: int) -> bool:
        """Return whether there is time for a number of runs that take as long as those so far."""
        return self.elapsed_s + count * fmean(self._runs_s) <= self.for_s
