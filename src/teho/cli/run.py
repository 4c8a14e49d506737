"""`teho run`: run a program without changes, and record what it uses."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from teho.cli import say
from teho.cli.declare import flag, option, program_command
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

    from teho.cli.run_watch import RunWatch, WatchPlan
    from teho.config.settings import Settings
    from teho.experiment.window import Window
    from teho.model.job import RunningJob
    from teho.model.run import Run
    from teho.observe.node_leader import NodeLeader
    from teho.observe.recording import Recording
    from teho.observe.remote_recorders import RemoteRecorders

__all__ = ["Manner", "command", "run_program"]

T = TypeVar("T")
_REPORT_MODULES = (
    "pyarrow.parquet",
    "teho.cli.terminal",
    "teho.explain.judge",
    "teho.explain.summary",
    "teho.show.build.report.document",
    "teho.show.loaded",
    "teho.show.text.document",
    "teho.store.overview",
    "teho.store.probe",
)


@program_command("""\
  teho run -- python train.py --epochs 3
  teho run --every 200ms --name baseline -- ./solver input.nml
  teho run --tag dataset=cifar10 --tag workers=4 -- python train.py
  teho run --window 30s -- python train.py
  srun teho run -- python train.py
  teho run --job 4711""")
@option("--every TIME", "Set the time between samples, such as 1s or 200ms.", unset="1s")
@option("--name", "Name the run; several runs may have the same name.", unset="none", default="")
@option("--tag KEY=VALUE", "Store this tag with the run; may be repeated.", unset="none",
        into="tags", multiple=True, callback=read_tags)  # fmt: skip
@option("--report", "Print this report on stderr at the end.", unset="brief", into="level",
        type=click.Choice(["none", "brief", "full"]))  # fmt: skip
@flag("-q --quiet", "Record without printing anything.")
@option("--window TIME",
        "Stop COMMAND when its step rate has been steady for this time, with exit code "
                         "0.",
        unset="run to the end")  # fmt: skip
@option("--for TIME", "Stop COMMAND after this time, with exit code 0.", unset="run to the end",
        into="for_")  # fmt: skip
@flag("--keep-output",
      "Store the first MiB of the standard output with the recording. COMMAND then writes to a "
      "pipe, not to a terminal.")  # fmt: skip
@flag("--alone", "Record only this program, not the whole job.")
@option("--job JOB", "Record this running Slurm job instead of COMMAND.")
@option("--notify TARGET",
        "Notify TARGET when the run ends, when the run is stuck, and 10 min before the job's time "
        "limit. TARGET is mailto:NAME@HOST, a URL for an HTTP POST, or a command; may be repeated.",
        unset="no notification", into="targets", multiple=True)  # fmt: skip
@option("--if-stuck TIME=ACTION",
        "If the run makes no progress for TIME, do ACTION: notify (you), end (the program), or a "
        "signal such as USR1, which is sent to the program.",
        unset="notify at once")  # fmt: skip
@option("--probe", "Measure where the time goes inside Python programs.",
        type=click.Choice(["auto", "off"]), default="auto")  # fmt: skip
@click.argument("argv", metavar="-- COMMAND…", nargs=-1, type=click.UNPROCESSED)
def command(
    every: str | None,
    name: str,
    tags: dict[str, str],
    level: str | None,
    quiet: bool,
    window: str | None,
    for_: str | None,
    keep_output: bool,
    alone: bool,
    job: str | None,
    targets: tuple[str, ...],
    if_stuck: str | None,
    probe: str,
    argv: tuple[str, ...],
) -> None:
    """Run COMMAND without changes, record every device of this node, and report at the end.

    COMMAND keeps its input, output, terminal, signals and exit code. If the recording has a
    problem, the report says so. In the script of a Slurm job, Teho records all nodes of the job.
    With srun or mpirun, all tasks make one recording. With --window, Teho ends COMMAND when the
    step rate is known. If Teho cannot count steps, COMMAND runs to its end, or until the time of
    --for is over.

    Reads: the GPU drivers, files of the kernel, and the memory of COMMAND's Python processes.

    Writes: a recording in TEHO_HOME.

    Network: connects the nodes of one job, to compare their clocks; asks a dcgm-exporter (on this
    node, or at DCGM_EXPORTER_URL) about GPUs that are older than Hopper.
    """
    if job is None and not argv:
        raise click.UsageError("Missing argument '-- COMMAND…'.")
    if job is not None and argv:
        raise click.UsageError("--job records a running job: leave out COMMAND.")
    for what, text in (("--window", window), ("--for", for_)):
        if text is not None and (job is not None or probe == "off"):
            given = "--probe off" if job is None else "--job"
            raise click.UsageError(f"{what} has no effect with {given}.")
    if keep_output and job is not None:
        raise click.UsageError("--keep-output has no effect with --job.")
    for given, is_given in (("--notify", targets), ("--if-stuck", if_stuck)):
        if is_given and job is not None:
            raise click.UsageError(f"{given} has no effect with --job.")
    plan = None
    if targets or if_stuck is not None:
        from teho.cli.run_watch import read_plan

        plan = read_plan(targets, if_stuck)
    window_s = limit_s = None
    if window is not None or for_ is not None:
        from teho.cli.repeated_runs import read_window

        window_s = read_window(window) if window is not None else None
        limit_s = read_window(for_, "--for") if for_ is not None else None
    settings = load_settings()
    if name == "last":
        raise InputError("--name last", "another name, because `last` means the newest run")
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
        manner = Manner(probe == "auto", alone, keep_output, window_s, limit_s, plan)
        run_program(wanted, shown, manner, quiet=quiet)


class Manner(NamedTuple):
    """How to run the program."""

    probe: bool
    """Whether to load the probe."""
    alone: bool
    keep: bool
    """Whether to store its output."""
    window_s: float | None
    limit_s: float | None
    watch: WatchPlan | None
    """When to notify the user, and what to do if the run is stuck."""
    variables: Mapping[str, str] = {}
    """Further variables of the program's environment."""
    show: Callable[[Recording, Run], None] | None = None
    """Prints something else than the report at the end."""

    @property
    def no_window(self) -> str:
        """What to say if the program cannot be ended in time."""
        return f"{'--for' if self.window_s is None else '--window'} had no effect"


def run_program(wanted: Wanted, shown: str, manner: Manner, *, quiet: bool) -> None:
    """Run the program, report, and end with its exit code or signal."""
    try:
        supervisor, task, mark, spool = _start(wanted.command, manner)
    except CannotStart as error:
        say(str(error))
        sys.exit(error.exit_code)
    wanted = wanted._replace(spool=spool)
    window = None
    if manner.window_s or manner.limit_s:
        opening = partial(_open_window, spool, manner, task)
        window = _protected(supervisor, manner.no_window, opening)
        # The recorder must know its process, which is not a part of the program.
        supervisor.others = (window.pid,) if window else ()
    watch = None
    if manner.watch:
        opening_watch = partial(_open_watch, manner.watch, wanted.settings, supervisor.program_pid)
        watch = _protected(
            supervisor,
            "Teho does not check whether the run is stuck or near its time limit",
            opening_watch,
        )
        supervisor.others += (watch.pid,) if watch else ()
    recording, remote = _record_it(supervisor, wanted, task, mark)
    is_first = recording is not None and recording.began
    if watch and recording and is_first:
        watch.begin(recording.directory)
    if recording and is_first and not quiet and sys.stderr.isatty():
        say(f"recording {recording.run.id}, a sample every {wanted.period_s:g} s")
    outcome = supervisor.wait(remote)
    if window:
        outcome.on_purpose = _protected(supervisor, manner.no_window, window.leave) or ""
    if watch:
        unwatched = "Teho did not check whether the run was stuck or near its time limit"
        outcome.troubles.extend(
            (outcome.elapsed_s, trouble)
            for trouble in _protected(supervisor, unwatched, watch.leave) or ()
        )
    reports = shown != "none" and (is_first or not is_step(task))
    supervisor.finish_recording(
        ProgressLine(quiet=quiet), remote, _load_report if reports else lambda: None
    )
    kept = supervisor.kept_output()
    outcome.troubles.extend(remote.troubles if remote else ())
    _protected(
        supervisor,
        "the end of the run could not be recorded",
        lambda: _end(supervisor, wanted, recording, task, outcome, kept),
    )
    if not reports:
        _notify_end(supervisor, recording, wanted, task, outcome, manner)
        die_like(outcome)
    shown_whole = _protected(
        supervisor,
        "the report failed",
        lambda: _print_report(
            recording, wanted, task, outcome, is_full=shown == "full", show=manner.show
        ),
    )
    if not shown_whole:
        for _, trouble in outcome.troubles:
            with contextlib.suppress(OSError):
                say(trouble)
    _notify_end(supervisor, recording, wanted, task, outcome, manner)
    die_like(outcome)


def _protected(supervisor: Supervisor, what: str, action: Callable[[], T]) -> T | None:
    """Do something that must not harm the program; an error is a line in the report."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - the program comes first
        supervisor.trouble(f"{what}: {error}")
        return None


def _start(argv: tuple[str, ...], manner: Manner) -> tuple[Supervisor, Task, str | None, str]:
    """Start the program. Return its supervisor and task, the mark of a whole job, and the spool.

    Raises:
        CannotStart: the program does not exist or cannot be executed.
    """
    recorded, in_script = is_recorded(os.environ), is_batch_script(os.environ)
    if recorded and not in_script and not manner.alone:
        # The recording of the job includes this task.
        exec_program(argv, {**os.environ, **manner.variables})
    supervisor = Supervisor()
    task = Task(started_by="")
    if not manner.alone:
        reading = partial(read_task, os.environ, os.uname().nodename)
        task = _protected(supervisor, "only this task is recorded", reading) or task
    is_script = in_script and not recorded and not manner.alone and not is_step(task)
    mark = new_mark(os.environ) if is_script else None
    environment = {**os.environ, **manner.variables}
    environment |= {RECORDED: mark} if mark else {}
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
        _protected(supervisor, "the output of the program is not stored", supervisor.keep_output)
    supervisor.start(argv, environment)
    return supervisor, task, mark, spool


def _record_it(
    supervisor: Supervisor, wanted: Wanted, task: Task, mark: str | None
) -> tuple[Recording | None, RemoteRecorders | None]:
    """Start to record the program; return the recording, and the recorders of other nodes."""
    leader = None
    if is_step(task) and task.local_size > 1:
        leader = _protected(
            supervisor, "this task makes its own recording", lambda: _find_leader(task, wanted)
        )
    supervisor.start_recorder(
        partial(_record, leader=leader, own=supervisor.own_pids),
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

    # Tasks with different directories of recordings make separate recordings.
    key = f"{task.key} {node_name(task)} {wanted.home.absolute()}"
    return NodeLeader(key, task.rank, task.local_size)


def _begin(
    supervisor: Supervisor, wanted: Wanted, task: Task, mark: str | None
) -> tuple[Recording, RemoteRecorders | None]:
    """Create the recording, and send the plan to the recorders."""
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
        own = (*recording.plan.helper_pids, *supervisor.own_pids)
        plan = replace(recording.plan, helper_pids=own, cores=supervisor.program_cores)
        supervisor.send_plan(to_builtins(plan))
    return recording, remote


def _job_of_script() -> RunningJob | None:
    from teho.schedulers.slurm.overlap import job_of_script

    return job_of_script(os.environ, os.uname().nodename)


def _record(
    control: int, back: int, program: int, leader: NodeLeader | None, own: Sequence[int]
) -> None:
    """Record, in the process of the recorder, which imports what only it needs."""
    if leader and not leader.records:
        from teho.observe.node_leader import report_task

        report_task(control, back, program, leader, own)
        return
    from teho.observe.recorder import record

    record(control, back, program, leader)


def _open_window(spool: str, manner: Manner, task: Task) -> Window:
    """Return the window that ends the program when its step rate is known, or after a time."""
    if is_step(task) and manner.limit_s is None:
        # Each task would end the other tasks of its node, and would not know of other nodes.
        raise InputError(
            "this option needs a single program, but this task is one of several tasks"
        )
    from teho.experiment.window import Window

    window_s = None if is_step(task) else manner.window_s
    return Window(spool, window_s, manner.limit_s, shared=is_step(task))


def _open_watch(plan: WatchPlan, settings: Settings, program_pid: int) -> RunWatch:
    from teho.cli.run_watch import RunWatch

    return RunWatch(plan, settings, program_pid)


def _notify_end(
    supervisor: Supervisor,
    recording: Recording | None,
    wanted: Wanted,
    task: Task,
    outcome: Outcome,
    manner: Manner,
) -> None:
    """Notify the user of the end of the run; a failure is a line on stderr and in the recording."""
    targets = manner.watch.targets if manner.watch else ()
    if not targets or recording is None or not recording.began:
        return

    def send() -> list[str]:
        from teho.cli.run_watch import ended_notice
        from teho.observe.notify import notify
        from teho.observe.recording import ended
        from teho.show.loaded import LoadedRun

        run = recording.run if recording.run.has_tasks else ended(recording.run, outcome)
        loaded = LoadedRun(recording.directory, wanted.settings, run)
        return notify(targets, ended_notice(loaded))

    known = len(outcome.troubles)
    problems = _protected(supervisor, "the notification was not sent", send) or ()
    outcome.troubles.extend((outcome.elapsed_s, problem) for problem in problems)
    new = outcome.troubles[known:]
    for _, problem in new:
        with contextlib.suppress(OSError):
            say(problem)
    if new:
        again = partial(_end, supervisor, wanted, recording, task, outcome, None)
        _protected(supervisor, "the end of the run could not be recorded", again)


def _end(
    supervisor: Supervisor,
    wanted: Wanted,
    recording: Recording | None,
    task: Task,
    outcome: Outcome,
    kept: bytes | None,
) -> None:
    from teho.observe.recording import end_recording, end_task, ended
    from teho.store.layout import output_file, replace_file

    def keep(directory: Path | None) -> None:
        if directory and kept is not None:
            _protected(
                supervisor,
                "the output of the program is not stored",
                partial(replace_file, output_file(directory), kept),
            )

    if is_step(task):
        run = recording.run if recording else None
        keep(end_task(wanted.home, task, run, supervisor, outcome))
    elif recording:
        # First the output, then the end, which names a failure to store the output.
        keep(recording.directory)
        end_recording(recording.directory, ended(recording.run, outcome))


def _load_report() -> None:
    """Load the modules of the report while the recorder seals: a quarter of a second."""
    gc.disable()  # the process ends with the report, and needs these modules until then
    with contextlib.suppress(Exception):  # `_print_report` reports the error
        for module in _REPORT_MODULES:
            import_module(module)


def _print_report(
    recording: Recording | None,
    wanted: Wanted,
    task: Task,
    outcome: Outcome,
    *,
    is_full: bool,
    show: Callable[[Recording, Run], None] | None,
) -> bool:
    """Print the report; return False without a recording."""
    if recording is None:
        return False
    from teho.cli.terminal import print_text
    from teho.observe.recording import await_others, ended, node_name
    from teho.show.loaded import LoadedRun

    run = recording.run
    if run.has_tasks:
        await_others(recording, outcome)
    else:
        run = ended(run, outcome)
    if show is not None:
        show(recording, run)
        return True
    loaded = LoadedRun(recording.directory, wanted.settings, run)
    recorded, nodes = len(loaded.run.nodes), task.node_count or 0
    is_part = run.has_tasks and recorded < nodes
    if not is_part or task.node_rank == 0:
        print_text(loaded.view_with(plots=False), sys.stderr, "default" if is_full else "brief")
    if is_part:
        say(
            f"{recorded} of {nodes} nodes are recorded in {node_name(task)}:{recording.directory}. "
            "If the nodes do not share a file system, each node has its own part of the recording. "
            "Next: join the parts with `teho merge`"
        )
    return True
