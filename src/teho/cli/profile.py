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

    FILE is a trace that torch.profiler wrote, as .json or .json.gz. For a program with several
    ranks, give the files of all ranks. To write a trace in the folder `traces`, add these lines to
    the training loop, with `P = torch.profiler`:

    \b
      with P.profile(
          schedule=P.schedule(wait=20, warmup=5, active=3, repeat=1),
          on_trace_ready=P.tensorboard_trace_handler("traces"),
      ) as profiler:
          for batch in loader:
              train_one_step(batch)
              profiler.step()

    With `with_stack=True`, the trace has the source lines too.

    Reads: the traces.

    Writes: only the -o file.

    Network: not used.
    """  # noqa: D301 - click keeps the lines after the character \b
    from teho.profile.summary import read_traces

    with hint_if_slow("reading the traces…"):
        profiled = read_traces(files)
    from teho.show.build.profile import profile_document

    output.show(profile_document(profiled), profiled)
