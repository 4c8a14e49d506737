"""`teho top`: a run while it goes on."""

from __future__ import annotations

import time

import click

from teho.cli.complete import complete_run
from teho.cli.declare import flag, plain_command
from teho.cli.output import Output

__all__ = ["command"]

_FRESH_S = 1.0
"""How long one frame waits for samples that are newer than the recording."""


@plain_command("""\
  teho top
  teho top last --once
  teho top 4711 --once""")
@click.argument("run", default="last", shell_complete=complete_run)
@flag("--once", "Print the present values once as text, and end.")
def command(run: str, once: bool) -> None:
    """Show all nodes and GPUs of RUN while it goes on.

    Reads: the recording.

    Writes: a small file in the recording, so that its recorders send their samples.

    Network: the recorders of the run connect to this command.
    """
    from teho.explain.now import nodes_now
    from teho.observe.viewer import Viewer
    from teho.show.build.top import top_document
    from teho.show.loaded import LoadedRun

    loaded = LoadedRun.open(run)
    viewer = Viewer(loaded.directory, loaded.run.nodes)
    try:
        viewer.poll(_FRESH_S)
        nodes = nodes_now(loaded.run, viewer.newest, time.monotonic())
    finally:
        viewer.close()
    report = loaded.view_with(plots=False)
    Output("text", None, "default").show(top_document(report, nodes))
