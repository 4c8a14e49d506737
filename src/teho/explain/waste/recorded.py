"""The recordings of jobs: their ids, and the use of the GPUs that the accounting lacks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.errors import RecordingError
from teho.explain.summary import summarise
from teho.model.accounted import AccountedJob
from teho.model.listed_run import Judged
from teho.model.metric import METRICS_BY_NAME
from teho.model.run import Run
from teho.model.summary import Stat
from teho.store.index import list_runs, verdicts_of
from teho.version import __version__

__all__ = ["Recordings"]

_BUSY = "gpu_busy_percent"
_COVERED_MIN = 0.9
"""A recording of a smaller part of a job's time says too little about the job."""
_CLOCKS_DIFFER = timedelta(minutes=2)


class _Recording(NamedTuple):
    path: Path
    run: Run


class Recordings:
    """The recordings of a home directory, by the ids of their jobs."""

    def __init__(self, home: Path, runs: Iterable[tuple[Path, Run | None]] = ()) -> None:
        """Keep recordings.

        Args:
            home: the directory of all recordings.
            runs: the recordings, oldest first.
        """
        self._home = home
        self._by_job: dict[str, list[_Recording]] = {}
        for path, run in runs:
            for node in run.nodes if run else ():
                own = self._by_job.setdefault(node.allocation.job_id or "", [])
                if run is not None and path not in [one.path for one in own]:
                    own.append(_Recording(path, run))
        self._by_job.pop("", None)

    @classmethod
    def of(cls, home: Path) -> Recordings:
        """Return all recordings of a home directory."""
        return cls(home, list_runs(home))

    def ids(self, job: AccountedJob) -> tuple[str, ...]:
        """Return the ids of a job's recordings, oldest first."""
        return tuple(one.path.name for one in self._of(job))

    def gpu_means(self, job: AccountedJob) -> tuple[float, ...]:
        """Return the mean use of each GPU of a job, in %; empty if no recording has it.

        The recording must have all GPUs of the job, for at least 90 % of its time.
        """
        least_s = _COVERED_MIN * (job.elapsed_s or 0.0)
        for one in reversed(self._of(job)):
            if one.run.end is None or one.run.end.elapsed_s < least_s:
                continue
            find = partial(_means, one.run)
            (found,) = verdicts_of(self._home, [one.path], f"gpu means {__version__}", find)
            means = tuple(msgspec.json.decode(found.words, type=list[float]))
            if len(means) == job.gpus:
                return means
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


def _means(run: Run, directory: Path) -> Judged:
    """Return the means of a recording's GPUs, as JSON in the words that the index stores.

    A GPU that was not recorded has no mean.
    """
    try:
        summary = summarise(run, directory, [], metrics=(METRICS_BY_NAME[_BUSY],))
    except RecordingError:
        return Judged(severity="", words="[]")
    stats = [gpu.stats.get(_BUSY) for gpu in summary.gpus]
    least_s = _COVERED_MIN * summary.elapsed_s
    known = [stat.mean for stat in stats if isinstance(stat, Stat) and stat.covered_s >= least_s]
    return Judged(severity="", words=msgspec.json.encode(known).decode())
