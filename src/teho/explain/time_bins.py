"""Which time bins of a run belong to the start of a program, to its steps, or to its work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from teho.explain.step import offset_s
from teho.model.program import Doing, MainProcess
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["TimeBins", "bins_of_work"]


class TimeBins(NamedTuple):
    """The time bins of a run."""

    run: Run
    summary: Summary

    def stepping(self, main: MainProcess) -> range:
        """Return the time bins between the first and the last step; empty if they are unknown."""
        progress = main.process.progress
        first_s = self._moment_s(main, progress[0].first_s) if progress else None
        last_s = self._moment_s(main, progress[-1].last_s) if progress else None
        if first_s is None or last_s is None:
            return range(0)
        first, last = first_s / self.summary.bin_s, last_s / self.summary.bin_s
        return range(max(0, math.ceil(first)), min(self.summary.bin_count, math.floor(last)))

    def working(
        self, main: MainProcess, series: Sequence[Sequence[float | None]], least: float
    ) -> range:
        """Return the time bins from the first to the last work of a node's GPUs.

        The first and the last bin with work are left out: the GPU worked in only a part of them.

        Args:
            main: a process; bins in which it imports and compiles are left out.
            series: busy share of each GPU of its node, in %.
            least: from this share on, a bin has work.
        """
        bins, start = bins_of_work(series, least), self.start(main)
        if not bins or start is None:
            return range(0)
        first = max(bins.start + 1, start)
        return range(first, max(first, bins.stop - 1))

    def start(self, main: MainProcess) -> int | None:
        """Return the first time bin after imports and compiling; None if it is not known.

        These are at the begin of a program, except if it compiles again.
        """
        begin_s = self._moment_s(main, main.process.began_s)
        if begin_s is None:
            return None
        start_s = begin_s + main.seconds(Doing.IMPORTING, Doing.COMPILING)
        return math.ceil(start_s / self.summary.bin_s)

    def _moment_s(self, main: MainProcess, monotonic_s: float) -> float | None:
        """Return a moment of a node's monotonic clock in the time of the run; None: not known."""
        node = self.run.node(main.process.node)
        if node is None or node.started_s is None:
            return None
        return monotonic_s + offset_s(self.run, node) - node.started_s


def bins_of_work(series: Sequence[Sequence[float | None]], least: float) -> range:
    """Return the time bins from the first to the last with work; empty: no bin has work.

    Args:
        series: busy share of each GPU, in %.
        least: from this share of one GPU on, a bin has work.
    """
    working = [
        number
        for number, values in enumerate(zip(*series, strict=False))
        if any(value is not None and value >= least for value in values)
    ]
    return range(working[0], working[-1] + 1) if working else range(0)
