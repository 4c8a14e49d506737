"""`teho profile`: what the traces of PyTorch's profiler say."""

from __future__ import annotations

from pathlib import Path

import click

from teho.cli.declare import plain_command
from teho.cli.output import Output, output_options
from teho.cli.progress import hint_if_slow

__all__ = ["command"]


@plain_command("""\
  teho profile trace.json
  teho profile trace.json.gz --why
  teho profile log/rank*.pt.trace.json.gz
  teho profile trace.json -o trace.html""")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_options()
def command(files: tuple[Path, ...], output: Output) -> None:
    """Explain a trace of PyTorch's profiler: what the GPU did in a step, and why it was idle.

    FILE is a trace that torch.profiler wrote, as .json or .json.gz. To write one, put the steps of
    the program into `with torch.profiler.profile() as profiler:`, call `profiler.step()` after
    each of about five steps, and `profiler.export_chrome_trace("trace.json.gz")` after the last
    one. With `with_stack=True`, the source lines are shown too. For a program with several ranks,
    give the files of all ranks.

    Reads: the traces.

    Writes: only the -o file.

    Network: not used.
    """
    from teho.profile.summary import read_traces

    with hint_if_slow("reading the traces…"):
        profiled = read_traces(files)
    from teho.show.build.profile import profile_document

    output.show(profile_document(profiled), profiled)
