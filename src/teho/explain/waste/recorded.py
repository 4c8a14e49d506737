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
from teho.model.missing import Missing
from teho.model.run import Run
from teho.model.summary import GpuSummary, Series, Stat
from teho.store.index import list_runs, verdicts_of
from teho.version import __version__

__all__ = ["GpuUse", "Recordings"]

_BUSY, _PROCESSES, _POWER = "gpu_busy_percent", "gpu_job_processes", "gpu_power_w"
_METRICS = tuple(METRICS_BY_NAME[name] for name in (_BUSY, _PROCESSES, _POWER))
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
    gone_end_percent: float = 0.0
    """Share of the recording for which the GPU had no process of the job at the end, after it had
    one; 0 also if this is not known."""
    idle_energy_j: float | None = None
    """Energy of a GPU that was never used, or of its idle end. None: not known."""


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
            if one.run.end is None and not one.run.is_automatic:
                continue
            find = partial(_uses, one.run, self._idle)
            name = f"gpu uses with processes {__version__} {self._idle}"
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
        summary = summarise(run, directory, [], metrics=_METRICS)
    except RecordingError:
        return Judged(severity="", words="[]")
    uses = [
        _use(gpu, stat, idle, summary.bin_s)
        for gpu in summary.gpus
        if isinstance(stat := gpu.stats.get(_BUSY), Stat)
    ]
    return Judged(severity="", words=msgspec.json.encode(uses).decode())


def _use(gpu: GpuSummary, stat: Stat, idle: tuple[float, float], bin_s: float) -> GpuUse:
    split = split_series(gpu.series.get(_BUSY, []), *idle)
    energy_j: float | None = None
    if split:
        known = [watts for watts in gpu.series.get(_POWER, [])[split[0] :] if watts is not None]
        energy_j = bin_s * sum(known) if known else None
    elif not stat.mean and not isinstance(gpu.energy_j, Missing):
        energy_j = gpu.energy_j
    return GpuUse(
        mean_percent=stat.mean,
        covered_s=stat.covered_s,
        idle_end_percent=split[2] if split else 0.0,
        gone_end_percent=_gone_percent(gpu.series.get(_PROCESSES, [])),
        idle_energy_j=energy_j,
    )


def _gone_percent(processes: Series) -> float:
    """Return the share of the time bins at the end without a process, after one with a process."""
    gone = 0
    for count in reversed(processes):
        if count:
            return 100 * gone / len(processes)
        # A bin that was not recorded may have had a process.
        gone = 0 if count is None else gone + 1
    return 0.0
