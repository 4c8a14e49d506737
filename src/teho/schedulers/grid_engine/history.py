"""How long the user's past jobs waited, from qacct."""

from __future__ import annotations

from teho.errors import SchedulerError
from teho.model.plan import PastJob
from teho.schedulers.grid_engine.backend import GridEngine
from teho.schedulers.inventory import PATIENCE_S, Ask

__all__ = ["grid_engine_past_jobs"]


def grid_engine_past_jobs(ask: Ask, *, user: str, back_s: float) -> tuple[PastJob, ...]:
    """Return the user's jobs that have started; none also if qacct does not answer in time."""
    del user  # The command is for this user.
    _, accounting = GridEngine().recent(back_s)
    try:
        jobs = accounting.read(ask(accounting.argv, timeout_s=PATIENCE_S, repeat=False))
    except (SchedulerError, ValueError):
        return ()
    return tuple(
        PastJob(
            partition=job.partition,
            gpus=job.gpus or 0,
            cores=job.cores,
            wait_s=(job.started_at - job.submitted_at).total_seconds(),
        )
        for job in jobs
        if job.cores and job.started_at and job.submitted_at and job.started_at >= job.submitted_at
    )
