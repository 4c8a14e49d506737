"""`teho profile`: record steps with the framework's own profiler, and explain its traces."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import click

from teho.cli.declare import option, together
from teho.cli.output import Output, output_options
from teho.cli.progress import hint_if_slow
from teho.errors import InputError

__all__ = ["command"]

_COMMAND = "teho.profile.command"
_EXAMPLES = """\
\b
Examples:
  teho profile --steps 20:25 -- python train.py
  srun teho profile --steps 20:25 --ranks all -- python train.py
  teho profile --window 2s --with stack -- python serve.py
  teho profile 4711
  teho profile last -o trace.html
  teho profile trace.json.gz --why
  teho profile log/rank*.pt.trace.json.gz
  teho profile log"""


class _Command(click.Command):
    """Takes everything after `--` as the program, so that traces and options may be mixed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments before `--`, and keep the program."""
        if "--" in args:
            place = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the words of the first line of the help."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND…]"]


_recording_options = together(
    option("--steps FIRST:END", "Record these steps, without the step END: 20:25 are the steps 20 "
           "to 24. For a run that is still running, you can also give only a number: Teho records "
           "this number of steps.",
           unset="5, for a run that is still running"),
    option("--window TIME", "Record this length of time, instead of steps.",
           unset="2s, for a COMMAND without --steps"),
    option("--after TIME", "With --window, begin to record this long after the program has "
           "imported the framework.",
           unset="10s, or 0s for a run that is still running"),
    option("--with LIST", "Also record some of these: stack, shapes, memory. The program is then "
           "slower, and the trace is larger. Or give one of these instead: nsys (record with "
           "Nsight Systems), rocprof (record with rocprofv3), range (only mark the steps, for "
           "another profiler that runs this command).",
           unset="none of them", into="extras"),
    option("--ranks LIST", "Record these ranks: one (rank 0), all, or a list such as 0,3.",
           unset="one; for a run that is still running: the slowest rank and the median rank, if "
                 "they differ"),
    option("--max-time TIME", "Stop the profiler after this time.", default="60s"),
    option("--max-size SIZE", "Do not store a trace that is larger than this before compression.",
           default="512MiB"),
    option("--trace-to PATH", "Copy the traces: to a folder for TensorBoard, or to a file for "
           "ui.perfetto.dev.", unset="only into the recording", into="to",
           type=click.Path(path_type=Path)),
)  # fmt: skip


@click.command(cls=_Command, epilog=_EXAMPLES)
@click.argument("traces", metavar="[FILE… | FOLDER | RUN]", nargs=-1)
@_recording_options
@output_options()
def command(
    traces: tuple[str, ...],
    steps: str | None,
    window: str | None,
    after: str | None,
    extras: str | None,
    ranks: str | None,
    max_time: str,
    max_size: str,
    to: Path | None,
    output: Output,
) -> None:
    """Record steps with the framework's profiler, and explain why the GPU was idle in these steps.

    With COMMAND, Teho runs the unchanged program, and starts PyTorch's profiler for the given steps
    only. RUN is a recorded run, or the number of a job. If the run is still running, Teho records
    the next steps. If the run has ended, Teho explains the newest traces of this run. FILE is a
    trace that torch.profiler wrote, as .json or .json.gz. For a program with several ranks, give
    the files of all ranks, or their FOLDER: then Teho also says for which rank the other ranks
    waited.

    To write a trace without Teho, in the folder `traces`, add these lines to the training loop,
    with `P = torch.profiler`:

    \b
      with P.profile(
          schedule=P.schedule(wait=20, warmup=5, active=3, repeat=1),
          on_trace_ready=P.tensorboard_trace_handler("traces"),
      ) as profiler:
          for batch in loader:
              train_one_step(batch)
              profiler.step()

    With `with_stack=True`, the trace also has the source lines.

    Reads: the traces; with RUN, the recording.

    Writes: the -o file and the --trace-to files; with COMMAND or RUN, the traces in the recording.

    Network: with COMMAND, the same as `teho run`.
    """  # noqa: D301 - click keeps the lines after the character \b
    argv = click.get_current_context().meta.get(_COMMAND)
    recording: dict[str, Any] = {
        "steps": steps, "window": window, "after": after, "extras": extras, "ranks": ranks,
        "max_time": max_time, "max_size": max_size,
    }  # fmt: skip
    if argv is not None:
        if traces:
            raise InputError(
                f"{traces[0]!r} before `--` is not an option", "only options before `-- COMMAND`",
                "`teho profile --steps 20:25 -- python train.py`",
            )  # fmt: skip
        if not argv:
            raise click.UsageError("Missing COMMAND after '--'.")
        from teho.cli.profile_options import plan_of
        from teho.cli.profile_run import profile_command

        profile_command(argv, plan_of(**recording, is_running=False), output, to)
        return
    if not traces:
        raise click.UsageError("Missing argument 'FILE…', 'FOLDER', 'RUN' or '-- COMMAND…'.")
    given = next((f"--{name}" for name in ("steps", "window", "after", "ranks")
                  if recording[name] is not None), "--with" if extras else "")  # fmt: skip
    from teho.cli.traces import traces_or_run

    directory = traces_or_run(traces)
    if isinstance(directory, tuple):
        if given:
            raise InputError(
                f"{given} has no effect on the trace {traces[0]}",
                "a COMMAND or a RUN that is still running",
                "`teho profile --steps 20:25 -- python train.py`",
            )
        _explain(directory, output, to)
        return
    from teho.cli.profile_run import profile_running, show_recorded
    from teho.cli.top_job import is_running

    if is_running(directory):
        from teho.cli.profile_options import plan_of

        profile_running(directory, plan_of(**recording, is_running=True), output, to)
        return
    if given:
        raise InputError(
            f"{given} needs a run that is still running, but {directory.name} has ended",
            next_step=f"`teho profile {traces[0]}` explains the newest traces of this run",
        )
    show_recorded(directory, None, output, to)


def _explain(files: tuple[Path, ...], output: Output, to: Path | None) -> None:
    from teho.cli.traces import say_if_large
    from teho.profile.hand_over import copy_traces
    from teho.profile.summary import read_traces
    from teho.show.build.profile import profile_document

    say_if_large(files)
    gc.disable()  # a trace has millions of objects, and most of them are needed or gone at once
    with hint_if_slow("reading the traces…"):
        profiled = read_traces(files)
        commands = tuple(copy_traces(files, to)) if to else ()
    output.show(profile_document(profiled, commands), profiled)
