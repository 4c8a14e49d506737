"""The recordings of jobs: their ids, and the use of the GPUs that the accounting lacks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.errors import RecordingError
from teho.explain.policy import Policy
from teho.explain.rules.gpu.gpu_used_only_at_first import split_series
from teho.explain.summary import summarise
from teho.model.accounted import AccountedJob
from teho.model.listed_run import Judged
from teho.model.metric import METRICS_BY_NAME
from teho.model.run import Run
from teho.model.summary import Stat
from teho.store.index import list_runs, verdicts_of
from teho.version import __version__

__all__ = ["GpuUse", "Recordings"]

_BUSY = "gpu_busy_percent"
_COVERED_MIN = 0.9
"""A recording of a smaller part of a job's time says too little about the job."""
_CLOCKS_DIFFER = timedelta(minutes=2)


class GpuUse(msgspec.Struct, frozen=True, array_like=True):
    """The use of one GPU in a recording."""

    mean_percent: float
    covered_s: float
    """Time for which the use is known."""
    idle_end_percent: float
    """Share of the recording for which the GPU was idle at the end, after it had been used."""


class _Recording(NamedTuple):
    path: Path
    run: Run


class Recordings:
    """The recordings of a home directory, by the ids of their jobs."""

    def __init__(
        self, home: Path, policy: Policy, runs: Iterable[tuple[Path, Run | None]] = ()
    ) -> None:
        """Keep recordings.

        Args:
            home: the directory of all recordings.
            policy: says when a GPU is idle.
            runs: the recordings, oldest first.
        """
        limits = policy.thresholds["gpu_used_only_at_first"]
        self._idle = limits["idle_below_percent"].value, limits["blips_percent"].value / 100
        self._home = home
        self._by_job: dict[str, list[_Recording]] = {}
        for path, run in runs:
            for node in run.nodes if run else ():
                own = self._by_job.setdefault(node.allocation.job_id or "", [])
                if run is not None and path not in [one.path for one in own]:
                    own.append(_Recording(path, run))
        self._by_job.pop("", None)

    @classmethod
    def of(cls, home: Path, policy: Policy) -> Recordings:
        """Return all recordings of a home directory."""
        return cls(home, policy, list_runs(home))

    def ids(self, job: AccountedJob) -> tuple[str, ...]:
        """Return the ids of a job's recordings, oldest first."""
        return tuple(one.path.name for one in self._of(job))

    def gpu_uses(self, job: AccountedJob) -> tuple[GpuUse, ...]:
        """Return the use of each GPU of a job; empty if no recording has it.

        The recording must have all GPUs of the job, for at least 90 % of its time.
        """
        least_s = _COVERED_MIN * (job.elapsed_s or 0.0)
        for one in reversed(self._of(job)):
            # The recorder of `teho always` is ended with its job, so it writes no end.
            if one.run.end is None and not one.run.unasked:
                continue
            find = partial(_uses, one.run, self._idle)
            name = f"gpu uses {__version__} {self._idle}"
            (found,) = verdicts_of(self._home, [one.path], name, find)
            uses = tuple(msgspec.json.decode(found.words, type=list[GpuUse]))
            if len(uses) == job.gpus and all(use.covered_s >= least_s for use in uses):
                return uses
        return ()

    def _of(self, job: AccountedJob) -> list[_Recording]:
        """Return the recordings; schedulers use numbers again, so the times must fit."""
        began, ended = job.started_at, job.ended_at
        return [
            one
            for one in self._by_job.get(job.id, ())
            if began is not None
            and one.run.started_at >= began - _CLOCKS_DIFFER
            and (ended is None or one.run.started_at <= ended + _CLOCKS_DIFFER)
        ]


def _uses(run: Run, idle: tuple[float, float], directory: Path) -> Judged:
    """Return the use of a recording's GPUs, as JSON in the words that the index stores.

    A GPU that was not recorded has no use.
    """
    try:
        summary = summarise(run, directory, [], metrics=(METRICS_BY_NAME[_BUSY],))
    except RecordingError:
        return Judged(severity="", words="[]")
    uses = []
    for gpu in summary.gpus:
        stat = gpu.stats.get(_BUSY)
        if isinstance(stat, Stat):
            split = split_series(gpu.series.get(_BUSY, []), *idle)
            uses.append(GpuUse(stat.mean, stat.covered_s, split[2] if split else 0.0))
    return Judged(severity="", words=msgspec.json.encode(uses).decode())
