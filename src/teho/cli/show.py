"""`teho show`: the description of a recording, or its directory."""

from __future__ import annotations

import click

from teho.cli.complete import complete_run
from teho.cli.declare import flag, plain_command
from teho.cli.terminal import print_json

__all__ = ["command"]


@plain_command("""\
  teho show last
  cd "$(teho show last --path)"
  duckdb -c "select * from '$(teho show last --path)/samples/*.parquet'" """)
@click.argument("run", default="last", shell_complete=complete_run)
@flag("--path", "Print only the directory of the recording.", into="only_path")
def command(run: str, only_path: bool) -> None:
    """Print the description of RUN as JSON: command, job, nodes, devices, missing signals.

    Reads: the recording.

    Writes: no files.

    Network: not used.
    """
    from teho.config.settings import load_settings
    from teho.store.index import find_run
    from teho.store.read import read_run

    directory = find_run(run, load_settings().home_directory)
    if only_path:
        click.echo(str(directory))
        return
    print_json(read_run(directory))
