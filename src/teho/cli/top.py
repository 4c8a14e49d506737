"""`teho top`: a run while it is running."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli.complete import complete_run
from teho.cli.declare import flag, option, plain_command
from teho.config.settings import load_settings
from teho.errors import InputError, RunNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from teho.cli.top_job import JobRecording
    from teho.config.settings import Settings
    from teho.model.document import Report
    from teho.show.top.frame import Source
    from teho.show.top.live import LiveSource

__all__ = ["command"]

_FIRST_S = 0.5
"""How long the first printed frame waits for samples that are newer than the recording."""
_ONCE_S = 3.0
"""How long it waits if nothing else is printed: the rows of the recording may be 10 s old."""
_PERIOD_S = 1.0
_RECENT = 100
"""Runs that are read to find those that are running."""
_LAST_S = 2.0
"""Time after a signal within which the command ends by itself."""
_SPEED = 60.0


@plain_command("""\
  teho top
  teho top baseline
  teho top 4711 --once
  teho top --format json | jq '.tables[0].rows'
  teho top baseline --replay --speed 600""")
@click.argument("run", required=False, shell_complete=complete_run)
@flag("--once", "Print the current values once, then exit.")
@option("--format",
        "Set the output: text prints the values once, json prints one document per line until the "
        "run ends.",
        into="form", unset="a screen, or text if there is no terminal that can move its cursor",
        type=click.Choice(["text", "json"]))  # fmt: skip
@flag("--replay", "Show a finished run as it looked while it ran.")
@option("--speed FACTOR", "Show this many seconds of the run in each second of --replay.",
        unset="60", type=click.FloatRange(0, min_open=True))  # fmt: skip
def command(
    run: str | None, once: bool, form: str | None, replay: bool, speed: float | None
) -> None:
    """Show all nodes and GPUs of RUN while it is running.

    RUN is the id of a run, the first characters of this id, the id of a job, a name, a directory,
    or last. Without RUN, Teho shows the run that is still running, or with --replay the last run.
    If RUN is the number of a running Slurm job that Teho does not record, Teho records this job
    until you quit. If this is not possible, Teho shows what the scheduler reports of the job. On
    the screen, press ? for an explanation of all keys and values.

    Reads: the recording. If the variables of the job do not have its time limit, Teho asks the
    scheduler once for this limit.

    Writes: a small file in the recording, so that the recorders send their samples; for a job that
    Teho did not record, a recording.

    Network: the recorders of the run connect to this command.
    """
    if speed is not None and not replay:
        raise InputError(f"--speed {speed:g} works only with --replay", next_step="add `--replay`")
    if replay and (once or form):
        raise InputError(
            f"--replay cannot be used together with {'--once' if once else '--format'}",
            "one of them",
            f"`teho report {run or 'last'}` reports on a finished run",
        )
    settings = load_settings()
    from teho.store.index import find_run

    is_screen = form is None and not once and _has_cursor()
    if replay and not is_screen:
        raise InputError("--replay needs a terminal for input and output")
    if is_screen:
        _needs_textual()
    # A terminal that is closed sends SIGHUP: the lease must be given back then too.
    ending = _Ending()
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, ending.end)
    job: JobRecording | None = None
    source: Source
    if replay:
        from teho.show.top.replay import ReplaySource

        directory = find_run(run or "last", settings.home_directory)
        source = ReplaySource(directory, settings, speed or _SPEED)
    elif run is None:
        source = _open(_running(settings.home_directory), settings, is_screen=is_screen)
    else:
        from teho.cli.top_job import open_run

        def opens(directory: Path) -> LiveSource:
            return _open(directory, settings, is_screen=is_screen)

        source, job = open_run(run, settings, opens, is_screen=is_screen)
    if job is not None:
        ending.closes.append(job.close)
    ending.closes.append(source.close)
    try:
        try:
            if is_screen:
                from teho.show.top.app import TopApp

                TopApp(source).run()
            else:
                _print(_documents(source, once=once or form != "json"), form or "text")
        finally:
            source.close()
    finally:
        if job is not None:
            job.close()


def _has_cursor() -> bool:
    """Return whether the input and the output are a terminal that can move its cursor."""
    is_terminal = sys.stdout.isatty() and sys.stdin.isatty()
    return is_terminal and os.environ.get("TERM", "dumb") != "dumb"


def _open(directory: Path, settings: Settings, *, is_screen: bool) -> LiveSource:
    """Open a recording; `is_screen`: whether the frames are shown one after the other."""
    from teho.show.top.live import LiveSource

    return LiveSource(directory, settings, waits=not is_screen)


class _Ending:
    """Ends the command by a signal, also if the terminal is gone.

    If the terminal is closed, Textual's thread for the keys reads it again and again, and the main
    thread waits for this thread forever.
    """

    def __init__(self) -> None:
        self.closes: list[Callable[[], None]] = []
        """What gives back the lease and ends the recording of a job, in the order of opening."""

    def end(self, number: int, _: object) -> None:
        """Raise SystemExit; if the process has not ended soon, end it."""
        threading.Thread(target=self._end_at_last, args=(number,), daemon=True).start()
        raise SystemExit(128 + number)

    def _end_at_last(self, number: int) -> None:
        time.sleep(_LAST_S)
        for close in reversed(self.closes):
            with contextlib.suppress(Exception):  # the process ends in any case
                close()
        os._exit(128 + number)


def _running(home: Path) -> Path:
    """Return the run that is running; if there are several, the one that the user chooses."""
    from teho.cli.top_job import is_running
    from teho.store.index import newest_runs

    running = [
        (directory, run)
        for directory, run in islice(newest_runs(home), _RECENT)
        if run is not None and run.end is None and is_running(directory)
    ]
    if len(running) == 1:
        return running[0][0]
    if not running:
        raise RunNotFoundError(
            "no run is running",
            "",
            "`teho top last --replay` replays the last run",
        )
    names = [f"{run.id}{f' ({run.name})' if run.name else ''}" for _, run in running]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RunNotFoundError(
            f"{len(names)} runs are running: {', '.join(names)}", "one of these runs as RUN", ""
        )
    for number, name in enumerate(names, 1):
        click.echo(f"{number:>3}  {name}", err=True)
    chosen = click.prompt("Which run", type=click.IntRange(1, len(names)), default=1, err=True)
    return running[int(chosen) - 1][0]


def _needs_textual() -> None:
    if find_spec("textual") is None:
        raise InputError(
            "the package textual is not installed",
            "`pip install 'teho[top]'`",
            "`teho top --once` prints the values without this package",
        )


def _documents(source: Source, *, once: bool) -> Iterator[Report]:
    """Yield the document of each frame, until the run has ended."""
    from teho.show.build.top import has_old_rows, top_document

    shown: Report | None = None
    end_s = time.monotonic() + _FIRST_S
    latest_s = time.monotonic() + _ONCE_S
    while True:
        while (left_s := end_s - time.monotonic()) > 0:
            source.poll(reads_all=True)
            time.sleep(min(0.05, left_s))
        frame = source.frame()
        if once and has_old_rows(frame.nodes) and time.monotonic() < latest_s:
            end_s = time.monotonic() + _FIRST_S
            continue
        if frame.answer is None:
            yield top_document(frame.headed, frame.nodes, frame.notes, frame.owner)
        elif frame.report is not shown:  # the scheduler is asked less often
            from teho.show.top.accounted import accounted_document

            yield accounted_document(frame)
        shown = frame.report
        if once or frame.report.state != "running":
            return
        end_s = time.monotonic() + _PERIOD_S


def _print(documents: Iterator[Report], form: str) -> None:
    import msgspec

    from teho.cli.output import Output
    from teho.show.json.report import render_json

    for document in documents:
        if form == "json":
            click.echo(msgspec.json.format(render_json(document), indent=-1))
            sys.stdout.flush()
        else:
            # The findings would fill the screen, and the verdict names the first of them.
            values = msgspec.structs.replace(document, findings=(), lists=())
            Output("text", None, "why").show(values)
