"""What `teho submit`, `status` and `cancel` share: jobs that were submitted, and following one."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import click

from teho.cli import say
from teho.cli.terminal import wants_color, width
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
from teho.show.job_text import NO_NUMBER, JobView, elapsed_of, render_job, state_sentence
from teho.store.index import runs_of_job
from teho.store.submissions import forget, keep
from teho.units import MIB

__all__ = ["all_with_account", "follow_to_end", "look_up", "print_job", "view_of"]

_MOST_ASKED = 4
"""Questions to a scheduler at the same time."""
# Grid Engine writes a job's account some seconds after its end.
_ACCOUNT_TRIES, _ACCOUNT_PAUSE_S = 8, 1.0


def look_up(submissions: Sequence[Submission], home: Path) -> tuple[list[JobView], list[str]]:
    """Ask each scheduler for its jobs, in one question: `(jobs, what could not be asked)`.

    A scheduler that cannot be asked leaves its jobs UNKNOWN.
    """
    found: dict[tuple[str, str], tuple[Job, ...]] = {}
    problems: list[str] = []
    numbered = [_numbered(submission, home) for submission in submissions]
    for scheduler in sorted({one.scheduler for one, _ in numbered}):
        numbers = [one.job for one, _ in numbered if one.scheduler == scheduler and one.job]
        try:
            answer = ask.states(backend_for(scheduler, home), numbers, _since(submissions))
        except SchedulerError as error:
            problems.append(error.found)
        else:
            found.update({(scheduler, number): jobs for number, jobs in answer.items()})
    views = []
    for submission, trouble in numbered:
        if trouble:
            which = f"job {submission.name!r}" if submission.name else "the job"
            problems.append(f"{which} of {submission.submitted_at.astimezone():%H:%M}: {trouble}")
        number = submission.job or NO_NUMBER
        reason = trouble or "the scheduler cannot be asked for now"
        jobs = found.get((submission.scheduler, number), (_unknown(number, reason),))
        if any(_is_of_another(job, submission) for job in jobs):
            jobs = (_unknown(number, "here this number is another job's"),)
        views.append(view_of(submission, with_missing(submission, jobs)))
    return views, problems


def _since(submissions: Sequence[Submission]) -> dict[str, datetime]:
    return {one.job: one.submitted_at for one in submissions if one.job is not None}


def _is_of_another(job: Job, submission: Submission) -> bool:
    """Return whether a job with this number is not the one that was submitted: it lacks the mark.

    Slurm's queue shows every job's comment; an accounting may keep none.
    """
    if job.state is JobState.UNKNOWN or submission.mark in job.comment:
        return False
    if job.comment:
        return job.script != submission.script
    return scheduler_of(submission.scheduler).shows_comments and not job.state.ended


def _numbered(submission: Submission, home: Path) -> tuple[Submission, str]:
    """Return a submission with its number, looked for where the answer was lost, or what is wrong.

    Raises nothing: what cannot be found out now may be the next time.
    """
    if submission.job is not None:
        return submission, ""
    try:
        known = ask.find(backend_for(submission.scheduler, home), submission)
    except SchedulerError as error:
        if isinstance(error, NotSubmittedError):
            forget(home, submission.mark)  # it is certain by now
        return submission, error.found
    with contextlib.suppress(OSError):
        keep(home, known)
    return known, ""


def _unknown(number: str, reason: str) -> Job:
    return Job(id=number, number=number, state=JobState.UNKNOWN, reason=reason)


def view_of(submission: Submission, jobs: Sequence[Job]) -> JobView:
    """Return a job with what it has cost until now."""
    return JobView(submission=submission, jobs=tuple(jobs), cost=_cost(submission, jobs))


def _cost(submission: Submission, jobs: Sequence[Job]) -> Cost | None:
    elapsed_s, path = elapsed_of(jobs), cluster_files().get(submission.cluster)
    if submission.option is None or elapsed_s is None or path is None:
        return None
    memory_bytes = jobs[0].memory_bytes
    try:
        cluster = read_cluster(path)
    except InputError:
        return None  # `teho clusters check` says what is wrong with it
    memory_mib = None if memory_bytes is None else memory_bytes // MIB
    return cost_of_use(submission.option, cluster, elapsed_s, memory_mib)


def print_job(view: JobView) -> None:
    """Print one job on standard error."""
    text = render_job(view, width=width(), color=wants_color(sys.stderr))
    click.echo(text, nl=False, err=True)


def follow_to_end(submission: Submission, settings: Settings) -> int:
    """Follow a job: its log on standard output, its states on standard error.

    Then print what it used and cost, and its report if it was recorded. Returns the
    job's own exit code; 1 where it has none and did not end well.

    Raises:
        SchedulerError: the scheduler says no, or its command is not here.
    """
    backend = backend_for(submission.scheduler, settings.home_directory)
    number = submission.number
    jobs: tuple[Job, ...] = ()
    try:
        for event in follow(backend, submission):
            if isinstance(event, bytes):
                sys.stdout.buffer.write(event)
                sys.stdout.buffer.flush()
            else:
                jobs = event
                say(f"{datetime.now(timezone.utc).astimezone():%H:%M:%S} job {number} "
                    + state_sentence(jobs))  # fmt: skip
        if ended(jobs):
            jobs = _accounted(backend, submission, jobs, _ACCOUNT_TRIES)
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            click.echo(err=True)  # the terminal has written ^C
        say(
            f"job {number} goes on. Next: `teho status {number} --follow` follows it again, "
            f"`teho cancel {number}` ends it"
        )
        raise click.exceptions.Exit(130) from None
    print_job(view_of(submission, jobs))
    if submission.recorded:
        _print_reports(submission, settings)
    return _exit_code(jobs)


def all_with_account(views: Sequence[JobView], home: Path) -> list[JobView]:
    """Return jobs, the ended ones with what the accounting has of them by now."""
    with ThreadPoolExecutor(_MOST_ASKED) as pool:
        return list(pool.map(lambda view: _with_account(view, home), views))


def _with_account(view: JobView, home: Path) -> JobView:
    """Return an ended job with what the accounting has of it by now."""
    submission = view.submission
    if submission.job is None or not ended(view.jobs):
        return view
    backend = backend_for(submission.scheduler, home)
    return view_of(submission, _accounted(backend, submission, view.jobs, tries=1))


def _accounted(
    backend: Backend, submission: Submission, jobs: tuple[Job, ...], tries: int
) -> tuple[Job, ...]:
    """Return ended jobs as the accounting has them, which learns of one task after another.

    What it does not have in time stays as the queue had it.
    """
    jobs, found = _own(jobs, submission), dict[str, Job]()
    for attempt in range(tries):
        if attempt:
            time.sleep(_ACCOUNT_PAUSE_S)
        try:
            told = ask.accounting(backend, submission.job or "", submission.submitted_at)
        except NoAnswerError:
            break  # it has been asked more than once already
        except SchedulerError:
            told = ()
        found = {job.id: job for job in _own(told, submission) if job.state.ended}
        if all(job.id in found for job in jobs):
            break
    return (*found.values(), *(job for job in jobs if job.id not in found))


def _own(jobs: Sequence[Job], submission: Submission) -> tuple[Job, ...]:
    """Leave out the job of its own that a task is to Slurm's accounting for a moment."""
    return tuple(job for job in jobs if job.task is not None or not submission.array)


def _print_reports(submission: Submission, settings: Settings) -> None:
    from teho.cli.report import print_text
    from teho.show.loaded import LoadedRun

    runs = runs_of_job(settings.home_directory, submission)
    if not runs:
        say(f"no recording of job {submission.number} in {settings.home_directory}")
    for path in runs[-1:]:
        click.echo(err=True)
        loaded = LoadedRun(path, settings)
        print_text(loaded.view_with(plots=False), sys.stderr, "brief")
    if len(runs) > 1:
        say(f"the newest of {len(runs)} recordings of this job; `teho list` shows the others")


def _exit_code(jobs: Sequence[Job]) -> int:
    if jobs and all(job.state is JobState.COMPLETED for job in jobs):
        return 0
    codes = {job.exit_code for job in jobs if job.exit_code}
    return codes.pop() if len(codes) == 1 else 1
