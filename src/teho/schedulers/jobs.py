"""Submit jobs, ask for their states and their use, and cancel them, with any scheduler.

A submission must not be repeated. If the scheduler took the job but its answer was lost, a second
command would run the program twice. So each job has a unique mark, and the submission is stored
before the command runs. If the answer is lost, Teho searches for a job with the mark.
"""

from __future__ import annotations

import time
import uuid
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
from teho.schedulers.command import message_of, reached, run

__all__ = [
    "accounting",
    "accounting_of_all",
    "cancel",
    "estimate",
    "find",
    "new_mark",
    "states",
    "submit",
]

_SUBMIT_TIMEOUT_S = 180.0
# A busy controller, which lost an answer, may also list the job late.
_PAUSES_S = (1.0, 4.0, 10.0, 15.0, 30.0)
_MARK = "teho="
# Until then, the command of a killed Teho may still run.
_SETTLED = timedelta(seconds=_SUBMIT_TIMEOUT_S + 120)
# Allowed difference between the clocks of two machines of one cluster.
_SKEW = timedelta(minutes=2)
# Job numbers only repeat after days. Grid Engine's local times may be wrong by one hour when the
# clocks are set back.
_OLDER = timedelta(hours=2)


def new_mark() -> str:
    """Return a mark that no other job has."""
    return f"{_MARK}{uuid.uuid4()}"


def submit(
    backend: Backend,
    submission: Submission,
    keep: Callable[[Submission], None],
    *,
    pauses_s: Sequence[float] = _PAUSES_S,
) -> Submission:
    """Submit once, and return the submission with the job's number.

    Args:
        backend: the scheduler.
        submission: its script must exist.
        keep: called before the scheduler is asked, and again when the number is known.
        pauses_s: pauses before each search for the job, if the answer was lost.

    Raises:
        RefusedError: the scheduler did not take the job.
        MissingCommandError: it has no command here.
        NotSubmittedError: the answer was lost, but the job was not submitted: submit it again.
        LostSubmissionError: the answer was lost, and it is not known if there is a job.
    """
    keep(submission)
    account = submission.option.account if submission.option is not None else ""
    wanted = backend.wanted_variables(Path(submission.script), account)
    try:
        answer = run(backend.submit(submission), timeout_s=_SUBMIT_TIMEOUT_S, wanted=wanted)
    except NoAnswerError as error:
        number, problem = None, error.found
    else:
        number = backend.read_submitted(answer)
        problem = f"{answer.argv[0]} says: {message_of(answer)}"
    if number is None:
        submitted = _look_up(backend, submission, problem, pauses_s)
    else:
        submitted = msgspec.structs.replace(submission, job=number)
    keep(submitted)
    return submitted


def find(backend: Backend, submission: Submission) -> Submission:
    """Search once for the job of a submission without an answer, and return it with the number.

    Raises:
        NotSubmittedError: queue and accounting answered, and neither has the job.
        LostSubmissionError: one of them did not answer or has a job that may be this one, or the
            job may still appear.
    """
    try:
        return _look_up(backend, submission, "the scheduler's answer was lost", (0.0,))
    except NotSubmittedError as error:
        age = datetime.now(timezone.utc) - submission.submitted_at
        if age > _SETTLED:
            raise
        raise LostSubmissionError(
            f"{error.found}; but the submission was only {age.total_seconds():.0f} s ago",
            "",
            f"look again after {_SETTLED.total_seconds() / 60:.0f} min",
        ) from None


def _look_up(
    backend: Backend, submission: Submission, problem: str, pauses_s: Sequence[float]
) -> Submission:
    """Search for the job several times. `problem` says why its number is not known."""
    trouble, doubtful = "", None
    name, since = backend.job_name(submission), submission.submitted_at - _SKEW
    for pause_s in pauses_s:
        time.sleep(pause_s)
        jobs, trouble = _recent(backend, submission)
        number = _first(job for job in jobs if _is_of(job, submission))
        if number is not None:
            return msgspec.structs.replace(submission, job=number)
        # The queue may have a mark or a script that the accounting does not have.
        others = {job.number for job in jobs if _is_of_another(job, submission)}
        doubtful = _first(
            job
            for job in jobs
            if job.number not in others and job.name == name and _is_since(job, since)
        )
    unknown = f"it is not known whether the job was submitted: {problem}"
    if trouble:
        raise LostSubmissionError(
            f"{unknown}, and Teho cannot look for the job: {trouble}",
            f"a job with Teho's mark for this submission, {submission.mark}",
            "run `teho status` to look again; do not submit again before `teho status` reports "
            "whether the job was submitted",
        )
    if doubtful:
        raise LostSubmissionError(
            f"{unknown}; job {doubtful} has the same name and time, but not the mark of this "
            "submission",
            f"a job with Teho's mark for this submission, {submission.mark}",
            f"look at job {doubtful}; if this is not your job, submit again",
        )
    raise NotSubmittedError(
        f"the job was not submitted: {problem}; the job is neither in the queue nor in the "
        "accounting",
        "",
        "submit again; if the message says that the request is refused, change the request first",
    )


def states(
    backend: Backend, numbers: Sequence[str], since: Mapping[str, datetime] = MappingProxyType({})
) -> dict[str, tuple[Job, ...]]:
    """Return the states of jobs: for an array, one entry for each task that the scheduler lists.

    A job that no list has (not yet, or no longer) gets an UNKNOWN entry. If the accounting does
    not answer, one UNKNOWN entry represents the tasks that may have left the queue.

    Args:
        backend: the scheduler.
        numbers: the jobs, as the submission returned them, such as `123` or `123;puhti`.
        since: the known times of submission. An older job of the same number is another job.

    Raises:
        SchedulerError: the queue cannot be asked.
    """
    queued, away = _ask_each(backend.queue(numbers) if numbers else (), since)
    if away and not queued:
        raise next(iter(away.values()))
    # The tasks of an array leave the queue at different times.
    asked = [number for number in queued if all(job.task is not None for job in queued[number])]
    ended, failed = _ask_each(backend.accounting(asked) if asked else (), since)
    troubles = {
        number: f"the {place} cannot be read: {error.found}"
        for place, errors in (("queue", away), ("accounting", failed))
        for number, error in errors.items()
    }
    found = {}
    for number in numbers:
        jobs = _merged(queued.get(number, []), _merge_runs(ended.get(number, [])))
        if number in failed and not isinstance(failed[number], NoAnswerError):
            # This site has no accounting, so the reason will not change.
            jobs = [
                msgspec.structs.replace(job, reason=job.reason or troubles[number]) for job in jobs
            ]
        if not jobs or isinstance(failed.get(number), NoAnswerError):
            bare = _bare(number)
            reason = troubles.get(number, NOWHERE)
            jobs.append(Job(id=bare, number=bare, state=JobState.UNKNOWN, reason=reason))
        found[number] = tuple(jobs)
    return found


def accounting(backend: Backend, number: str, since: datetime | None = None) -> tuple[Job, ...]:
    """Return what a job used, with an entry for each task; empty: no record yet.

    If a job was queued again, the entry has the use of all runs, from the first start to the last
    end, and the state of the last run.

    Args:
        backend: the scheduler.
        number: the job, as the submission returned it, such as `123` or `123;puhti`.
        since: time of its submission. An older job of the same number is another job.

    Raises:
        SchedulerError: the accounting cannot be asked.
    """
    found, failed = _ask_each(
        backend.accounting([number]), {} if since is None else {number: since}
    )
    if failed:
        raise failed[number]
    return tuple(_merge_runs(found[number]))


def accounting_of_all(backend: Backend, numbers: Sequence[str]) -> dict[str, tuple[Job, ...]]:
    """Return the same for several jobs; a job of which the accounting does not answer is empty."""
    found, _ = _ask_each(backend.accounting(numbers), {})
    return {number: tuple(_merge_runs(found.get(number, ()))) for number in numbers}


def cancel(backend: Backend, jobs: Sequence[str]) -> None:
    """Cancel jobs, or tasks by ids such as `123_4`. A job that has ended is not an error.

    Raises:
        SchedulerError: the scheduler refuses, or cannot be asked.
    """
    for argv in backend.cancel(jobs) if jobs else ():
        backend.read_cancelled(run(argv, repeat=True))


def estimate(backend: Backend, script: Path, *, timeout_s: float) -> datetime | None:
    """Return when a script would start if it were submitted now; None: not known.

    The command runs once, with the user's environment, as a submission does.

    Raises:
        RefusedError: the scheduler would refuse it.
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
    """Return the jobs, and the errors, by the numbers that were asked for.

    If one question fails, the others are asked all the same.
    """
    found: dict[str, list[Job]] = {}
    failed: dict[str, SchedulerError] = {}
    for query in queries:
        try:
            jobs = _ask(query)
        except SchedulerError as error:
            failed.update(dict.fromkeys(query.numbers, error))
            continue
        by_number = _grouped(jobs, lambda job: job.number)
        for number in query.numbers:
            begin = since[number] - _OLDER if number in since else None
            found[number] = [
                job for job in by_number.get(_bare(number), ()) if _is_since(job, begin)
            ]
    return found, failed


def _grouped(jobs: Iterable[Job], key: Callable[[Job], str]) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(key(job), []).append(job)
    return found


def _is_since(job: Job, begin: datetime | None) -> bool:
    """Return whether a job was not submitted earlier."""
    return begin is None or job.submitted_at is None or job.submitted_at >= begin


def _merge_runs(records: Iterable[Job]) -> list[Job]:
    """Return each job, or task, once: with the use of all its runs and the state of the last."""
    return [_merged_runs(own) for own in _grouped(records, lambda job: job.id).values()]


def _merged_runs(records: Sequence[Job]) -> Job:
    last = records[-1]
    runs = [last]
    for earlier in reversed(records[:-1]):
        # A record that overlaps is not another run: Grid Engine may write one for each host.
        begin = runs[-1].started_at
        if earlier.ended_at is not None and (begin is None or earlier.ended_at <= begin):
            runs.append(earlier)
    began = [job for job in runs if job.elapsed_s]
    return msgspec.structs.replace(
        last,
        submitted_at=runs[-1].submitted_at or last.submitted_at,
        started_at=min((job.started_at for job in runs if job.started_at), default=None),
        ended_at=last.ended_at if last.state.ended else None,
        elapsed_s=_sum(job.elapsed_s for job in began) if began else last.elapsed_s,
        cpu_s=_sum(job.cpu_s for job in began) if began else last.cpu_s,
        energy_j=_sum(job.energy_j for job in began) if began else last.energy_j,
        memory_peak_bytes=max(
            (job.memory_peak_bytes for job in runs if job.memory_peak_bytes), default=None
        ),
    )


def _sum(amounts: Iterable[float | None]) -> float | None:
    """Return the sum; None if one amount is not known."""
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
            "the requested columns",
            "report this with the scheduler's version",
        ) from None


def _recent(backend: Backend, submission: Submission) -> tuple[list[Job], str]:
    """Return the jobs since a submission, and the last error if a question failed."""
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
    """Return whether a job has the mark, in its comment or in the path of its script."""
    unique = submission.mark.rpartition("=")[2]
    return unique in job.comment or unique in job.script


def _is_of_another(job: Job, submission: Submission) -> bool:
    marked = _MARK in job.comment and not _is_of(job, submission)
    return marked or job.script not in {"", submission.script}


def _first(jobs: Iterable[Job]) -> str | None:
    return min((job.number for job in jobs), key=int, default=None)


def _bare(number: str) -> str:
    """Return a number without the cluster that Slurm may append."""
    return number.partition(";")[0]


def _merged(queued: list[Job], accounted: list[Job]) -> list[Job]:
    """Return the queue's entries, and the ended ones that it no longer lists."""
    listed = {job.id for job in queued}
    return [
        *(job for job in accounted if not queued or (job.state.ended and job.id not in listed)),
        *queued,
    ]
