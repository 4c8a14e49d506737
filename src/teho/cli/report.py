"""`teho report`: what a run used, what it wasted, and what to change."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.complete import complete_run
from teho.cli.declare import flag, plain_command
from teho.cli.output import Output, output_options
from teho.cli.progress import hint_if_slow
from teho.errors import (
    InputError,
    RunNotFoundError,
    SchedulerError,
    UnconfiguredError,
)
from teho.store.owner import owner_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from teho.config.settings import Settings
    from teho.jobs.http import Store
    from teho.model.accounted import AccountedJob
    from teho.model.document import Report
    from teho.model.run import Run
    from teho.show.loaded import LoadedRun

__all__ = ["command"]


@plain_command("""\
  teho report
  teho report baseline --short
  teho report last -o report.html
  teho report last --why
  teho report 20261120-1019 --format json | jq .verdict
  teho report --format seff
  teho report --write-js1
  teho report 4711""")
@click.argument("run", default="last", shell_complete=complete_run)
@click.argument("others", metavar="", nargs=-1)
@flag(
    "--write-js1",
    "Print only the summary that Jobstats stores in Slurm's AdminComment.",
    into="is_js1",
)
@output_options("seff")
def command(run: str, others: tuple[str, ...], is_js1: bool, output: Output) -> None:
    """Report what RUN used, what it wasted, and what to change.

    RUN is the id of a run, the first characters of this id, the id of a job, a name, a directory,
    or last. If RUN is the id of a job, Teho reports on the newest recording of the job, and asks
    the scheduler for the accounting. If Teho did not record the job, the report shows the values of
    the accounting. If the setting monitoring has the address of the site's monitoring, the report
    also shows values from there. If the job runs, and Teho does not record it, the report shows
    what the job has used until now (Slurm's sstat). --format seff prints the same values as the
    command seff of CSC.

    Reads: the recording.

    Writes: the -o file. If `teho always` recorded the job, also the end of the job.

    Network: used only for jobs: commands of the scheduler, and the address in the setting
    monitoring.
    """
    from teho.show.loaded import LoadedRun

    if others:
        raise InputError(
            f"{len(others) + 1} runs", "one run", f"`teho diff {run} {others[0]}` compares two runs"
        )
    gc.disable()  # a report of many nodes has millions of objects, and all of them are needed
    try:
        loaded = LoadedRun.open(run)
    except RunNotFoundError as error:
        _report_on_job(run, output, error, is_js1=is_js1)
        return
    if loaded.run.is_automatic and loaded.run.end is None:
        from teho.jobs.settle import settle
        from teho.store.automatic import AutomaticRun

        if settle(loaded.directory.parents[1], [AutomaticRun(loaded.directory, loaded.run)]):
            loaded = LoadedRun.open(str(loaded.directory))
    if is_js1:
        from teho.jobs.js1 import encode_js1
        from teho.show.text.js1 import js1_of

        output.write(f"{encode_js1(js1_of(loaded.summary))}\n")
        return
    with hint_if_slow("reading the traces…"):
        _ = loaded.profiled
    report = loaded.view_with(plots=output.form in {"html", "json"})
    report = _with_origin(loaded, report, is_text=output.form == "text")
    if run in _job_ids(loaded.run):
        report = _with_account(report, loaded.run, run)
    if output.form == "seff":
        from teho.show.text.seff import render_seff

        output.write(render_seff(report))
    else:
        output.show(report)
    if loaded.problems:
        # The exit code says that the report is incomplete.
        sys.stdout.flush()
        for problem in loaded.problems:
            say(
                f"{problem}. Next: `teho show {loaded.run.id} --path` prints the directory of "
                "the recording"
            )
        raise click.exceptions.Exit(2)


def _report_on_job(
    reference: str, output: Output, not_found: RunNotFoundError, *, is_js1: bool
) -> None:
    """Report on a job that Teho did not record, or print its summary for Jobstats.

    Raises:
        RunNotFoundError: the reference is not the id of a job of this machine's scheduler.
        SchedulerError: the accounting cannot be asked.
    """
    from teho.config.settings import load_settings

    settings = load_settings()
    runs = _accounted(reference, settings, not_found)
    by_id: dict[str, list[AccountedJob]] = {}
    for job in runs:
        by_id.setdefault(job.id, []).append(job)
    problems: list[str] = []
    if is_js1:
        with hint_if_slow("waiting for the site's monitoring…"):
            _write_js1([own[-1] for own in by_id.values()], output, settings, problems)
    elif output.form == "seff":
        from teho.show.accounted import report_on
        from teho.show.text.seff import render_seff

        reports = (report_on(own, settings, is_judged=False) for own in by_id.values())
        output.write("\n".join(map(render_seff, reports)))
    elif len(by_id) == 1:
        from teho.show.accounted import report_on

        with hint_if_slow("waiting for the site's monitoring…"):
            report = report_on(
                runs,
                settings,
                store=_store(settings),
                plots=output.form in {"html", "json"},
                problems=problems,
            )
        output.show(report)
    else:
        _list_tasks(reference, [own[-1] for own in by_id.values()], output, settings)
    if problems:
        sys.stdout.flush()
        say(problems[0])
        raise click.exceptions.Exit(2)


def _accounted(
    reference: str, settings: Settings, not_found: RunNotFoundError
) -> tuple[AccountedJob, ...]:
    """Return the runs of a job, of its tasks and components. A running job has its use until now.

    Raises:
        RunNotFoundError: the reference is not the id of a job of this machine's scheduler.
        SchedulerError: the accounting cannot be asked.
    """
    from teho.jobs.ask import accounting_here, is_job_id, job_until_now
    from teho.store.layout import runs_directory

    if not is_job_id(reference):
        raise not_found
    if any(runs_directory(settings.home_directory).glob(f"{reference}*")):
        raise not_found  # the ids of several runs begin with it
    try:
        backend = accounting_here(settings.home_directory)
    except InputError:
        raise not_found from None
    try:
        with hint_if_slow(f"waiting for the accounting of {backend.title}…"):
            runs = job_until_now(backend, reference)
    except UnconfiguredError:
        raise not_found from None
    except SchedulerError as error:
        raise type(error)(
            f"Teho has no recording of job {reference}, and {error.found}",
            error.expected,
            error.next_step,
        ) from None
    if not runs:
        raise RunNotFoundError(
            f"Teho has no recording of job {reference}, and the accounting of {backend.title} has "
            "no such job",
            "the id of a job that you may see",
            "`teho jobs` lists your jobs, `teho list` lists the recordings",
        )
    return runs


def _write_js1(
    jobs: Sequence[AccountedJob], output: Output, settings: Settings, problems: list[str]
) -> None:
    """Print the summary of each job, of each task or of each component, one line for each.

    If the site has already stored a summary, and its monitoring has no samples, the stored summary
    is printed.
    """
    import msgspec

    from teho.jobs.js1 import encode_js1, js1_in
    from teho.model.missing import Missing
    from teho.show.accounted import known_of
    from teho.show.text.js1 import js1_of

    store = _store(settings)
    lines = []
    for job in jobs:
        found = known_of(job, store, problems)
        if found.store or isinstance(found.jobstats, Missing):
            # GPUs that cannot be divided among the nodes are not in the figures of the nodes.
            made = msgspec.structs.replace(js1_of(found.summary), gpu_count=job.gpus)
            text = encode_js1(made)
        else:
            text = js1_in(job.admin_comment)
        lines.append(f"{text}\n")
    output.write("".join(lines))


def _store(settings: Settings) -> Store | None:
    """Return the site's monitoring; None if neither a setting nor the cluster's file names it.

    Raises:
        InputError: the settings cannot be used.
    """
    from teho.cli.here import cluster_here
    from teho.cli.token_file import chosen_store

    here = None if settings.monitoring else cluster_here()
    return chosen_store(settings, here.monitoring if here else "")


def _list_tasks(
    reference: str, jobs: Sequence[AccountedJob], output: Output, settings: Settings
) -> None:
    """List the tasks of an array, or the components of a heterogeneous job."""
    from teho.cli.terminal import list_width
    from teho.explain.policy import policy_of
    from teho.explain.waste.lines import lines_of_jobs
    from teho.show.build.job_list import tasks_document

    lines = lines_of_jobs(jobs, policy_of(settings))
    columns = list_width()
    is_list = output.form == "text" and output.detail != "why"
    document = tasks_document(reference, lines, columns=columns if is_list else None)
    output.show(document, columns=columns)


def _with_origin(loaded: LoadedRun, report: Report, *, is_text: bool) -> Report:
    """Add when and where the run began, and by whom; text omits this user's own name."""
    import msgspec

    from teho.model.document import Fact

    # Who imported a log need not be who ran the program.
    owner = "" if loaded.run.imported else owner_of(loaded.directory)
    began = loaded.run.started_at.astimezone().strftime("%Y-%m-%d %H:%M %Z")
    facts = (
        Fact("began", "Began", began),
        Fact("host", "Host", loaded.run.host or None),
        Fact(
            "user", "User", owner or None, aside=is_text and owner == owner_of(Path("/proc/self"))
        ),
    )
    return msgspec.structs.replace(report, facts=(*report.facts, *facts))


def _job_ids(run: Run) -> set[str]:
    """Return the ids of a run's job; for a task of an array, the array's id too."""
    known = {node.allocation.job_id for node in run.nodes if node.allocation.job_id}
    return known | {re.split("[_.]", job_id)[0] for job_id in known}


def _with_account(report: Report, run: Run, job_id: str) -> Report:
    """Add the scheduler's accounting of a job, or a note that it is not available."""
    import msgspec

    from teho.config.settings import load_settings
    from teho.schedulers import jobs as ask
    from teho.schedulers.registry import backend_for
    from teho.show.build.jobs import job_facts
    from teho.store.index import runs_of_job_id

    home = load_settings().home_directory
    scheduler = next(n.allocation.scheduler for n in run.nodes if n.allocation.scheduler)
    count = len(runs_of_job_id(home, job_id))
    notes = report.notes
    if count > 1:
        newest = f"This report is for the newest of {count} recordings of job {job_id}"
        notes += (f"{newest}; `teho list` shows the others.",)
    number = re.split("[_.]", job_id)[0]
    try:
        jobs = ask.states(backend_for(scheduler, home), [number])[number]
    except (SchedulerError, InputError) as error:
        jobs = ()
        notes += (f"The scheduler's accounting of job {job_id} is not available: {error.found}.",)
    # Schedulers use numbers again: a job that ended before the recording began is another one.
    jobs = tuple(job for job in jobs if job.ended_at is None or job.ended_at >= run.started_at)
    own = [job for job in jobs if job.id == job_id] or jobs
    return msgspec.structs.replace(report, facts=(*report.facts, *job_facts(own)), notes=notes)
