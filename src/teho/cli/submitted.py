"""Jobs that were submitted: their states, their files, and how to follow one."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from teho.cli import say
from teho.cli.ended_early import interrupted
from teho.cli.terminal import print_text
from teho.clusters.catalogue import cluster_files, read_cluster
from teho.config.settings import Settings
from teho.errors import InputError, NoAnswerError, NotSubmittedError, SchedulerError
from teho.model.job import Job, JobState, Submission
from teho.model.plan import Cost
from teho.planner.cost import cost_of_use
from teho.schedulers import jobs as ask
from teho.schedulers.array import with_missing
from teho.schedulers.backend import Backend
from teho.schedulers.follow import ended, follow
from teho.schedulers.registry import backend_for, scheduler_of
from teho.show.build.jobs import NO_NUMBER, JobView, elapsed_of, jobs_document, state_sentence
from teho.store.index import runs_of_job
from teho.store.submissions import forget, keep
from teho.units import MIB

__all__ = ["all_with_account", "file_lines", "files_of", "follow_to_end", "log_of", "look_up"]

_MOST_AT_ONCE = 4
"""Number of questions to a scheduler at the same time."""
_TAIL_BYTES = 64_000
"""The end of a log in which the report of a recorded job is searched."""
# Grid Engine writes the accounting of a job some seconds after its end.
_ACCOUNT_TRIES, _ACCOUNT_PAUSE_S = 8, 1.0


def look_up(submissions: Sequence[Submission], home: Path) -> tuple[list[JobView], list[str]]:
    """Ask each scheduler for all its jobs at once. Return the jobs, and a sentence per problem.

    If a scheduler does not answer, its jobs are UNKNOWN.
    """
    found: dict[tuple[str, str], tuple[Job, ...]] = {}
    problems: list[str] = []
    numbered = [_numbered(submission, home) for submission in submissions]
    since = {one.job: one.submitted_at for one in submissions if one.job is not None}
    for scheduler in sorted({one.scheduler for one, _ in numbered}):
        numbers = [one.job for one, _ in numbered if one.scheduler == scheduler and one.job]
        try:
            answer = ask.states(backend_for(scheduler, home), numbers, since)
        except SchedulerError as error:
            problems.append(error.found)
        else:
            found.update({(scheduler, number): jobs for number, jobs in answer.items()})
    views = []
    for submission, trouble in numbered:
        if trouble:
            which = f"job {submission.name!r}" if submission.name else "the job"
            problems.append(
                f"{which}, submitted at {submission.submitted_at.astimezone():%H:%M}: {trouble}"
            )
        number = submission.job or NO_NUMBER
        reason = trouble or "the scheduler does not answer now"
        jobs = found.get((submission.scheduler, number), (_unknown(number, reason),))
        if any(_is_of_another(job, submission) for job in jobs):
            jobs = (_unknown(number, "on this machine, another job has this number"),)
        views.append(_view_of(submission, with_missing(submission, jobs)))
    return views, problems


def _is_of_another(job: Job, submission: Submission) -> bool:
    """Return whether a job with this number is another one: it lacks the mark of the submission.

    The mark is in the comment of the job. The accounting may have no comments.
    """
    if job.state is JobState.UNKNOWN or submission.mark in job.comment:
        return False
    if job.comment:
        return job.script != submission.script
    return scheduler_of(submission.scheduler).shows_comments and not job.state.ended


def _numbered(submission: Submission, home: Path) -> tuple[Submission, str]:
    """Return a submission and its problem. If its number was lost, ask the scheduler for it.

    Raises no error: the scheduler may answer the next time.
    """
    if submission.job is not None:
        return submission, ""
    try:
        known = ask.find(backend_for(submission.scheduler, home), submission)
    except SchedulerError as error:
        if isinstance(error, NotSubmittedError):
            forget(home, submission.mark)  # the scheduler certainly has no such job
        return submission, error.found
    with contextlib.suppress(OSError):
        keep(home, known)
    return known, ""


def _unknown(number: str, reason: str) -> Job:
    return Job(id=number, number=number, state=JobState.UNKNOWN, reason=reason)


def _view_of(submission: Submission, jobs: Sequence[Job]) -> JobView:
    """Return a job with its cost until now."""
    return JobView(submission=submission, jobs=tuple(jobs), cost=_cost(submission, jobs))


def _cost(submission: Submission, jobs: Sequence[Job]) -> Cost | None:
    elapsed_s, path = elapsed_of(jobs), cluster_files().get(submission.cluster)
    if submission.option is None or elapsed_s is None or path is None:
        return None
    memory_bytes = jobs[0].memory_bytes
    try:
        cluster = read_cluster(path)
    except InputError:
        return None  # `teho clusters check` names the mistake
    memory_mib = None if memory_bytes is None else memory_bytes // MIB
    return cost_of_use(submission.option, cluster, elapsed_s, memory_mib)


def follow_to_end(submission: Submission, settings: Settings) -> int:
    """Follow a job: write its log to standard output, and its states to standard error.

    Then print what the job used and cost, and the report of its recording if the log has none.
    Return the exit code of the job; 1 if it failed without one.

    Raises:
        SchedulerError: the scheduler refuses, or its command is not on this machine.
    """
    backend = backend_for(submission.scheduler, settings.home_directory)
    number = submission.number
    jobs: tuple[Job, ...] = ()
    tail = b""
    try:
        for event in follow(backend, submission):
            if isinstance(event, bytes):
                sys.stdout.buffer.write(event)
                sys.stdout.buffer.flush()
                tail = (tail + event)[-_TAIL_BYTES:]
            else:
                jobs = event
                say(f"{datetime.now(timezone.utc).astimezone():%H:%M:%S} job {number} "
                    + state_sentence(jobs))  # fmt: skip
        if ended(jobs):
            jobs = _accounted(backend, submission, jobs, _ACCOUNT_TRIES)
    except KeyboardInterrupt:
        raise interrupted(
            f"job {number} continues. Next: `teho status {number} --follow` follows the job "
            f"again, `teho cancel {number}` ends the job"
        ) from None
    print_text(jobs_document([_view_of(submission, jobs)]), sys.stderr)
    if submission.recorded:
        _print_report(submission, settings, tail)
    return _exit_code(jobs)


def all_with_account(views: Sequence[JobView], home: Path) -> list[JobView]:
    """Return jobs; those that have ended with the figures of the accounting."""
    with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        return list(pool.map(lambda view: _with_account(view, home), views))


def _with_account(view: JobView, home: Path) -> JobView:
    submission = view.submission
    if submission.job is None or not ended(view.jobs):
        return view
    backend = backend_for(submission.scheduler, home)
    return _view_of(submission, _accounted(backend, submission, view.jobs, tries=1))


def _accounted(
    backend: Backend, submission: Submission, jobs: tuple[Job, ...], tries: int
) -> tuple[Job, ...]:
    """Return ended jobs with the figures of the accounting, which lists one task after another.

    A task that the accounting does not list in time stays as the queue showed it.
    """
    jobs, found = _own(jobs, submission), dict[str, Job]()
    for attempt in range(tries):
        if attempt:
            time.sleep(_ACCOUNT_PAUSE_S)
        try:
            answer = ask.accounting(backend, submission.job or "", submission.submitted_at)
        except NoAnswerError:
            break  # it was asked several times already
        except SchedulerError:
            answer = ()
        found = {job.id: job for job in _own(answer, submission) if job.state.ended}
        if all(job.id in found for job in jobs):
            break
    return (*found.values(), *(job for job in jobs if job.id not in found))


def _own(jobs: Sequence[Job], submission: Submission) -> tuple[Job, ...]:
    """Leave out the entry without a task number that Slurm's accounting lists for a moment."""
    return tuple(job for job in jobs if job.task is not None or not submission.array)


def log_of(submission: Submission, home: Path) -> Path:
    """Return the path of a job's log; of an array, with `*` for the number of the task."""
    number = submission.number
    task = "*" if submission.array else None
    job = Job(id=number, number=number, task=task, state=JobState.UNKNOWN)
    return backend_for(submission.scheduler, home).log_path(submission, job)


def files_of(submission: Submission, home: Path) -> dict[str, Any]:
    """Return the log of a job, and the ids of its recordings, oldest first."""
    known = submission.job is not None
    runs = runs_of_job(home, submission) if known and submission.recorded else []
    return {
        "log": str(log_of(submission, home)) if known else "",
        "recordings": [path.name for path in runs],
    }


def file_lines(submission: Submission, home: Path) -> str:
    """Return the lines of a job's screen that name its log and its recordings."""
    files = files_of(submission, home)
    lines = [f"  log {files['log']}\n"] if files["log"] else []
    lines += [f"  recording {run}: `teho report {run}`\n" for run in files["recordings"]]
    return "".join(lines)


def _print_report(submission: Submission, settings: Settings, log: bytes) -> None:
    """Print the newest report of a recorded job, unless the log ends with it."""
    from teho.show.loaded import LoadedRun

    runs = runs_of_job(settings.home_directory, submission)
    if not runs:
        say(f"Teho found no recording of job {submission.number} in {settings.home_directory}")
        return
    if f"teho report {runs[-1].name}".encode() not in log:
        click.echo(err=True)
        loaded = LoadedRun(runs[-1], settings)
        print_text(loaded.view_with(plots=False), sys.stderr, "brief")
    if len(runs) > 1:
        say(
            f"this report is for the newest of {len(runs)} recordings of this job; `teho list` "
            "shows the others"
        )


def _exit_code(jobs: Sequence[Job]) -> int:
    if jobs and all(job.state is JobState.COMPLETED for job in jobs):
        return 0
    codes = {job.exit_code for job in jobs if job.exit_code}
    return codes.pop() if len(codes) == 1 else 1
