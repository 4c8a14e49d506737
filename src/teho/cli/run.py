"""`teho run`: run a program unchanged and record what it uses."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from teho.cli import say
from teho.cli.progress import ProgressLine
from teho.cli.tag import read_tags
from teho.config.settings import load_settings, parse_period
from teho.errors import InputError
from teho.observe.job_processes import RECORDED, is_recorded, new_mark
from teho.observe.program import Outcome, die_like
from teho.observe.spool import clear, spool_of, with_probe
from teho.observe.supervisor import Supervisor
from teho.observe.wanted import Wanted
from teho.process.exec_program import CannotStart, exec_program
from teho.schedulers.task import Task, is_batch_script, is_step, read_task

if TYPE_CHECKING:
    from pathlib import Path

    from teho.experiment.window import Window
    from teho.observe.node_leader import NodeLeader
    from teho.observe.recording import Recording
    from teho.observe.remote_recorders import RemoteRecorders
    from teho.schedulers.slurm.overlap import RunningJob

__all__ = ["command"]

T = TypeVar("T")
_NO_WINDOW = "--window had no effect"


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  teho run -- python train.py --epochs 3
  teho run --every 200ms --name baseline -- ./solver input.nml
  teho run --tag dataset=cifar10 --tag workers=4 -- python train.py
  teho run --window 30s -- python train.py
  srun teho run -- python train.py
  teho run --job 4711""",
)
@click.option("--every", metavar="TIME", help="Time between two samples, such as 1s or 200ms.")
@click.option("--name", default="", help="A name to find the run by; need not be unique.")
@click.option("--tag", "tags", metavar="KEY=VALUE", multiple=True, callback=read_tags,
              help="Kept with the run.")  # fmt: skip
@click.option(
    "--report",
    "level",
    type=click.Choice(["none", "short", "full"]),
    help="How much to print at the end, on stderr.  [default: short]",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing at all; still record.")
@click.option("--window", metavar="TIME",
              help="End it, with exit code 0, once its pace was steady for so long.")  # fmt: skip
@click.option("--keep-output", is_flag=True,
              help="Keep the first MiB that it prints on stdout with the recording; stdout is a "
              "pipe then, no terminal.")  # fmt: skip
@click.option("--alone", is_flag=True, help="In a job: record this program, and no more of it.")
@click.option("--job", metavar="JOB", help="Record a job of Slurm's that runs already; no COMMAND.")
@click.option(
    "--probe",
    type=click.Choice(["auto", "off"]),
    default="auto",
    show_default=True,
    help="Look into Python programs: where their time goes, and why.",
)
@click.argument("argv", metavar="-- COMMAND…", nargs=-1, type=click.UNPROCESSED)
def command(
    every: str | None,
    name: str,
    tags: dict[str, str],
    level: str | None,
    quiet: bool,
    window: str | None,
    keep_output: bool,
    alone: bool,
    job: str | None,
    probe: str,
    argv: tuple[str, ...],
) -> None:
    """Run COMMAND unchanged, record every device of this node, and report at the end.

    COMMAND keeps its input, output, terminal, signals and exit code; what goes wrong
    with the recording is a line in the report. In a Slurm job's script all nodes of the job
    are recorded; under srun or mpirun, all tasks make one recording. With --window, COMMAND
    is ended when its pace is known; one that shows no steps runs to its end.
    """
    if job is None and not argv:
        raise click.UsageError("Missing argument '-- COMMAND…'.")
    if job is not None and argv:
        raise click.UsageError("--job records what runs already: leave out COMMAND.")
    if window is not None and (job is not None or probe == "off"):
        given = "--probe off" if job is None else "--job"
        raise click.UsageError(f"--window has no effect with {given}.")
    if keep_output and job is not None:
        raise click.UsageError("--keep-output has no effect with --job.")
    window_s = None
    if window is not None:
        from teho.cli.repeated_runs import read_window

        window_s = read_window(window)
    settings = load_settings()
    if name == "last":
        raise InputError("--name last", "another name: `last` is the newest run")
    wanted = Wanted(
        settings,
        argv,
        name,
        tags,
        parse_period(every, "--every") if every else settings.period_s,
    )
    shown = "none" if quiet else (level or settings.report)
    if job is not None:
        from teho.cli.attach import attach

        attach(job, wanted, shown)
    else:
        manner = _Manner(probe=probe == "auto", alone=alone, keep=keep_output, window_s=window_s)
        _run(wanted, shown, manner, quiet=quiet)


class _Manner(NamedTuple):
    """How the program is run."""

    probe: bool
    """Whether it is looked into."""
    alone: bool
    keep: bool
    """Whether its output is kept."""
    window_s: float | None


def _run(wanted: Wanted, shown: str, manner: _Manner, *, quiet: bool) -> None:
    """Run the program, report, and end as it ended."""
    window_s = manner.window_s
    try:
        supervisor, task, mark, spool = _start(wanted.command, manner)
    except CannotStart as error:
        say(str(error))
        sys.exit(error.exit_code)
    wanted = wanted._replace(spool=spool)
    recording, remote = _record_it(supervisor, wanted, task, mark)
    tells = recording is not None and recording.began
    if recording and tells and not quiet and sys.stderr.isatty():
        say(f"recording {recording.run.id}, a sample every {wanted.period_s:g} s")
    look = None
    if recording and window_s is not None:
        opening = partial(_open_window, spool, window_s, task)
        look = _protected(supervisor, _NO_WINDOW, opening)
    outcome = supervisor.wait(remote)
    if look:
        outcome.on_purpose = _protected(supervisor, _NO_WINDOW, look.leave) or ""
    supervisor.finish_recording(ProgressLine(quiet=quiet), remote)
    kept = supervisor.kept_output()
    outcome.troubles.extend(remote.troubles if remote else ())
    _protected(
        supervisor,
        "the end could not be recorded",
        lambda: _end(supervisor, wanted, recording, task, outcome, kept),
    )
    if shown == "none" or (is_step(task) and not tells):
        die_like(outcome)
    shown_whole = _protected(
        supervisor,
        "the report failed",
        lambda: _print_report(recording, wanted, task, outcome, is_full=shown == "full"),
    )
    if not shown_whole:
        for _, trouble in outcome.troubles:
            with contextlib.suppress(OSError):
                say(trouble)
    die_like(outcome)


def _protected(supervisor: Supervisor, what: str, action: Callable[[], T]) -> T | None:
    """Do something that must never hurt the program; a failure is a line of the report."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - the program comes first, whatever it is
        supervisor.trouble(f"{what}: {error}")
        return None


def _start(argv: tuple[str, ...], manner: _Manner) -> tuple[Supervisor, Task, str | None, str]:
    """Start the program; return its supervisor and task, the mark of a whole job, and the spool.

    Raises:
        CannotStart: there is no such program.
    """
    recorded, in_script = is_recorded(os.environ), is_batch_script(os.environ)
    if recorded and not in_script and not manner.alone:
        # Who records the job counts this task among its own.
        exec_program(argv, os.environ)
    supervisor = Supervisor()
    task = Task(started_by="")
    if not manner.alone:
        task = _protected(supervisor, "only this task is recorded", _read_task) or task
    is_script = in_script and not recorded and not manner.alone and not is_step(task)
    mark = new_mark(os.environ) if is_script else None
    environment = {**os.environ, RECORDED: mark} if mark else dict(os.environ)
    spool = ""
    if manner.probe:
        shared = mark or (task.key if is_step(task) else "")
        spool = spool_of(shared or str(os.getpid()))
        if not shared:
            clear(spool)
        environment = with_probe(environment, spool)
        if manner.window_s is not None:
            environment["TEHO_PROBE_STEPS"] = "1"
    if manner.keep and not (is_step(task) and task.rank):
        _protected(supervisor, "its output is not kept", supervisor.keep_output)
    supervisor.start(argv, environment)
    return supervisor, task, mark, spool


def _read_task() -> Task:
    return read_task(os.environ, os.uname().nodename)


def _record_it(
    supervisor: Supervisor, wanted: Wanted, task: Task, mark: str | None
) -> tuple[Recording | None, RemoteRecorders | None]:
    """Have the program recorded; return what is known of that."""
    leader = None
    if is_step(task) and task.local_size > 1:
        leader = _protected(
            supervisor, "this task records for itself", lambda: _find_leader(task, wanted)
        )
    supervisor.start_recorder(
        partial(_record, leader=leader, apart=supervisor.own_pids),
        keep=(leader.descriptor,) if leader else (),
        shared=leader is not None,
    )
    begun = None
    if leader is None or leader.records:
        begun = _protected(
            supervisor,
            "nothing could be recorded",
            lambda: _begin(supervisor, wanted, task, mark),
        )
    if leader:
        leader.leave()
    return begun or (None, None)


def _find_leader(task: Task, wanted: Wanted) -> NodeLeader:
    from teho.observe.node_leader import NodeLeader
    from teho.observe.recording import node_name

    # Tasks that record into different homes make recordings of their own.
    key = f"{task.key} {node_name(task)} {wanted.home.absolute()}"
    return NodeLeader(key, task.rank, task.local_size)


def _begin(
    supervisor: Supervisor, wanted: Wanted, task: Task, mark: str | None
) -> tuple[Recording, RemoteRecorders | None]:
    """Write down what runs, and tell the recorders."""
    from msgspec import to_builtins
    from msgspec.structs import replace

    from teho.observe.recording import begin_recording

    job = _protected(supervisor, "only this node is recorded", _job_of_script) if mark else None
    if job and mark:
        from teho.cli.own_path import own_path
        from teho.observe.whole_job import begin_job

        recording, remote = begin_job(wanted, supervisor.started_s, job, mark=mark, teho=own_path())
    else:
        recording, remote = begin_recording(wanted, supervisor.started_s, task), None
    if recording.plan:
        apart = (*recording.plan.apart, *supervisor.own_pids)
        plan = replace(recording.plan, apart=apart, cores=supervisor.program_cores)
        supervisor.send_plan(to_builtins(plan))
    return recording, remote


def _job_of_script() -> RunningJob | None:
    from teho.schedulers.slurm.overlap import job_of_script

    return job_of_script(os.environ, os.uname().nodename)


def _record(
    control: int, back: int, program: int, leader: NodeLeader | None, apart: Sequence[int]
) -> None:
    """In the recorder's process: what it needs is loaded there alone."""
    if leader and not leader.records:
        from teho.observe.node_leader import stand_by

        stand_by(control, program, leader, apart)
        return
    from teho.observe.recorder import record

    record(control, back, program, leader)


def _open_window(spool: str, window_s: float, task: Task) -> Window:
    """Have the program ended once its pace is known."""
    if is_step(task):
        # Each would end what the others of its node run, and none knows of the other nodes.
        raise InputError("it is only for a single program, and this is one of several tasks")
    from teho.experiment.window import Window

    return Window(spool, window_s)


def _end(
    supervisor: Supervisor,
    wanted: Wanted,
    recording: Recording | None,
    task: Task,
    outcome: Outcome,
    kept: bytes | None,
) -> None:
    from teho.observe.recording import end_recording, end_task, ended, keep_output

    def keep(directory: Path | None) -> None:
        if directory and kept is not None:
            _protected(supervisor, "its output is not kept", partial(keep_output, directory, kept))

    if is_step(task):
        run = recording.run if recording else None
        keep(end_task(wanted.home, task, run, supervisor, outcome))
    elif recording:
        # First, so that the end tells where it could not be kept; it takes no room then.
        keep(recording.directory)
        end_recording(recording.directory, ended(recording.run, outcome))


def _print_report(
    recording: Recording | None, wanted: Wanted, task: Task, outcome: Outcome, *, is_full: bool
) -> bool:
    """Print the report; return whether there was a recording to report on."""
    if recording is None:
        return False
    from teho.cli.report import print_text
    from teho.observe.recording import await_others, ended, node_name
    from teho.show.loaded import LoadedRun

    run = recording.run
    if run.has_tasks:
        await_others(recording, outcome)
    else:
        run = ended(run, outcome)
    loaded = LoadedRun(recording.directory, wanted.settings, run)
    recorded, nodes = len(loaded.run.nodes), task.node_count or 0
    is_part = run.has_tasks and recorded < nodes
    if not is_part or task.node_rank == 0:
        print_text(loaded.view_with(plots=False), sys.stderr, "default" if is_full else "brief")
    if is_part:
        say(
            f"{recorded} of {nodes} nodes are recorded in {node_name(task)}:{recording.directory}; "
            "if nodes share no files, each keeps its own part, and `teho merge` joins them"
        )
    return True
