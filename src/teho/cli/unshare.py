"""`teho unshare`: delete the copies that `teho share` made."""

from __future__ import annotations

import click

from teho.cli import say
from teho.cli.declare import flag, option, plain_command
from teho.cli.share import shared_folder
from teho.errors import InputError, RunNotFoundError
from teho.units import counted

__all__ = ["command"]


@plain_command("""\
  teho unshare 20261120-101944-train-k3f9
  teho unshare --all
  teho unshare --all --with project_2001234""")
@click.argument("runs", nargs=-1)
@flag("--all", "Delete all your copies.", into="every")
@option("--with GROUP", "Delete only the copies for this group.", unset="all groups", into="group")
def command(runs: tuple[str, ...], every: bool, group: str | None) -> None:
    """Delete your copies of RUNS in the folder TEHO_SHARED. The recordings themselves stay.

    RUNS are ids of runs that you share, unique beginnings of these ids, or last (the newest of
    these runs). `teho share` lists these runs. Other users who have read a run may have made
    copies.

    Reads: your copies in TEHO_SHARED.

    Writes: no files; deletes your copies in TEHO_SHARED.

    Network: not used.
    """
    from teho.store.share import copies, unshare

    shared = shared_folder()
    if bool(runs) == every:
        raise InputError(
            "it is not clear what to delete",
            "either runs or --all",
            "`teho share` lists your copies",
        )
    known = dict.fromkeys(
        copy.directory.name for copy in copies(shared) if group in {None, copy.group}
    )
    chosen = list(known)
    if not every:
        chosen = [_named(run, chosen, str(shared)) for run in runs]
    removed = [path for run_id in chosen for path in unshare(run_id, shared, group or "")]
    say(f"deleted {counted(len(removed), 'shared run')}")


def _named(reference: str, known: list[str], shared: str) -> str:
    if reference == "last" and known:
        return max(known)
    fitting = [run_id for run_id in known if run_id == reference] or [
        run_id for run_id in known if run_id.startswith(reference)
    ]
    if len(fitting) != 1:
        raise RunNotFoundError(
            f"{len(fitting) or 'none'} of your shared runs in {shared} "
            f"{'begin' if len(fitting) > 1 else 'begins'} with {reference!r}",
            "the id of a run that you share",
            "`teho share` lists your shared runs",
        )
    return fitting[0]
