"""`teho rm`: delete recordings."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import click

from teho.cli import say
from teho.cli.complete import complete_run
from teho.cli.declare import flag, option, plain_command
from teho.errors import InputError, RecordingError
from teho.units import counted

__all__ = ["command"]


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
        for path in chosen[:10]:
            click.echo(f"  {path.name}{_about(path)}", err=True)
        if len(chosen) > 10:
            click.echo(f"  … and {len(chosen) - 10} more", err=True)
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


def _about(path: Path) -> str:
    """Return when a run began, in local time, and its command."""
    import shlex

    from teho.store.read import read_run

    try:
        run = read_run(path)
    except RecordingError:
        return ", damaged"
    began = run.started_at.astimezone().strftime("%Y-%m-%d %H:%M %Z")
    words = shlex.join(run.command).replace("\n", " ")
    return f", {began}: {words[:60]}"


def _is_running(path: Path) -> bool:
    from teho.model.run import RunState
    from teho.store.read import read_run, run_state

    try:
        return run_state(read_run(path), path) is RunState.RUNNING
    except RecordingError:
        return False
