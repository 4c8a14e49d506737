"""`teho report`: what a run used, what it wasted, and what to change."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.complete import complete_run
from teho.cli.terminal import wants_color, width
from teho.errors import InputError, SchedulerError

if TYPE_CHECKING:
    from teho.model.run import Run
    from teho.show.view import View

__all__ = ["command", "print_text"]


@click.command(
    epilog="""\b
Examples:
  teho report
  teho report baseline --short
  teho report last --format html --output report.html
  teho report 20261120-1019 --format json | jq .verdict
  teho report --format seff
  teho report 4711""",
)
@click.argument("run", default="last", shell_complete=complete_run)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "html", "json", "seff"]),
    default="text",
    show_default=True,
    help="text for people, html with plots, json for programs, seff as CSC's seff prints it.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file."
)
@click.option("--short", is_flag=True, help="The short form that `teho run` prints; text only.")
def command(run: str, form: str, output: Path | None, short: bool) -> None:
    """Report on RUN: an id, the beginning of one, a name, a directory, or last.

    A job's id stands for the newest recording of that job; the report then has what the
    scheduler's accounting says of it.
    """
    from teho.show.loaded import LoadedRun

    gc.disable()  # a report of many nodes is millions of objects, none of which is garbage
    loaded = LoadedRun.open(run)
    view = loaded.view_with(plots=form in {"html", "json"})
    if run in _job_ids(loaded.run):
        view = _with_account(view, loaded.run, run)
    _write(view, form, output, full=not short)
    if loaded.problems:
        # What could be read has been reported; that it is not all must not go unnoticed.
        sys.stdout.flush()
        for problem in loaded.problems:
            say(f"{problem}. Next: `teho show {loaded.run.id} --path` leads to the other files")
        raise click.exceptions.Exit(2)


def _job_ids(run: Run) -> set[str]:
    """Return the ids by which a run's job is known; an array's task also by the array's."""
    known = {node.allocation.job_id for node in run.nodes if node.allocation.job_id}
    return known | {re.split("[_.]", job_id)[0] for job_id in known}


def _with_account(view: View, run: Run, job_id: str) -> View:
    """Add the scheduler's accounting of a job; if it cannot be asked, a line says so."""
    import msgspec

    from teho.config.settings import load_settings
    from teho.schedulers import jobs as ask
    from teho.schedulers.registry import backend_for
    from teho.show.job_facts import job_facts
    from teho.store.index import runs_of_job_id

    home = load_settings().home_directory
    scheduler = next(n.allocation.scheduler for n in run.nodes if n.allocation.scheduler)
    others = len(runs_of_job_id(home, job_id)) - 1
    notes = view.notes
    if others > 0:
        notes += (
            f"The newest of {others + 1} recordings of job {job_id}; `teho list` shows the others.",
        )
    number = re.split("[_.]", job_id)[0]
    try:
        jobs = ask.states(backend_for(scheduler, home), [number])[number]
    except (SchedulerError, InputError) as error:
        jobs = ()
        notes += (f"What the scheduler says of job {job_id} is not known: {error.found}.",)
    # Numbers come again: a job that had ended before the recording began is another one.
    jobs = tuple(job for job in jobs if job.ended_at is None or job.ended_at >= run.started_at)
    own = [job for job in jobs if job.id == job_id] or jobs
    return msgspec.structs.replace(view, facts=(*view.facts, *job_facts(own)), notes=notes)


def _write(view: View, form: str, output: Path | None, *, full: bool) -> None:
    if form == "text" and output is None:
        print_text(view, sys.stdout, full=full)
        return
    if form == "html" and output is None and sys.stdout.isatty():
        # A page is of no use on a terminal; say where it went.
        output = Path(f"{view.run_id}.html")
    text = _render(view, form, full=full)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output}: {error.strerror}", "a file that can be written") from error
    say(f"wrote {output}")


def _render(view: View, form: str, *, full: bool) -> str:
    if form == "html":
        from teho.show.html import render_html

        return render_html(view)
    if form == "json":
        from teho.show.json import render_json

        return render_json(view)
    if form == "seff":
        from teho.show.seff import render_seff

        return render_seff(view)
    from teho.show.text import render_text

    return render_text(view, width=width(), color=False, full=full)


def print_text(view: View, stream: IO[str], *, full: bool) -> None:
    """Write the text form to a stream, in colour where it is a terminal that wants it."""
    from teho.show.text import render_text

    stream.write(render_text(view, width=width(), color=wants_color(stream), full=full))
    stream.flush()
