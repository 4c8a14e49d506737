"""`teho top`: a run while it goes on."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec

import click

from teho.cli.complete import complete_run
from teho.cli.declare import flag, option, plain_command
from teho.cli.output import Output
from teho.errors import InputError

__all__ = ["command"]

_FRESH_S = 0.5
"""How long one frame waits for samples that are newer than the recording."""


@plain_command("""\
  teho top
  teho top baseline
  teho top 4711 --once""")
@click.argument("run", default="last", shell_complete=complete_run)
@flag("--once", "Print the present values once as text, and end. This is also the default if the "
                "output is not a terminal.")
@flag("--replay", "Play a finished run as it was.")
@option("--speed FACTOR", "Seconds of the run in each second of --replay.",
        type=click.FloatRange(0, min_open=True), default=60)
def command(run: str, once: bool, replay: bool, speed: float) -> None:
    """Show all nodes and GPUs of RUN while it goes on.

    RUN is the id of a run, the first characters of this id, the id of a job, a name, a directory,
    or last.

    Reads: the recording.

    Writes: a small file in the recording, so that its recorders send their samples.

    Network: the recorders of the run connect to this command.
    """
    from teho.config.settings import load_settings
    from teho.store.index import find_run

    settings = load_settings()
    directory = find_run(run, settings.home_directory)
    if once or not sys.stdout.isatty():
        from teho.explain.now import nodes_now
        from teho.observe.viewer import Viewer
        from teho.show.build.top import top_document
        from teho.show.loaded import LoadedRun

        loaded = LoadedRun(directory, settings)
        viewer = Viewer(directory, loaded.run.nodes)
        try:
            viewer.poll(_FRESH_S)
            nodes = nodes_now(loaded.run, viewer.newest, time.monotonic())
        finally:
            viewer.close()
        report = loaded.view_with(plots=False)
        Output("text", None, "default").show(top_document(report, nodes))
        return
    if find_spec("textual") is None:
        raise InputError(
            "the package textual is not installed",
            "`pip install 'teho[top]'`",
            "`teho top --once` prints the values once without this package",
        )
    from teho.show.top.app import TopApp
    from teho.show.top.live import LiveSource
    from teho.show.top.replay import ReplaySource

    source = ReplaySource(directory, settings, speed) if replay else LiveSource(directory, settings)
    try:
        TopApp(source).run()
    finally:
        source.close()
