"""Adds the end of a job to its recording, if the recorder of `teho always` was ended with the job.

Slurm kills all processes of a batch script at its end, also the recorder. The accounting knows how
the job ended.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from teho.errors import InputError
from teho.model.job import Job
from teho.model.run import End, Run
from teho.schedulers.jobs import accounting_of_all
from teho.schedulers.registry import backend_for
from teho.store.automatic import AutomaticRun, add_end

__all__ = ["settle"]

_MOST = 200
"""Only for the newest recordings: Grid Engine's accounting is read again for each job."""


def settle(home: Path, recordings: Sequence[AutomaticRun]) -> int:
    """Ask the accounting for ends that are missing; return how many were found.

    If the accounting does not answer, or a recording cannot be written, the end stays unknown.

    Args:
        home: the directory of all recordings.
        recordings: those of `teho always`, oldest first; others must not be given.
    """
    lacking: dict[str, dict[str, list[AutomaticRun]]] = {}
    for one in recordings[-_MOST:]:
        scheduler, job_id = _job_of(one.run)
        if one.run.end is None and job_id:
            number = re.split("[_.]", job_id)[0]
            lacking.setdefault(scheduler, {}).setdefault(number, []).append(one)
    found = 0
    for scheduler, by_number in lacking.items():
        jobs: dict[str, tuple[Job, ...]] = {}
        with contextlib.suppress(InputError):
            jobs = accounting_of_all(backend_for(scheduler, home), list(by_number))
        for number, waiting in by_number.items():
            for one in waiting:
                end = _end_of(one.run, jobs.get(number, ()))
                with contextlib.suppress(OSError):
                    if end:
                        add_end(one.directory, end)
                        found += 1
    return found


def _job_of(run: Run) -> tuple[str, str]:
    """Return the scheduler and the id of a run's job; empty: not known."""
    allocations = (node.allocation for node in run.nodes if node.allocation.job_id)
    first = next(allocations, None)
    return (first.scheduler or "", first.job_id or "") if first else ("", "")


def _end_of(run: Run, jobs: Iterable[Job]) -> End | None:
    for job in jobs:
        # Schedulers use numbers again: a job that ended before the recording began is another one.
        if job.id != _job_of(run)[1] or not job.state.ended or job.ended_at is None:
            continue
        elapsed_s = (job.ended_at - run.started_at).total_seconds()
        if elapsed_s >= -1:  # the accounting counts whole seconds
            return End(
                at=max(job.ended_at, run.started_at),
                elapsed_s=max(0.0, elapsed_s),
                exit_code=job.exit_code,
                signal=job.signal,
                job_state=job.state.value,
            )
    return None
