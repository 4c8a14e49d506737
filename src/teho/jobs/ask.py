"""Ask the accounting of this machine's scheduler about any job."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from teho.errors import InputError, NoAnswerError, SchedulerError, UnconfiguredError
from teho.model.accounted import AccountedJob
from teho.model.member import GpuNodes
from teho.patterns import lazy_pattern
from teho.schedulers.backend import Backend, History, Query, Selection
from teho.schedulers.command import lines_of, run
from teho.schedulers.registry import backend_for, scheduler_of, schedulers

__all__ = [
    "accounting_here",
    "gpu_nodes_here",
    "hides_others",
    "is_job_id",
    "job_until_now",
    "job_with_id",
    "jobs_since",
    "with_use_now",
]

_SILENCE_S = 120.0
"""The accounting of a large site may need a minute before it prints its first line."""
_ONE_JOB_S = 30.0
_PROBE_S = 10.0
_JOB_ID = lazy_pattern(
    r"\d{1,15}(?:[_.]\w{1,9}|\+\d{1,4})?(?:\.\w{1,12})?(?:;[\w.-]{1,60})?", re.ASCII
)


def is_job_id(reference: str) -> bool:
    """Return whether a text may be the id of a job, such as `123`, `123_4`, `123+0` or `123.4`."""
    return _JOB_ID.fullmatch(reference) is not None


def accounting_here(home: Path) -> Backend:
    """Return the backend of this machine's scheduler.

    Args:
        home: Teho's own directory.

    Raises:
        InputError: this machine has no command that asks an accounting.
    """
    able = [one for one in schedulers().values() if one.accounting_command]
    found = [
        backend_for(scheduler.name, home)
        for scheduler in able
        if shutil.which(scheduler.accounting_command)
    ]
    if found:
        others = (backend for backend in found if len(found) == 1 or _is_configured(backend))
        return next(others, found[0])
    commands = " nor ".join(f"{one.title}'s `{one.accounting_command}`" for one in able)
    raise InputError(
        f"this machine has no accounting of jobs: neither {commands} is on PATH",
        next_step="run the command on a login node of the cluster",
    )


def _is_configured(backend: Backend) -> bool:
    """Return whether a scheduler serves this machine; its commands may only be installed."""
    history = backend.account_of("1")
    try:
        next(_read(history, _PROBE_S), None) if history else None
    except UnconfiguredError:
        return False
    except SchedulerError:
        return True
    return history is not None


def job_with_id(backend: Backend, job_id: str) -> tuple[AccountedJob, ...]:
    """Return the runs of a job, of each task and component; empty if the accounting has none.

    Args:
        backend: the scheduler.
        job_id: for an array, all tasks; `123_4` is one task.

    Raises:
        InputError: the scheduler has no such ids.
        SchedulerError: the accounting cannot be asked.
    """
    history = backend.account_of(job_id)
    if history is None:
        raise InputError(
            f"{job_id} is not the id of a job of {backend.title}", "an id such as 4711 or 4711_3"
        )
    bare = job_id.partition(";")[0]
    try:
        found = tuple(_read(history, _ONE_JOB_S)) or _in_queue(history, bare)
    except SchedulerError:
        # An accounting that has no job yet may have no file.
        found = _in_queue(history, bare)
        if not found:
            raise
    own = tuple(job for job in found if job.id == bare)
    # `123.batch` names a step of job 123.
    return own or found


def job_until_now(backend: Backend, job_id: str) -> tuple[AccountedJob, ...]:
    """Return the runs of a job. If one job is running, it has its use until now.

    Raises:
        InputError: the scheduler has no such ids.
        SchedulerError: the accounting cannot be asked.
    """
    runs = job_with_id(backend, job_id)
    if len({job.id for job in runs}) == 1:
        # Not for all tasks of an array: each question goes to the nodes of the job.
        return (*runs[:-1], with_use_now(backend, runs[-1]))
    return runs


def with_use_now(backend: Backend, job: AccountedJob) -> AccountedJob:
    """Return a running job with what it has used until now, if the scheduler reports it.

    Other jobs, and jobs of other users, are returned as they are.
    """
    question = backend.use_now(job)
    if question is None:
        return job
    try:
        answer = run(question.argv, timeout_s=question.timeout_s, repeat=True, again_if_late=False)
    except SchedulerError:
        return job  # the accounting is the main source
    return question.read(answer.stdout, job) or job


def jobs_since(backend: Backend, selection: Selection) -> Iterator[AccountedJob]:
    """Yield the jobs of a time, while the accounting lists them.

    If the accounting has only jobs that have ended, the jobs of the queue come first.

    Raises:
        InputError: the scheduler has no accounting.
        SchedulerError: the accounting cannot be asked.
    """
    history = backend.account_since(selection)
    if history is None:
        raise InputError(f"{backend.title} has no accounting of jobs")
    if history.queue is not None:
        yield from _queued(history.queue)
    yield from _read(history, _SILENCE_S)


def hides_others(backend: Backend, selection: Selection) -> bool | None:
    """Return whether the site hides the jobs of other users; None: not known."""
    history = backend.account_since(selection)
    if history is None or not history.private_command:
        return None
    try:
        answer = run(history.private_command, timeout_s=_ONE_JOB_S, repeat=True)
    except SchedulerError:
        return None
    return None if answer.exit_code else history.is_private(answer.stdout)


def gpu_nodes_here(backend: Backend) -> GpuNodes:
    """Return the nodes of partitions in which every node has GPUs; empty: not known."""
    return scheduler_of(backend.name).gpu_nodes(run)


def _read(history: History, silence_s: float) -> Iterator[AccountedJob]:
    lines = lines_of(
        history.argv,
        silence_s=silence_s,
        environment=history.environment,
        not_there=history.not_there,
    )
    try:
        yield from history.read(lines)
    except ValueError as error:
        raise NoAnswerError(
            f"the answer of {history.argv[0]} cannot be read: {error}",
            "the requested columns",
            "report this with the scheduler's version",
        ) from None
    finally:
        close = getattr(lines, "close", None)
        if close:
            close()


def _in_queue(history: History, job_id: str) -> tuple[AccountedJob, ...]:
    """Return a job that waits or runs, if the accounting does not have such jobs."""
    if history.queue is None:
        return ()
    names = {job_id, job_id.replace("_", ".")}
    return tuple(job for job in _queued(history.queue) if {job.id, job.number} & names)


def _queued(query: Query) -> Iterator[AccountedJob]:
    """Yield the jobs that wait or run; the accounting will have them after their end."""
    try:
        jobs = query.read(run(query.argv, repeat=True, environment=query.environment))
    except (SchedulerError, ValueError):
        return  # the accounting is the main source
    yield from (job for job in jobs if isinstance(job, AccountedJob) and not job.state.ended)
