"""`teho diff`: two runs side by side."""

from __future__ import annotations

import click

from teho.cli.complete import complete_run
from teho.cli.declare import plain_command
from teho.cli.output import Output, output_options
from teho.errors import InputError

__all__ = ["command"]


@plain_command("""\
  teho diff baseline last
  teho diff baseline last --why
  teho diff 20261120-1019 20261121-0907 -o diff.html""")
@click.argument("first", shell_complete=complete_run)
@click.argument("second", default="last", shell_complete=complete_run)
@output_options()
def command(first: str, second: str, output: Output) -> None:
    """Compare the runs FIRST and SECOND: time, step rate, figures, findings, other differences.

    If you leave out SECOND, FIRST is compared with the newest run. Two single runs do not prove
    which program is faster: `teho compare` measures several runs.

    Reads: the two recordings.

    Writes: only the -o file.

    Network: not used.
    """
    from teho.show.build.diff import diff_document
    from teho.show.loaded import LoadedRun

    runs = [LoadedRun.open(reference) for reference in (first, second)]
    if runs[0].directory == runs[1].directory:
        raise InputError(
            f"{first} and {second} are the same run", "two different runs", "`teho list`"
        )
    output.show(diff_document(*runs))
