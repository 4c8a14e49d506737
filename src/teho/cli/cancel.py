"""`teho cancel`: end submitted jobs."""

from __future__ import annotations

import re

import click

from teho.cli import say
from teho.cli.declare import plain_command
from teho.config.settings import load_settings
from teho.store.submissions import find_submission

__all__ = ["command"]


@plain_command("""\
  teho cancel 4211907
  teho cancel 4211907_3
  teho cancel last""")
@click.argument("references", metavar="JOB…", nargs=-1, required=True)
def command(references: tuple[str, ...]) -> None:
    """End waiting or running jobs. JOB is the number or name of a job, or last.

    The number of one task of an array is written as 123_4. If a job has already ended, the command
    says so, and does not fail.

    Reads: TEHO_HOME/jobs.

    Writes: TEHO_HOME/jobs.

    Network: only through commands of the scheduler, such as scancel.
    """
    from teho.cli.submitted import look_up
    from teho.errors import InputError
    from teho.model.job import JobState
    from teho.schedulers import jobs
    from teho.schedulers.follow import ended
    from teho.schedulers.registry import backend_for
    from teho.show.build.jobs import state_sentence

    home = load_settings().home_directory
    for reference in references:
        (view,), _ = look_up([find_submission(home, reference)], home)
        submission = view.submission
        if submission.job is None:
            raise InputError(
                f"job {reference!r} cannot be ended, because its number is not known; "
                f"{view.jobs[0].reason}",
                next_step="`teho status` looks for the job again",
            )
        number = submission.number
        if ended(view.jobs):
            say(f"job {number} has already ended: {state_sentence(view.jobs)}")
            continue
        (state,) = {(job.state, job.state_as_written) for job in view.jobs[:1]}
        if state == (JobState.UNKNOWN, ""):
            raise InputError(
                f"job {number} cannot be ended from here: {view.jobs[0].reason}",
                next_step="try again on the machine that submitted the job",
            )
        task = re.fullmatch(re.escape(number) + r"([_.+]\d+)", reference)
        job = number + (task.group(1) if task else "")
        cluster = submission.job.removeprefix(number)  # `;puhti`, of several clusters
        jobs.cancel(backend_for(submission.scheduler, home), [job + cluster])
        say(f"job {job} is cancelled")
