"""`teho profile -- COMMAND` and `teho profile RUN`: record steps, then explain their traces."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import sys
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from teho.cli import say
from teho.cli.output import Output
from teho.cli.own_path import own_path
from teho.cli.profile_options import RANGE, TOOLS
from teho.cli.progress import StatusLine
from teho.errors import InputError, TehoError
from teho.model.profiling import ACCEPTED
from teho.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from teho.model.profiling import ProfilerPlan, ProfilerUse
    from teho.model.run import Run
    from teho.model.trace import Profiled
    from teho.model.watched import WatchedProcess
    from teho.observe.recording import Recording

__all__ = ["profile_command", "profile_running", "show_recorded"]

_POLL_S = 0.5
_ANSWER_S = 45.0
"""Time for the recorders and the probes to see a plan, and for the first note to come back: each
recorder writes every 10 s."""


def profile_command(
    argv: tuple[str, ...], plan: ProfilerPlan, output: Output, to: Path | None
) -> None:
    """Run a program, record the steps of the plan, and explain them; end like the program.

    Args:
        argv: the program.
        plan: what to record.
        output: for the explanation; it goes to stderr, because stdout is the program's.
        to: where to copy the traces.
    """
    from teho.cli.run import Manner, run_program
    from teho.config.settings import load_settings
    from teho.observe.wanted import Wanted

    for word in TOOLS:
        if word in plan.extras:
            _become_tool(word, argv)
    settings = load_settings()
    plan = _of_step(plan)

    def show(recording: Recording, run: Run) -> None:
        try:
            show_recorded(recording.directory, plan, output, to, run=run, stream=sys.stderr)
        except TehoError as error:
            say(str(error))
        say(f"`teho report {run.id}` reports on the whole run")

    manner = Manner(
        probe=True, alone=False, keep=False, window_s=None, limit_s=None, watch=None,
        variables={"TEHO_PROFILE": msgspec.json.encode(plan).decode()}, show=show,
    )  # fmt: skip
    wanted = Wanted(settings, argv, "", {}, settings.period_s)
    run_program(wanted, "brief", manner, quiet=False)


def _of_step(plan: ProfilerPlan) -> ProfilerPlan:
    """Return the plan with the same id in all tasks of a job's step."""
    from teho.schedulers.task import is_step, read_task

    try:
        task = read_task(os.environ, os.uname().nodename)
    except InputError:
        return plan
    if not is_step(task):
        return plan
    number = zlib.crc32(f"{task.key} {plan.first} {plan.last}".encode())
    return msgspec.structs.replace(plan, id=f"{number:08x}"[:6])


def _become_tool(word: str, argv: tuple[str, ...]) -> None:
    """Start this command again under a vendor's profiler, which records the marked steps.

    Args:
        word: of `--with`.
        argv: the program.
    """
    from teho.profile.hand_over import nsys_options, rocprof_options

    program, module = TOOLS[word]
    tool = shutil.which(program)
    if tool is None:
        raise InputError(
            f"--with {word}: there is no {program} on the PATH",
            next_step=f"load the module of {module}",
        )
    words = sys.argv[1 : sys.argv.index("--")]
    words = [RANGE if one == word else one.replace(f"={word}", f"={RANGE}") for one in words]
    name = "steps-" + secrets.token_hex(3)
    if word == "nsys":
        options, written = nsys_options(name), f"{name}.nsys-rep"
    else:
        options, written = [*rocprof_options(name), "--"], f"the folder {name}"
    say(f"{program} writes {written}")
    # The tool takes the place of this process, as the user would start it; no shell is needed.
    os.execv(tool, [tool, *options, *own_path(), *words, "--", *argv])  # noqa: S606


def show_recorded(
    directory: Path,
    plan: ProfilerPlan | None,
    output: Output,
    to: Path | None,
    *,
    run: Run | None = None,
    stream: IO[str] | None = None,
) -> None:
    """Explain the traces of a plan.

    Args:
        directory: the recording.
        plan: the plan; None: the newest one with a trace.
        output: for the explanation.
        to: where to copy the traces.
        run: the description of the run, with its end; None: from the recording.
        stream: of the explanation; None: standard output.

    Raises:
        TehoError: there is no trace, or it cannot be read.
    """
    from teho.cli.traces import say_if_large
    from teho.profile.hand_over import copy_traces
    from teho.profile.recorded import obstacle_of, partly_words, uses_of
    from teho.profile.summary import read_traces
    from teho.show.build.profile import profile_document
    from teho.store.probe import watched_processes
    from teho.store.read import read_run
    from teho.store.traces import newest_traces, plan_of_trace, traces_of_plan

    processes = watched_processes(directory, [])
    if plan and RANGE in plan.extras:
        _say_marked(plan, processes)
        return
    paths = traces_of_plan(directory, plan.id) if plan else newest_traces(directory)
    if not paths:
        if plan is None:
            raise InputError(
                f"the run {directory.name} has ended, and has no trace",
                next_step="`teho profile --steps 20:25 -- COMMAND` records one",
            )
        raise obstacle_of(plan, processes, killed_by=_killed_by(run or read_run(directory))).error()
    plan_id = plan.id if plan else plan_of_trace(paths[0])
    uses = [(process, use) for process, use in uses_of(processes, plan_id) if use.file]
    say_if_large(paths)
    profiled = read_traces(paths, by_teho=True)
    notes = tuple(filter(None, (partly_words(use, plan) for _, use in uses)))
    profiled = msgspec.structs.replace(profiled, notes=(*notes, *profiled.notes))
    if not profiled.devices:
        profiled = msgspec.structs.replace(profiled, notes=(*profiled.notes, _without_gpu(uses)))
    commands = (
        [*copy_traces(paths, to)] if to else [f"The trace is in `{shlex.quote(str(paths[0]))}`"]
    )
    commands += _tools(directory, profiled, uses)
    output.show(profile_document(profiled, commands), profiled, stream=stream)


def _killed_by(run: Run) -> str:
    """Return the name of the signal that ended a program; empty if none did."""
    number = run.end.signal if run.end else None
    return signal.Signals(number).name if number in set(signal.Signals) else ""


def _without_gpu(uses: Sequence[tuple[WatchedProcess, ProfilerUse]]) -> str:
    """Return why a trace has no work of a GPU."""
    devices = [
        str(device).lower()
        for process, _ in uses
        for facts in process.libraries.values()
        for device in facts.get("devices") or ()
    ]
    if all(device.startswith("cpu") for device in devices):
        return "The program did not use a GPU during this time."
    advice = " ".join(_notes_of_cluster()) or (
        "Ask the support of your cluster how a job can switch such a tool off."
    )
    return (
        "The program used a GPU, but the profiler recorded no work on it. Another tool may use the "
        f"GPU's interface for profilers. {advice}"
    )


def _say_marked(plan: ProfilerPlan, processes: Sequence[WatchedProcess]) -> None:
    """Say which steps were marked for another tool.

    Raises:
        InputError: no step was marked.
    """
    from teho.profile.recorded import obstacle_of, steps_words, uses_of

    marked = [use for _, use in uses_of(processes, plan.id) if use.steps]
    if not marked:
        raise obstacle_of(plan, processes).error()
    say(f"{steps_words(marked[0])} were marked for the tool that runs this command")


def _tools(
    directory: Path, profiled: Profiled, uses: Sequence[tuple[WatchedProcess, ProfilerUse]]
) -> list[str]:
    """Return how the vendors' profilers record the same steps."""
    from teho.profile.hand_over import tool_commands
    from teho.store.read import read_run

    commands = list(tool_commands(read_run(directory), profiled, uses))
    return [*commands, *_notes_of_cluster()] if commands else []


def _notes_of_cluster() -> list[str]:
    """Return what this machine's cluster requires of profilers, or that it does not allow them."""
    from teho.cli.here import cluster_here

    cluster = cluster_here()
    return [note for note in cluster.notes if "DISABLE_DCGM" in note] if cluster else []


def profile_running(directory: Path, plan: ProfilerPlan, output: Output, to: Path | None) -> None:
    """Let a running program record the steps of a plan, wait for the traces, and explain them.

    Args:
        directory: the recording.
        plan: what to record.
        output: for the explanation.
        to: where to copy the traces.

    Raises:
        TehoError: the run ended before, does not react, or could not record.
    """
    from teho.observe.run_changes import announce
    from teho.profile.recorded import chosen_ranks
    from teho.store.layout import plan_folder, replace_file
    from teho.store.probe import watched_processes

    processes = watched_processes(directory, [])
    if plan.window_s is None and not any(one.progress for one in processes):
        raise InputError(
            f"Teho has counted no steps of the run {directory.name} so far",
            next_step="try again in 10 s, or record a length of time with `--window 2s`",
        )
    if plan.ranks == "one" and (slow := chosen_ranks(processes)):
        plan = msgspec.structs.replace(plan, ranks=slow)
        say(f"recording the slowest rank, {slow[0]}, and the median rank, {slow[1]}")
    folder = plan_folder(directory)
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{plan.id}.json"
    line = StatusLine()
    replace_file(path, msgspec.json.encode(plan))
    announce(directory)
    try:
        _wait(directory, plan, _expected(plan, processes), line)
    except KeyboardInterrupt:
        line("")
        say(
            "the run may still record these steps: later, "
            f"`teho profile {directory.name}` explains them"
        )
        raise
    finally:
        line("")
        path.unlink(missing_ok=True)
    show_recorded(directory, plan, output, to)


def _expected(plan: ProfilerPlan, processes: Sequence[WatchedProcess]) -> int:
    """Return the number of processes that will record."""
    if isinstance(plan.ranks, tuple):
        return len(plan.ranks)
    return max(1, sum(bool(one.progress) for one in processes)) if plan.ranks == "all" else 1


def _wait(directory: Path, plan: ProfilerPlan, expected: int, line: StatusLine) -> None:
    """Wait until the processes of the plan have recorded, or until the run has ended.

    Raises:
        InputError: no process reacts.
    """
    from teho.cli.top_job import is_running
    from teho.store.traces import Answers, trace_of

    answers = Answers(directory, plan.id)
    began_s = time.monotonic()
    is_last = False
    while True:
        found = answers.read()
        ended = [(node, use) for node, use in found if use.why != ACCEPTED]
        missing = [
            use
            for node, use in ended
            if use.file and not trace_of(directory, node, use.file).exists()
        ]
        if is_last or (len(ended) >= expected and not missing):
            return
        waited_s = time.monotonic() - began_s
        if not found and waited_s > _ANSWER_S:
            raise InputError(
                f"no Python process of the run reacted within {_ANSWER_S:g} s",
                "a run that `teho run` of this version started, without `--probe off`",
                "`teho profile --steps 20:25 -- COMMAND` records a new run",
            )
        what = "the trace" if ended else "the steps" if found else "the program"
        line(f"teho: waiting for {what}, {format_duration(round(waited_s))}")
        # Read once more after the end: the recorder writes the last notes then.
        is_last = not is_running(directory)
        time.sleep(_POLL_S)
