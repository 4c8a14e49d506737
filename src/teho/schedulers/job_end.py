"""When the scheduler ends a running job, if the variables of the job do not say it.

Slurm has such variables from version 23.02, and Grid Engine has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from teho.errors import InputError, SchedulerError
from teho.model.allocation import Allocation
from teho.model.job import Job
from teho.model.run import Run
from teho.schedulers.backend import Backend
from teho.schedulers.command import run as ask
from teho.schedulers.hostlist import expand_hosts
from teho.schedulers.registry import backend_for

__all__ = ["asked_limit_s"]

_TIMEOUT_S = 20.0
_SKEW = timedelta(minutes=2)
"""Allowed difference between the clocks of two machines of one cluster."""


def asked_limit_s(run: Run, home: Path) -> float | None:
    """Ask the scheduler when it ends the job of a run, in seconds after the start of the program.

    None: the run has no job, the job has no limit, or the scheduler does not answer.

    Args:
        run: the run, which goes on.
        home: Teho's own directory.
    """
    allocation = next((node.allocation for node in run.nodes if node.allocation.job_id), None)
    if allocation is None or not allocation.scheduler or not allocation.job_id:
        return None
    try:
        backend = backend_for(allocation.scheduler, home)
        ends = list(_ends(backend, run, allocation))
    except (SchedulerError, InputError, ValueError, OverflowError):
        return None
    seconds = [(end - run.started_at).total_seconds() for end in ends]
    return min((limit_s for limit_s in seconds if limit_s > 0), default=None)


def _ends(backend: Backend, run: Run, allocation: Allocation) -> Iterator[datetime]:
    number = allocation.job_id or ""
    # Only Grid Engine separates the index of a task with a dot. It lists all jobs of the user.
    for query in backend.queue([number.partition(".")[0]]):
        answer = ask(
            query.argv, repeat=True, again_if_late=False, timeout_s=_TIMEOUT_S,
            environment=query.environment,
        )  # fmt: skip
        for job in query.read(answer):
            if job.id == number and not _is_another(job, run, allocation) and (end := _end(job)):
                yield end


def _is_another(job: Job, run: Run, allocation: Allocation) -> bool:
    """Return whether a job of the same number is another one: this machine may have another Slurm.

    Args:
        job: what the scheduler reports.
        run: the run.
        allocation: what the variables of its job say.
    """
    nodes, own = _hosts(job.node_list), _hosts(allocation.node_list or "")
    has_other_nodes = bool(nodes and own) and not nodes & own
    began_later = job.started_at is not None and job.started_at > run.started_at + _SKEW
    return has_other_nodes or began_later


def _hosts(text: str) -> set[str]:
    """Return the hosts of a list, without their domains."""
    return {host.partition(".")[0] for host in expand_hosts(text)} if text else set()


def _end(job: Job) -> datetime | None:
    if job.state.ended or job.started_at is None or not job.time_limit_s:
        return None
    return job.started_at + timedelta(seconds=job.time_limit_s)
