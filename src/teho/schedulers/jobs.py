"""What can be done with jobs, on any scheduler: submit, follow, account for, cancel.

A submission is the one command that must not be repeated: had the scheduler taken the
job before its answer was lost, a second command would run the program twice. So each
job carries a mark that nobody else has, the submission is kept before the scheduler is
asked, and when the answer is lost the mark is looked up.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec

from teho.errors import (
    LostSubmissionError,
    NoAnswerError,
    NotSubmittedError,
    RefusedError,
    SchedulerError,
)
from teho.model.job import Job, JobState, Submission
from teho.schedulers.backend import Backend, Query
from teho.schedulers.command import run, said

__all__ = ["accounting", "cancel", "estimate", "find", "new_mark", "states", "submit"]

_SUBMIT_TIMEOUT_S = 180.0
# A controller that was busy enough to lose an answer takes a while to list the job.
_LOOKS_S = (1.0, 4.0, 10.0, 15.0, 30.0)
_MARK = "teho="
# Until then the command of a Teho that was killed may still be at work.
_SETTLED = timedelta(seconds=_SUBMIT_TIMEOUT_S + 120)
# The clocks of two machines of one cluster.
_SKEW = timedelta(minutes=2)


def new_mark() -> str:
    """Return a mark that no other job carries."""
    return f"{_MARK}{uuid.uuid4()}"


def submit(
    backend: Backend,
    submission: Submission,
    keep: Callable[[Submission], None],
    *,
    looks_s: Sequence[float] = _LOOKS_S,
) -> Submission:
    """Submit once, and return the submission with the job's number.

    Args:
        backend: the scheduler.
        submission: its script lies where it says.
        keep: called before the scheduler is asked, and again once the number is known.
        looks_s: pauses before each look for the job, after the answer was lost.

    Raises:
        RefusedError: the scheduler did not take the job.
        MissingCommandError: it has no command here.
        NotSubmittedError: the answer was lost; the job is not there: submitting again is safe.
        LostSubmissionError: the answer was lost, and so far nobody can tell.
    """
    keep(submission)
    try:
        answer = run(backend.submit(submission), timeout_s=_SUBMIT_TIMEOUT_S)
    except NoAnswerError as error:
        number, heard = None, error.found
    else:
        number = backend.read_submitted(answer)
        heard = f"{answer.argv[0]} says: {said(answer)}"
    if number is None:
        submitted = _look_up(backend, submission, heard, looks_s)
    else:
        submitted = msgspec.structs.replace(submission, job=number)
    keep(submitted)
    return submitted


def find(backend: Backend, submission: Submission) -> Submission:
    """Look once for the job of a submission whose answer was lost; return it with the number.

    Raises:
        NotSubmittedError: queue and accounting answered, and neither has the job.
        LostSubmissionError: one of them did not answer, or has a job that may be it, or it is
            too early to tell.
    """
    try:
        return _look_up(backend, submission, "its answer was lost", (0.0,))
    except NotSubmittedError as error:
        age = datetime.now(timezone.utc) - submission.submitted_at
        if age > _SETTLED:
            raise
        raise LostSubmissionError(
            f"{error.found}; but it was submitted only {age.total_seconds():.0f} s ago",
            "",
            f"look again after {_SETTLED.total_seconds() / 60:.0f} min",
        ) from None


def _look_up(
    backend: Backend, submission: Submission, heard: str, looks_s: Sequence[float]
) -> Submission:
    """Look for the job several times; `heard`: what came instead of its number."""
    trouble, doubtful = "", None
    for pause_s in looks_s:
        time.sleep(pause_s)
        jobs, trouble = _recent(backend, submission)
        number = _first(job for job in jobs if _is_of(job, submission))
        if number is not None:
            return msgspec.structs.replace(submission, job=number)
        # The queue may know what the accounting does not keep.
        others = {job.number for job in jobs if _is_of_another(job, submission)}
        doubtful = _first(
            job for job in jobs if job.number not in others and _may_be_of(job, submission)
        )
    unknown = f"it is not known whether the job was submitted: {heard}"
    if trouble:
        raise LostSubmissionError(
            f"{unknown}; and it cannot be looked up: {trouble}",
            f"a job marked {submission.mark}",
            "`teho status` looks again; do not submit again before it has found out",
        )
    if doubtful:
        raise LostSubmissionError(
            f"{unknown}; job {doubtful} has its name and its time, but not its mark",
            f"a job marked {submission.mark}",
            f"look at job {doubtful}; if it is another one, submit again",
        )
    raise NotSubmittedError(
        f"the job was not submitted: {heard}; neither queue nor accounting has it",
        "",
        "submit again; nothing was started",
    )


def states(backend: Backend, numbers: Sequence[str]) -> dict[str, tuple[Job, ...]]:
    """Return what jobs are doing: of an array, one entry for each task that the scheduler lists.

    A job that is nowhere (not yet, or no longer) is there too, as UNKNOWN.

    Raises:
        SchedulerError: the queue cannot be asked.
    """
    queued = _by_number(_ask(backend.queue(numbers)) if numbers else ())
    # Tasks of an array leave the queue one by one.
    asked = [
        number for number in numbers if all(job.task is not None for job in queued[_bare(number)])
    ]
    trouble, ended = "neither in the queue nor (yet) in the accounting", _by_number(())
    try:
        ended = _by_number(_ask_all(backend.accounting(asked)) if asked else ())
    except SchedulerError as error:
        trouble = f"not in the queue; the accounting cannot be asked: {error.found}"
    return {
        number: _merged(queued[_bare(number)], ended[_bare(number)])
        or (Job(id=_bare(number), number=_bare(number), state=JobState.UNKNOWN, reason=trouble),)
        for number in numbers
    }


def accounting(backend: Backend, number: str) -> tuple[Job, ...]:
    """Return what a job used, an entry for each task; empty while the accounting has nothing.

    Raises:
        SchedulerError: the accounting cannot be asked.
    """
    return tuple(_by_number(_ask_all(backend.accounting([number])))[_bare(number)])


def cancel(backend: Backend, jobs: Sequence[str]) -> None:
    """Cancel jobs, or tasks by ids such as `123_4`; one that has ended is no error.

    Raises:
        SchedulerError: the scheduler refuses, or cannot be asked.
    """
    if jobs:
        backend.read_cancelled(run(backend.cancel(jobs), repeat=True))


def estimate(backend: Backend, script: Path, *, timeout_s: float) -> datetime | None:
    """Return when a script would start if it were submitted now; None: the scheduler cannot tell.

    It is asked once, in the user's own environment, as a submission would be.

    Raises:
        RefusedError: the scheduler would not take it.
        SchedulerError: the scheduler cannot be asked.
    """
    argv = backend.estimate(script)
    return backend.read_estimate(run(argv, timeout_s=timeout_s)) if argv else None


def _ask_all(queries: Iterable[Query]) -> Iterator[Job]:
    for query in queries:
        yield from _ask(query)


def _ask(query: Query) -> tuple[Job, ...]:
    answer = run(query.argv, repeat=True, environment=query.environment)
    try:
        return query.read(answer)
    except ValueError as error:
        if query.otherwise is not None:
            return _ask(query.otherwise)
        raise NoAnswerError(
            f"the answer of {query.argv[0]} makes no sense: {error}",
            "the columns that were asked for",
            "report this with the scheduler's version",
        ) from None


def _recent(backend: Backend, submission: Submission) -> tuple[list[Job], str]:
    """Return the jobs since a submission, and what went wrong where not all could be asked."""
    back_s = (datetime.now(timezone.utc) - submission.submitted_at + _SKEW).total_seconds()
    jobs: list[Job] = []
    trouble = ""
    for query in backend.recent(max(back_s, 0.0)):
        try:
            jobs += _ask(query)
        except (NoAnswerError, RefusedError) as error:
            trouble = error.found
    return jobs, trouble


def _is_of(job: Job, submission: Submission) -> bool:
    """Tell whether a job carries the mark; its script's path may too, where comments are lost."""
    unique = submission.mark.rpartition("=")[2]
    return unique in job.comment or unique in job.script


def _may_be_of(job: Job, submission: Submission) -> bool:
    """Tell whether a job that carries nobody's mark could be the one."""
    since = submission.submitted_at - _SKEW
    return (
        not _is_of_another(job, submission)
        and job.name == submission.name
        and (job.submitted_at is None or job.submitted_at >= since)
    )


def _is_of_another(job: Job, submission: Submission) -> bool:
    marked = _MARK in job.comment and not _is_of(job, submission)
    return marked or job.script not in {"", submission.script}


def _first(jobs: Iterable[Job]) -> str | None:
    return min((job.number for job in jobs), key=int, default=None)


def _by_number(jobs: Iterable[Job]) -> defaultdict[str, list[Job]]:
    found: defaultdict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        found[job.number].append(job)
    return found


def _bare(number: str) -> str:
    """Return a number without the cluster that Slurm wrote behind it."""
    return number.partition(";")[0]


def _merged(queued: list[Job], accounted: list[Job]) -> tuple[Job, ...]:
    """Return the queue's entries, and those ended ones that it no longer lists."""
    listed = {job.id for job in queued}
    return (
        *(job for job in accounted if not queued or (job.state.ended and job.id not in listed)),
        *queued,
    )
