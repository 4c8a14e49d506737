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
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType

import msgspec

from teho.errors import (
    LostSubmissionError,
    NoAnswerError,
    NotSubmittedError,
    RefusedError,
    SchedulerError,
)
from teho.model.job import Job, JobState, Submission
from teho.schedulers.array import NOWHERE
from teho.schedulers.backend import Backend, Query
from teho.schedulers.command import reached, run, said

__all__ = ["accounting", "cancel", "estimate", "find", "new_mark", "states", "submit"]

_SUBMIT_TIMEOUT_S = 180.0
# A controller that was busy enough to lose an answer takes a while to list the job.
_LOOKS_S = (1.0, 4.0, 10.0, 15.0, 30.0)
_MARK = "teho="
# Until then the command of a Teho that was killed may still be at work.
_SETTLED = timedelta(seconds=_SUBMIT_TIMEOUT_S + 120)
# The clocks of two machines of one cluster.
_SKEW = timedelta(minutes=2)
# Numbers begin again after days at least. Grid Engine's local times may be an hour off when
# the clocks are set back.
_OTHERS = timedelta(hours=2)


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
    account = submission.option.account if submission.option is not None else ""
    wanted = backend.wanted_variables(Path(submission.script), account)
    try:
        answer = run(backend.submit(submission), timeout_s=_SUBMIT_TIMEOUT_S, wanted=wanted)
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
            job
            for job in jobs
            if job.number not in others
            and job.name == backend.job_name(submission)
            and _may_be_of(job, submission)
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
        "submit again, or change the request where these words refuse it; nothing was started",
    )


def states(
    backend: Backend, numbers: Sequence[str], since: Mapping[str, datetime] = MappingProxyType({})
) -> dict[str, tuple[Job, ...]]:
    """Return what jobs are doing: of an array, one entry for each task that the scheduler lists.

    A job that is nowhere (not yet, or no longer) is there too, as UNKNOWN; so are, in one
    entry, the tasks that may have left the queue while the accounting does not answer.

    Args:
        backend: the scheduler.
        numbers: the jobs, each as its submission was answered, such as `123` or `123;puhti`.
        since: when each was submitted, where that is known: an older job of the same number
            is another one.

    Raises:
        SchedulerError: the queue cannot be asked.
    """
    queued, away = _ask_each(backend.queue(numbers) if numbers else (), since)
    if away and not queued:
        raise next(iter(away.values()))
    # Tasks of an array leave the queue one by one.
    asked = [number for number in queued if all(job.task is not None for job in queued[number])]
    ended, failed = _ask_each(backend.accounting(asked) if asked else (), since)
    troubles = {
        **{number: f"the queue cannot be asked: {error.found}" for number, error in away.items()},
        **{
            number: f"the accounting cannot be asked: {error.found}"
            for number, error in failed.items()
        },
    }
    found = {}
    for number in numbers:
        jobs = _merged(queued.get(number, []), _runs_in_one(ended.get(number, [])))
        if number in failed and not isinstance(failed[number], NoAnswerError):
            # This site has no accounting: there is nothing to wait for.
            jobs = [
                msgspec.structs.replace(job, reason=job.reason or troubles[number]) for job in jobs
            ]
        if not jobs or isinstance(failed.get(number), NoAnswerError):
            jobs.append(_unknown(number, troubles.get(number, NOWHERE)))
        found[number] = tuple(jobs)
    return found


def accounting(backend: Backend, number: str, since: datetime | None = None) -> tuple[Job, ...]:
    """Return what a job used, an entry for each task; empty while the accounting has nothing.

    Of one that was queued again the entry has the use of all runs, from the first one's
    start to the last one's end, and the last one's state.

    Args:
        backend: the scheduler.
        number: as its submission was answered, such as `123` or `123;puhti`.
        since: when it was submitted: an older job of the same number is another one.

    Raises:
        SchedulerError: the accounting cannot be asked.
    """
    found, failed = _ask_each(
        backend.accounting([number]), {} if since is None else {number: since}
    )
    if failed:
        raise failed[number]
    return tuple(_runs_in_one(found[number]))


def cancel(backend: Backend, jobs: Sequence[str]) -> None:
    """Cancel jobs, or tasks by ids such as `123_4`; one that has ended is not an error.

    Raises:
        SchedulerError: the scheduler refuses, or cannot be asked.
    """
    for argv in backend.cancel(jobs) if jobs else ():
        backend.read_cancelled(run(argv, repeat=True))


def estimate(backend: Backend, script: Path, *, timeout_s: float) -> datetime | None:
    """Return when a script would start if it were submitted now; None: the scheduler cannot report.

    It is asked once, in the user's own environment, as a submission would be.

    Raises:
        RefusedError: the scheduler would not take it.
        SchedulerError: the scheduler cannot be asked.
    """
    argv = backend.estimate(script)
    if argv is None:
        return None
    answer = run(argv, timeout_s=timeout_s, wanted=backend.wanted_variables(script))
    return backend.read_estimate(reached(answer))


def _ask_each(
    queries: Iterable[Query], since: Mapping[str, datetime]
) -> tuple[dict[str, list[Job]], dict[str, SchedulerError]]:
    """Return the jobs by the numbers that were asked for, and what went wrong, by them too.

    A question without an answer leaves the others theirs.
    """
    found: dict[str, list[Job]] = {}
    failed: dict[str, SchedulerError] = {}
    for query in queries:
        try:
            jobs = _by_number(_ask(query))
        except SchedulerError as error:
            failed.update(dict.fromkeys(query.numbers, error))
            continue
        for number in query.numbers:
            begin = since[number] - _OTHERS if number in since else None
            found[number] = [job for job in jobs[_bare(number)] if _is_since(job, begin)]
    return found, failed


def _is_since(job: Job, begin: datetime | None) -> bool:
    """Return whether a job is not an older one of the same number."""
    return begin is None or job.submitted_at is None or job.submitted_at >= begin


def _runs_in_one(runs: Iterable[Job]) -> list[Job]:
    """Return each job, or task, once: with the use of all its runs, and the last one's state."""
    by_id: defaultdict[str, list[Job]] = defaultdict(list)
    for run_ in runs:
        by_id[run_.id].append(run_)
    return [_in_one(of_job) for of_job in by_id.values()]


def _in_one(runs: Sequence[Job]) -> Job:
    last = runs[-1]
    apart = [last]
    for earlier in reversed(runs[:-1]):
        # One that overlaps is no run of its own: Grid Engine may write a record for each host.
        begin = apart[-1].started_at
        if earlier.ended_at is not None and (begin is None or earlier.ended_at <= begin):
            apart.append(earlier)
    began = [job for job in apart if job.elapsed_s]
    return msgspec.structs.replace(
        last,
        submitted_at=apart[-1].submitted_at or last.submitted_at,
        started_at=min((job.started_at for job in apart if job.started_at), default=None),
        ended_at=last.ended_at if last.state.ended else None,
        elapsed_s=_sum(job.elapsed_s for job in began) if began else last.elapsed_s,
        cpu_s=_sum(job.cpu_s for job in began) if began else last.cpu_s,
        energy_j=_sum(job.energy_j for job in began) if began else last.energy_j,
        memory_peak_bytes=max(
            (job.memory_peak_bytes for job in apart if job.memory_peak_bytes), default=None
        ),
    )


def _sum(amounts: Iterable[float | None]) -> float | None:
    """Return the sum; None if a part of it is not known."""
    known = list(amounts)
    return None if None in known else sum(amount for amount in known if amount is not None)


def _ask(query: Query) -> tuple[Job, ...]:
    answer = run(
        query.argv,
        repeat=True,
        environment=query.environment,
        timeout_s=query.timeout_s,
        again_if_late=query.again_if_late,
    )
    try:
        return query.read(answer)
    except ValueError as error:
        raise NoAnswerError(
            f"the answer of {query.argv[0]} cannot be read: {error}",
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
    """Return whether a job carries the mark; its script's path may too, where comments are lost."""
    unique = submission.mark.rpartition("=")[2]
    return unique in job.comment or unique in job.script


def _may_be_of(job: Job, submission: Submission) -> bool:
    """Return whether a job that carries nobody's mark could be the one."""
    since = submission.submitted_at - _SKEW
    return not _is_of_another(job, submission) and (
        job.submitted_at is None or job.submitted_at >= since
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


def _unknown(number: str, reason: str) -> Job:
    bare = _bare(number)
    return Job(id=bare, number=bare, state=JobState.UNKNOWN, reason=reason)


def _merged(queued: list[Job], accounted: list[Job]) -> list[Job]:
    """Return the queue's entries, and those ended ones that it no longer lists."""
    listed = {job.id for job in queued}
    return [
        *(job for job in accounted if not queued or (job.state.ended and job.id not in listed)),
        *queued,
    ]
