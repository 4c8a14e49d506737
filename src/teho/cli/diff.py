"""`teho diff`: two runs, or two traces, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from teho.cli.complete import complete_run
from teho.cli.declare import flag, plain_command
from teho.cli.output import Output, output_options
from teho.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["command"]


@plain_command("""\
  teho diff baseline last
  teho diff baseline last --why
  teho diff 20261120-1019 20261121-0907 -o diff.html
  teho diff before.json.gz after.json.gz
  teho diff --traces baseline last""")
@click.argument("first", shell_complete=complete_run)
@click.argument("second", default="last", shell_complete=complete_run)
@flag("--traces", "Compare the newest traces of the two runs.")
@output_options()
def command(first: str, second: str, traces: bool, output: Output) -> None:
    """Compare the runs FIRST and SECOND: time, step rate, figures, findings, other differences.

    If you leave out SECOND, FIRST is compared with the newest run. Two single runs do not prove
    which program is faster: `teho compare` measures several runs.

    If FIRST or SECOND is a trace of `teho profile`, or a folder with the traces of all ranks, Teho
    compares the parts of a step, the kernels and the operators. With --traces, Teho compares the
    traces of two runs.

    Reads: the two recordings, or the traces.

    Writes: only the -o file.

    Network: not used.
    """
    from teho.cli.traces import traces_or_run

    found = [traces_or_run((reference,)) for reference in (first, second)]
    if traces or any(isinstance(one, tuple) for one in found):
        _diff_traces((first, second), found, output)
        return
    from teho.show.build.diff import diff_document
    from teho.show.loaded import LoadedRun

    runs = [LoadedRun.open(reference) for reference in (first, second)]
    if runs[0].directory == runs[1].directory:
        raise InputError(
            f"{first} and {second} are the same run", "two different runs", "`teho list`"
        )
    output.show(diff_document(*runs))


def _diff_traces(
    names: tuple[str, str], found: Sequence[tuple[Path, ...] | Path], output: Output
) -> None:
    from teho.cli.progress import hint_if_slow
    from teho.profile.summary import read_traces
    from teho.show.build.profile_diff import trace_diff_document

    paths = [_traces_of(name, one) for name, one in zip(names, found, strict=True)]
    if {one.resolve() for one in paths[0]} == {one.resolve() for one in paths[1]}:
        raise InputError(
            f"{names[0]} and {names[1]} are the same trace",
            "two different traces",
            "`teho profile --steps 20:25 -- COMMAND` records another trace",
        )
    with hint_if_slow("reading the traces…"):
        first, second = map(read_traces, paths)
    output.show(trace_diff_document(first, second, names))


def _traces_of(name: str, found: tuple[Path, ...] | Path) -> Sequence[Path]:
    """Return the traces that the user means, or the newest traces of a run."""
    from teho.store.traces import newest_traces

    paths = found if isinstance(found, tuple) else newest_traces(found)
    if not paths:
        raise InputError(
            f"the run {name} has no trace",
            "a run that `teho profile` recorded, or the file of a trace",
            "`teho profile --steps 20:25 -- COMMAND` records a trace",
        )
    return paths
