"""`teho status`: the states of the submitted jobs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from teho.cli import say
from teho.cli.declare import flag, plain_command
from teho.cli.output import Output, output_options
from teho.cli.progress import hint_if_slow
from teho.cli.terminal import print_text
from teho.config.settings import load_settings
from teho.errors import InputError
from teho.store.submissions import find_submission, submissions

if TYPE_CHECKING:
    from teho.show.build.jobs import JobView

__all__ = ["command"]

_RECENT = timedelta(days=7)
_SILENCE_S = 3.0
"""After this time, a line says what the command waits for."""


@plain_command("""\
  teho status
  teho status 4211907
  teho status last --follow
  teho status --format json | jq '.[] | select(.jobs[0].state == "running")'""")
@click.argument("references", metavar="[JOB…]", nargs=-1)
@flag("-f --follow", "Print the state and the log of one job until the job ends, then the cost.")
@flag("--all", "Also show jobs that were submitted more than a week ago.", into="every")
@output_options()
def command(references: tuple[str, ...], follow: bool, every: bool, output: Output) -> None:
    """Show the states of jobs, their cost until now, and their log and recordings.

    JOB is the number or name of a job, or last. Without JOB, Teho shows all jobs that `teho submit`
    submitted in the last week. Exit code: 1 if a scheduler did not answer, otherwise 0.

    Reads: TEHO_HOME/jobs, and the recordings of the jobs.

    Writes: TEHO_HOME/jobs.

    Network: only through commands of the scheduler, such as squeue.
    """
    from teho.cli.submitted import all_with_account, files_of, follow_to_end, look_up
    from teho.show.build.jobs import jobs_document

    settings = load_settings()
    home = settings.home_directory
    if references:
        found = [find_submission(home, reference) for reference in references]
    else:
        known, problems = submissions(home)
        for problem in problems:
            say(problem)
        since = datetime.now(timezone.utc) - _RECENT
        found = [one for one in known if every or one.submitted_at >= since]
    if follow:
        if len(found) != 1:
            raise InputError(
                f"--follow with {len(found)} jobs",
                "one job",
                "`teho status last -f`",
            )
        (view,), problems = look_up(found, home)
        if view.submission.job is None:
            for problem in problems:
                say(problem)
            print_text(jobs_document([view]), sys.stderr)
            raise click.exceptions.Exit(1)
        raise click.exceptions.Exit(follow_to_end(view.submission, settings))
    with hint_if_slow("waiting for the scheduler's answer", after_s=_SILENCE_S, always=True):
        views, problems = look_up(found, home)
        if output.form != "text" or len(views) == 1:
            views = all_with_account(views, home)
    for problem in problems:
        say(problem)
    if output.form == "json":
        import msgspec

        from teho.show.json.noun import legible

        rows: list[dict[str, Any]] = [
            legible(msgspec.to_builtins(view)) | files_of(view.submission, home) for view in views
        ]
        text = msgspec.json.format(msgspec.json.encode(rows), indent=2).decode()
        output.write(f"{text}\n")
    elif output.form == "html":
        output.show(jobs_document(views))
    else:
        _print(views, home, output, every=every)
    if problems:
        raise click.exceptions.Exit(1)


def _print(views: Sequence[JobView], home: Path, output: Output, *, every: bool) -> None:
    if not views:
        which = "submitted" if every else "submitted in the last week"
        say(f"no jobs {which}. Next: `teho submit -- COMMAND`")
        return
    from teho.cli.submitted import file_lines
    from teho.show.build.jobs import jobs_document

    one = views[0] if len(views) == 1 and output.detail != "short" else None
    files = file_lines(one.submission, home) if one else ""
    output.show(jobs_document(views), below=files)
