"""`teho share`: let the members of a group read runs."""

from __future__ import annotations

from pathlib import Path

import click

from teho.cli import say
from teho.cli.complete import complete_run
from teho.cli.declare import flag, option, plain_command
from teho.errors import InputError, RecordingError
from teho.units import counted

__all__ = ["command", "shared_folder"]


@plain_command("""\
  teho share last --with project_2001234
  teho share 20261120-101944-train-k3f9 baseline --with project_2001234
  teho share --all --with project_2001234
  teho share""")
@click.argument("runs", nargs=-1, shell_complete=complete_run)
@flag("--all", "Share all runs that have ended.", into="every")
@option("--with GROUP", "Let the members of this Unix group read the runs.", unset="none",
        into="group")  # fmt: skip
def command(runs: tuple[str, ...], every: bool, group: str | None) -> None:
    """Copy RUNS into the folder TEHO_SHARED, so that the members of GROUP can read the copies.

    First set the variable TEHO_SHARED to a folder that all members of your project can enter. The
    recordings themselves stay private. The output of the program (--keep-output) is not copied.
    Without RUNS, list what you share. `teho unshare` deletes the copies.

    Reads: the recordings in TEHO_HOME.

    Writes: copies of the recordings in TEHO_SHARED.

    Network: not used.
    """
    from teho.config.settings import load_settings
    from teho.store.index import find_run, list_runs
    from teho.store.share import copies, groups_of_runs, own_groups, share

    shared = shared_folder()
    if not runs and not every:
        if group:
            raise InputError(
                f"--with {group} without runs", "runs, or --all", "`teho list` shows the runs"
            )
        found = groups_of_runs(copies(shared))
        for run_id, groups in found.items():
            click.echo(f"{run_id}  shared with {', '.join(groups)}")
        if not found:
            say(f"you share no runs in {shared}")
        return
    if runs and every:
        raise InputError("--all cannot be used together with runs", "one of them")
    if not group:
        raise InputError("--with is missing", f"one of your groups: {', '.join(own_groups())}")
    home = load_settings().home_directory
    if every:
        chosen = [path for path, run in list_runs(home) if run is not None and run.end is not None]
    else:
        chosen = list(dict.fromkeys(find_run(run, home) for run in runs))
    done = 0
    for path in chosen:
        try:
            share(path, shared, group)
        except RecordingError as error:
            say(str(error))
            continue
        done += 1
    if done:
        say(f"the members of {group} can read {counted(done, 'run')} in {shared}")
    if done < len(chosen):
        raise click.exceptions.Exit(2)


def shared_folder() -> Path:
    """Return the folder of the project.

    Raises:
        InputError: it is not set.
    """
    from teho.config.settings import expanded, load_settings

    shared = load_settings().shared
    if not shared:
        raise InputError(
            "TEHO_SHARED is not set",
            "a folder that the members of your project can enter",
            "`export TEHO_SHARED=/path/of/the/project/teho`, or the setting `shared` in "
            "~/.config/teho/config.toml",
        )
    return expanded(shared)
