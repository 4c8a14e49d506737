"""`teho rm`: delete recordings."""

from __future__ import annotations

import shutil
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.complete import complete_run
from teho.cli.declare import flag, option, plain_command
from teho.errors import InputError, RecordingError
from teho.units import counted

if TYPE_CHECKING:
    from teho.model.run import Run

__all__ = ["command"]

_MOST_SHOWN = 10
"""Number of recordings that the question lists."""


@plain_command("""\
  teho rm 20261120-101944-train-k3f9
  teho rm --older-than 30d
  teho rm --older-than 30d --yes""")
@click.argument("runs", nargs=-1, shell_complete=complete_run)
@option("--older-than TIME", "Delete all runs that are older than this time, such as 30d.",
        unset="only RUNS")  # fmt: skip
@flag("-y --yes", "Delete without asking.")
def command(runs: tuple[str, ...], older_than: str | None, yes: bool) -> None:
    """Delete RUNS, or all runs that are older than --older-than. Runs that have not ended are kept.

    Reads: the descriptions of the recordings in TEHO_HOME.

    Writes: no files; deletes only files that Teho wrote in TEHO_HOME.

    Network: not used.
    """
    from teho.config.settings import load_settings
    from teho.store.index import find_run, remove_run
    from teho.store.steps import forget_steps_of

    home = load_settings().home_directory
    if bool(runs) == bool(older_than):
        raise InputError(
            "it is not clear what to delete",
            "either runs or --older-than",
            "`teho list` shows the runs",
        )
    chosen = _older(home, older_than) if older_than else [find_run(run, home) for run in runs]
    chosen = list(dict.fromkeys(chosen))
    running = [path for path in chosen if _is_running(path)]
    for path in running:
        say(f"{path.name} still runs, so it is not deleted")
    chosen = [path for path in chosen if path not in running]
    if not chosen:
        say("nothing to delete")
        return
    if not yes:
        _show(chosen)
        click.confirm(f"Delete {counted(len(chosen), 'recording')}?", abort=True, err=True)
    deleted = 0
    for path in chosen:
        try:
            remove_run(path)
        except RecordingError as error:
            say(str(error))
            continue
        forget_steps_of(path.parent.parent, {path.name})
        deleted += 1
    if deleted:
        say(f"deleted {counted(deleted, 'recording')}")
    if deleted < len(chosen):
        raise click.exceptions.Exit(2)


def _older(home: Path, older_than: str) -> list[Path]:
    from teho.store.index import list_runs
    from teho.units import parse_duration

    age_s = parse_duration(older_than, "--older-than")
    try:
        limit = datetime.now(timezone.utc) - timedelta(seconds=age_s)
    except OverflowError as error:
        raise InputError(f"--older-than: {older_than!r}", "a shorter length of time") from error
    return [path for path, run in list_runs(home) if run and run.started_at < limit]


def _show(chosen: list[Path]) -> None:
    """Print when, where, by whom and with which verdict the first recordings were made."""
    from teho.cli.run_table import RunTable

    table = RunTable([(path, _described(path)) for path in chosen[:_MOST_SHOWN]], is_full=True)
    room = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    for line in table.lines(room):
        click.echo(line, err=True)
    if len(chosen) > _MOST_SHOWN:
        click.echo(f"… and {len(chosen) - _MOST_SHOWN} more", err=True)


def _described(path: Path) -> Run | None:
    from teho.store.read import read_run

    try:
        return read_run(path)
    except RecordingError:
        return None


def _is_running(path: Path) -> bool:
    from teho.model.run import RunState
    from teho.store.read import read_run, run_state

    try:
        return run_state(read_run(path), path) is RunState.RUNNING
    except RecordingError:
        return False
