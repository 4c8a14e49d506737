"""`teho log`: a recording in TensorBoard, Weights & Biases, MLflow or Trackio."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.complete import complete_run
from teho.cli.declare import flag, option, plain_command
from teho.errors import InputError, TehoError

if TYPE_CHECKING:
    from teho.show.loaded import LoadedRun
    from teho.show.trackers.tracker import Tracker, Wish

__all__ = ["command"]

_PERIOD_S = 15.0
"""Time between two readings of a run that continues: recorders write every 10 s."""


@plain_command("""\
  teho log --to tensorboard -o runs last
  teho log --to wandb --project cats last
  WANDB_MODE=offline teho log --to wandb 4711
  teho log --to mlflow --into 3f9c2e… last
  teho log --to tensorboard --follow 4711 &""")
@click.argument("run", default="last", shell_complete=complete_run)
@option(
    "--to",
    "Log to this tracker.",
    into="name",
    required=True,
    type=click.Choice(["tensorboard", "wandb", "mlflow", "trackio"]),
)
@option(
    "--project NAME",
    "Use this project, or this experiment of MLflow.",
    unset="the tracker's own setting, else teho",
)
@option(
    "--into ID",
    "Add to this run of the tracker, such as the run of the training.",
    unset="a new run",
)
@option(
    "-o --output FOLDER",
    "Write into this folder, for tensorboard.",
    into="folder",
    type=click.Path(file_okay=False, path_type=Path),
    unset="runs",
)
@flag("--follow", "Log until the run ends; without it, log what is recorded so far.")
def command(
    run: str, name: str, project: str | None, into: str | None, folder: Path | None, follow: bool
) -> None:
    """Log the recording of RUN to TensorBoard, Weights & Biases, MLflow or Trackio.

    Logs the metrics of all nodes and GPUs over time, the findings, the figures of the report, and
    the report as a page and as JSON. All names begin with `teho/`. A long run has fewer points than
    samples: as many as the plots of the report.

    TensorBoard needs no package. For the others, their package must be installed in the environment
    that has Teho, and their own settings apply, such as WANDB_MODE or MLFLOW_TRACKING_URI.

    Reads: the recording.

    Writes: for tensorboard, the -o folder; otherwise what the tracker's package writes.

    Network: for tensorboard, not used; otherwise what the tracker's package uses.
    """  # fmt: skip
    from teho.show.loaded import LoadedRun
    from teho.show.trackers.tracker import Wish

    is_service = name != "tensorboard"
    useless = {"-o": is_service and folder, "--project": not is_service and project,
               "--into": not is_service and into}  # fmt: skip
    for option_name, given in useless.items():
        if given:
            raise InputError(
                f"{option_name} has no effect with --to {name}",
                next_step="leave it out"
                if is_service
                else "give the folder in which the program logs with `-o FOLDER`",
            )
    loaded = LoadedRun.open(run)
    wish = Wish(project or "", into or "", folder)
    try:
        # Some packages print; the standard output is for results.
        with contextlib.redirect_stdout(sys.stderr):
            seen = _log(loaded, name, wish, follow=follow)
        say(seen)
    except TehoError:
        raise
    except Exception as error:  # what the packages raise has no common class
        raise InputError(f"--to {name}: {' '.join(str(error).split()) or repr(error)}") from error
    for problem in loaded.problems:
        say(problem)


def _log(loaded: LoadedRun, name: str, wish: Wish, *, follow: bool) -> str:
    """Log a run, and return how to see it; Ctrl-C ends the following, not the logging."""
    import importlib

    from teho.model.run import RunState
    from teho.show.loaded import LoadedRun
    from teho.show.trackers.tracker import TRACKERS, points_of

    tracker: Tracker = importlib.import_module(TRACKERS[name]).TRACKER(loaded.run, wish)
    last_s = -math.inf
    while True:
        is_running = follow and loaded.state is RunState.RUNNING
        until_s = loaded.summary.elapsed_s if is_running else math.inf
        points = list(points_of(loaded.view, last_s, until_s))
        if points:
            tracker.add(points)
            last_s = points[-1].elapsed_s
        if not is_running:
            return _ended(tracker, loaded)
        try:
            time.sleep(_PERIOD_S)
        except KeyboardInterrupt:
            follow = False
        loaded = LoadedRun.open(str(loaded.directory))


def _ended(tracker: Tracker, loaded: LoadedRun) -> str:
    """Log the findings and the report."""
    from tempfile import TemporaryDirectory

    from teho.show.html.page import render_html
    from teho.show.json.report import render_json

    with TemporaryDirectory(prefix="teho-log-") as folder:
        files = {}
        for name, text in (
            ("teho-report.html", render_html(loaded.view)),
            ("teho-report.json", render_json(loaded.view)),
        ):
            files[name] = Path(folder) / name
            files[name].write_text(text, encoding="utf-8")
        return tracker.end(loaded.view, files)
