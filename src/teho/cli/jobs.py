"""`teho jobs`: all jobs of a period, recorded by Teho or not."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import click

from teho.cli.declare import option, plain_command
from teho.cli.output import Output, output_options
from teho.cli.progress import hint_if_slow
from teho.cli.selection import job_options, period_begin, period_words, privacy_notes, selected
from teho.cli.terminal import list_width
from teho.errors import InputError

if TYPE_CHECKING:
    from teho.model.job import JobState

__all__ = ["command"]

_SORTS = ("start", "waste", "time", "cores", "gpus", "memory", "cost", "billing")
_SLURM = {"timeout": "timed_out", "oom": "out_of_memory", "node_fail": "node_failed"}
"""Slurm's words for states that Teho calls otherwise."""


@plain_command("""\
  teho jobs
  teho jobs --since 30d --state failed,timed_out
  teho jobs --account project_2001234 --sort waste
  teho jobs --all --since 2026-11-01 --format csv -o jobs.csv
  teho jobs --since 90d -o jobs.parquet""")
@job_options("7d")
@option("--state STATES", "Show only jobs in these states, such as running,failed.", unset="all")
@option("--sort", "Sort the jobs by this value; running jobs always come first.", into="by",
        type=click.Choice(_SORTS), default="start")  # fmt: skip
@option("--last N", "Show at most this number of jobs as text or HTML.", default=30,
        type=click.IntRange(min=1))  # fmt: skip
@output_options("csv", "parquet")
def command(
    since: str, user: str | None, account: str | None, everyone: bool, state: str | None, by: str,
    last: int, output: Output,
) -> None:  # fmt: skip
    """List the jobs of a period: what each job used of what it requested.

    The values are from the accounting of the scheduler (sacct or qacct). So the list also has jobs
    that Teho did not record. The column State also names what may be wrong, such as cores that were
    not used. JSON, CSV and Parquet have all jobs and all values.

    Reads: the recordings in TEHO_HOME.

    Writes: only the -o file, and a cache in ~/.cache/teho.

    Network: only through commands of the scheduler, such as sacct.
    """
    from teho.config.settings import load_settings
    from teho.explain.policy import policy_of
    from teho.explain.waste.lines import lines_of_jobs, sorted_lines
    from teho.explain.waste.recorded import Recordings
    from teho.jobs.ask import accounting_here, gpu_nodes_here, jobs_since
    from teho.model.digest import JobList

    gc.disable()  # a list has millions of objects, and most of them are needed or gone at once
    settings = load_settings()
    home = settings.home_directory
    wanted = _states(state)
    begin = period_begin(since)
    selection = selected(begin, user, account, everyone=everyone, every_run=False)
    backend = accounting_here(home)
    with hint_if_slow(f"waiting for the accounting of {backend.title}…"):
        jobs = jobs_since(backend, selection)
        policy = policy_of(settings)
        recordings = Recordings.of(home, policy)
        lines = list(lines_of_jobs(jobs, policy, recordings, gpu_nodes_here(backend)))
    users = {line.user for line in lines}
    shown = [line for line in lines if not wanted or line.state in wanted]
    found = JobList(
        since=begin,
        jobs=tuple(sorted_lines(shown, by)),
        notes=tuple(privacy_notes(backend, selection, users)),
    )
    if output.form == "csv":
        from teho.show.rows import csv_text

        output.write(csv_text(found.jobs))
    elif output.form == "parquet":
        from teho.show.rows import parquet_bytes

        output.write_bytes(parquet_bytes(found.jobs))
    else:
        from teho.show.build.job_list import jobs_list_document

        columns = list_width()
        is_list = output.form == "text" and output.detail != "why"
        document = jobs_list_document(
            found, period=period_words(since), most=last, columns=columns if is_list else None
        )
        output.show(document, found, columns=columns)


def _states(text: str | None) -> frozenset[JobState]:
    """Read `--state`.

    Raises:
        InputError: a state is not known.
    """
    from teho.config.toml import did_you_mean
    from teho.model.job import JobState

    found = set()
    known = [state.value for state in JobState]
    for word in filter(None, (text or "").replace(" ", "").lower().split(",")):
        name = _SLURM.get(word, word)
        if name not in known:
            raise InputError(
                f"--state {word}{did_you_mean(name, known)}",
                next_step="leave out --state to see all jobs with their states",
            )
        found.add(JobState(name))
    return frozenset(found)
