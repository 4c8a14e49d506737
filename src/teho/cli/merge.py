"""`teho merge`: join the parts of a recording that nodes wrote to their own disks."""

from __future__ import annotations

import click

from teho.cli import say
from teho.cli.complete import complete_run
from teho.cli.declare import plain_command
from teho.errors import InputError

__all__ = ["command"]


@plain_command("""\
  teho merge last ./part-of-r01g02
  scp -r r01g02:.local/share/teho/runs/20261120-101944-train-k3f9 part-of-r01g02""")
@click.argument("parts", metavar="RUN…", nargs=-1, required=True, shell_complete=complete_run)
def command(parts: tuple[str, ...]) -> None:
    """Join the parts of one recording from several nodes, and print the id of the new run.

    Each RUN is a run, or the directory of a run that was copied from a node to this machine.

    Reads: the parts, without changing them.

    Writes: a new recording in TEHO_HOME.

    Network: not used.
    """
    from teho.config.settings import load_settings
    from teho.explain.step import absent_hosts
    from teho.store.index import find_run
    from teho.store.merge import merge_parts
    from teho.store.read import read_run

    home = load_settings().home_directory
    directories = list(dict.fromkeys(find_run(part, home) for part in parts))
    if len(directories) < 2:
        raise InputError(
            "teho merge: one part", "two or more parts", "name the runs or directories to join"
        )
    merged = merge_parts(directories, home)
    run = read_run(merged)
    if absent := absent_hosts(run):
        nodes = len(run.nodes) + len(absent)
        say(
            f"the parts of the recording from {len(absent)} of {nodes} nodes are still missing: "
            f"{', '.join(absent)}"
        )
    click.echo(run.id)
