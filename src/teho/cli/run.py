"""`teho run`: run a program unchanged and record what it uses."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from teho.cli import say
from teho.config.settings import Settings, load_settings, parse_period
from teho.errors import InputError
from teho.observe.supervisor import CannotStart, Outcome, Supervisor, die_like
from teho.schedulers.task import Task, is_step, read_task

if TYPE_CHECKING:
    from teho.observe.recording import Recording
    from teho.observe.seat import Seat

__all__ = ["command"]

T = TypeVar("T")


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  teho run -- python train.py --epochs 3
  teho run --every 200ms --name baseline -- ./solver input.nml
  teho run --tag dataset=cifar10 --tag workers=4 -- python train.py
  srun teho run -- python train.py""",
)
@click.option("--every", metavar="TIME", help="Time between two samples, such as 1s or 200ms.")
@click.option("--name", default="", help="A name to find the run by; need not be unique.")
@click.option("--tag", "tags", metavar="KEY=VALUE", multiple=True, help="Kept with the run.")
@click.option(
    "--report",
    "level",
    type=click.Choice(["none", "short", "full"]),
    help="How much to print at the end, on stderr.  [default: short]",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing at all; still record.")
@click.argument("argv", metavar="-- COMMAND…", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    every: str | None,
    name: str,
    tags: tuple[str, ...],
    level: str | None,
    quiet: bool,  # noqa: FBT001 - click's signature
    argv: tuple[str, ...],
) -> None:
    """Run COMMAND unchanged, record every device of this node, and report at the end.

    COMMAND keeps its input, output, terminal, signals and exit code; what goes wrong
    with the recording is a line in the report.
    """
    settings = load_settings()
    period_s = parse_period(every, "--every") if every else settings.period_s
    labels = dict(_split_tag(tag) for tag in tags)
    if name == "last":
        raise InputError("--name last", "another name: `last` is the newest run")
    shown = "none" if quiet else (level or settings.report)

    supervisor = Supervisor()
    try:
        supervisor.start(argv, os.environ)
    except CannotStart as error:
        say(str(error))
        sys.exit(error.exit_code)
    task = _protected(supervisor, "this task is recorded alone", _read_task) or Task(started_by="")
    seat = None
    if is_step(task) and task.local_size > 1:
        seat = _protected(supervisor, "this task records for itself", lambda: _take_seat(task))
    supervisor.start_recorder(
        partial(_record, seat=seat),
        keep=(seat.descriptor,) if seat else (),
        shared=seat is not None,
    )
    recording = None
    if seat is None or seat.records:
        recording = _protected(
            supervisor,
            "nothing could be recorded",
            lambda: _begin(
                supervisor, settings, argv, name=name, tags=labels, period_s=period_s, task=task
            ),
        )
    if seat:
        seat.leave()
    tells = recording is not None and recording.began
    if recording and tells and not quiet and sys.stderr.isatty():
        say(f"recording {recording.run.id}, a sample every {period_s:g} s")
    outcome = supervisor.wait()
    supervisor.finish_recording(_Progress(quiet=quiet))
    _protected(
        supervisor,
        "the end could not be recorded",
        lambda: _end(supervisor, settings, recording, task, outcome),
    )
    if shown == "none" or (is_step(task) and not tells):
        die_like(outcome)
    shown_whole = _protected(
        supervisor,
        "the report failed",
        lambda: _print_report(recording, settings, outcome, full=shown == "full"),
    )
    if not shown_whole:
        for _, trouble in outcome.troubles:
            with contextlib.suppress(OSError):
                say(trouble)
    die_like(outcome)


def _split_tag(tag: str) -> tuple[str, str]:
    key, sign, value = tag.partition("=")
    if not sign or not key:
        raise click.BadParameter(f"{tag!r} is not KEY=VALUE.", param_hint="'--tag'")
    return key, value


def _protected(supervisor: Supervisor, what: str, action: Callable[[], T]) -> T | None:
    """Do something that must never hurt the program; a failure is a line of the report."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - the program comes first, whatever it is
        supervisor.trouble(f"{what}: {error}")
        return None


def _read_task() -> Task:
    return read_task(os.environ, os.uname().nodename)


def _take_seat(task: Task) -> Seat:
    from teho.observe.recording import node_name
    from teho.observe.seat import Seat

    return Seat(f"{task.key} {node_name(task)}", task.rank, task.local_size)


def _begin(
    supervisor: Supervisor,
    settings: Settings,
    argv: tuple[str, ...],
    *,
    name: str,
    tags: dict[str, str],
    period_s: float,
    task: Task,
) -> Recording:
    """Write down what runs, and tell the recorder."""
    from msgspec import to_builtins

    from teho.observe.recording import begin_recording

    recording = begin_recording(
        settings.home_directory,
        argv,
        supervisor.started_s,
        name=name,
        tags=tags,
        period_s=period_s,
        task=task,
    )
    if recording.plan:
        supervisor.send_plan(to_builtins(recording.plan))
    return recording


def _record(control: int, back: int, program: int, seat: Seat | None) -> None:
    """In the recorder's process: what it needs is loaded there alone."""
    if seat and not seat.records:
        from teho.observe.seat import stand_by

        stand_by(control, program, seat)
        return
    from teho.observe.recorder import record

    record(control, back, program, seat)


def _end(
    supervisor: Supervisor,
    settings: Settings,
    recording: Recording | None,
    task: Task,
    outcome: Outcome,
) -> None:
    from teho.observe.recording import end_recording, end_task, ended

    if is_step(task):
        run = recording.run if recording else None
        end_task(settings.home_directory, task, run, supervisor, outcome)
    elif recording:
        end_recording(recording.directory, ended(recording.run, outcome))


def _print_report(
    recording: Recording | None, settings: Settings, outcome: Outcome, *, full: bool
) -> bool:
    """Print the report; return whether there was a recording to report on."""
    if recording is None:
        return False
    from teho.cli.report import print_text
    from teho.observe.recording import await_others, ended
    from teho.show.loaded import LoadedRun

    run = recording.run
    if run.has_tasks:
        await_others(recording, outcome)
    else:
        run = ended(run, outcome)
    loaded = LoadedRun(recording.directory, settings, run)
    print_text(loaded.view_with(plots=False), sys.stderr, full=full)
    return True


class _Progress:
    """One line on a terminal when sealing takes long enough to be noticed."""

    def __init__(self, *, quiet: bool) -> None:
        self._calls = 0
        self._shown = sys.stderr.isatty() and not quiet

    def __call__(self) -> None:
        self._calls += 1
        if self._calls == 20 and self._shown:
            say("sealing the recording…")
