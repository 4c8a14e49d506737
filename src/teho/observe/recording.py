"""Writes the beginning and the end of a recording: `run.json`."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.config.privacy import (
    kept_environment,
    masked_command,
    masked_tags,
    masked_text,
)
from teho.model.run import FORMAT_VERSION, End, Run, Step, Trouble
from teho.model.run import Task as TaskEnd
from teho.observe.plan import RecordingPlan
from teho.observe.program import Outcome
from teho.observe.revision import SCRIPTS, code_versions
from teho.observe.run_changes import seal_spread_s
from teho.observe.supervisor import Supervisor
from teho.observe.wanted import Wanted
from teho.schedulers.task import Task, is_step
from teho.store.layout import (
    create_run_directory,
    new_run_id,
    node_file,
    replace_file,
    run_file,
    safe_name,
    task_file,
)
from teho.store.read import supervisor_stamp, with_parts
from teho.store.steps import (
    claim_step,
    create_step_directory,
    run_of_step,
    write_missing_description,
)
from teho.version import __version__

__all__ = [
    "Recording",
    "await_others",
    "begin_recording",
    "describe",
    "end_recording",
    "end_task",
    "ended",
    "node_name",
]


_OTHERS_S = 5.0
"""Tasks of one step end at about the same time. A report names the tasks that are missing."""
_ASK_S, _PARTS_PER_S = 0.1, 500.0
"""Time between two checks whether they have ended, and files that are read for this in a second."""


class Recording(NamedTuple):
    """The recording of a program, in its supervisor."""

    directory: Path
    run: Run
    """The description by this supervisor. `run.json` has it if this supervisor began the step."""
    plan: RecordingPlan | None
    """The plan for this node's recorder; None if the node's part is complete already."""
    began: bool
    """Whether this supervisor began the recording; it then prints the report."""


def begin_recording(wanted: Wanted, started_s: float, task: Task) -> Recording:
    """Create the directory of a run, or find the step's directory, and write the description.

    Args:
        wanted: what is to be recorded.
        started_s: monotonic time of the program's start.
        task: this task of its step.

    Raises:
        OSError: it cannot be written.
    """
    home, node = wanted.home, node_name(task)
    run = msgspec.structs.replace(describe(wanted, started_s), step=_step(task, node))
    if run.step is None:
        run = _with_code(run, wanted)
        directory, began = create_run_directory(home, run.id, msgspec.json.encode(run)), True
    else:
        run_id, began = claim_step(home, run.step.key, run.id)
        run = msgspec.structs.replace(run, id=run_id)
        directory = create_step_directory(home, run_id)
        if began:
            run = _with_code(run, wanted)
            replace_file(run_file(directory), msgspec.json.encode(run))
    plan = RecordingPlan(
        directory=str(directory.absolute()),
        node=node,
        period_s=wanted.period_s,
        started_s=started_s,
        started_at=run.started_at,
        supervisor_pid=os.getpid(),
        ranks=(task.rank,) if run.step else (),
        node_count=(task.node_count or 1) if run.step else 1,
        began_here=began,
        spool=wanted.spool,
    )
    closed = not began and node_file(directory, node).exists()
    return Recording(directory, run, None if closed else plan, began)


def node_name(task: Task) -> str:
    """Return the scheduler's name of this node, or the host name."""
    name = task.hosts[task.node_rank] if task.node_rank < len(task.hosts) else ""
    return safe_name(name or os.uname().nodename) or "node"


def _step(task: Task, node: str) -> Step | None:
    """Return the step of a task; None if the step has only one task."""
    if not is_step(task):
        return None
    return Step(
        key=task.key,
        started_by=task.started_by,
        began_on=node,
        task_count=task.size,
        node_count=task.node_count,
        hosts=task.hosts,
    )


def describe(wanted: Wanted, started_s: float) -> Run:
    """Return the description of a run that began at a monotonic time."""
    started_at = datetime.now(timezone.utc) - timedelta(seconds=time.monotonic() - started_s)
    name = masked_text(wanted.name)
    command = masked_command(wanted.command)
    return Run(
        format=FORMAT_VERSION,
        id=new_run_id(started_at, name or _label(command)),
        name=name,
        tags=masked_tags(wanted.tags),
        command=tuple(command),
        directory=masked_text(_directory()),
        started_at=started_at,
        host=safe_name(os.uname().nodename) or "node",
        supervisor_pid=os.getpid(),
        supervisor_stamp=supervisor_stamp(os.getpid()),
        period_s=wanted.period_s,
        environment=kept_environment(os.environ),
        is_automatic=wanted.is_automatic,
        versions={
            "teho": __version__,
            "python": platform.python_version(),
            "kernel": os.uname().release,
        },
    )


def _with_code(run: Run, wanted: Wanted) -> Run:
    """Return the description with the versions of the user's code.

    Only the task that begins a recording reads them: a job can have thousands of tasks.
    """
    try:
        found = code_versions(wanted.command, Path.cwd())
    except OSError:
        return run
    masked = {key: masked_text(value) for key, value in found.items()}
    return msgspec.structs.replace(run, versions={**run.versions, **masked})


def _directory() -> str:
    """Return the working directory; empty if it has been deleted."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _label(command: Sequence[str]) -> str:
    """Return a name for a run: the name of the script, or of the program."""
    words = [word for word in command[1:] if not any(char.isspace() for char in word)]
    script = next((word for word in words if word.endswith(SCRIPTS)), "")
    return Path(script or command[0]).name


def ended(run: Run, outcome: Outcome) -> Run:
    """Return the description of a run with its end."""
    return msgspec.structs.replace(
        run, end=_end(run.started_at, outcome), troubles=_troubles(outcome)
    )


def end_recording(directory: Path, run: Run) -> None:
    """Write the end of the program.

    Raises:
        OSError: it cannot be written; the recording then counts as cut off.
    """
    replace_file(run_file(directory), msgspec.json.encode(run))


def end_task(
    home: Path, task: Task, run: Run | None, supervisor: Supervisor, outcome: Outcome
) -> Path | None:
    """Write the end of one task of a step; return its recording, None if there is none.

    Args:
        home: the directory of all recordings.
        task: this task.
        run: this supervisor's description of the step, if it made one. It is written if the node
            that began the recording did not write its own.
        supervisor: the program's.
        outcome: the end of the program.

    Raises:
        OSError: it cannot be written; the task then has no end.
    """
    run_id = run_of_step(home, task.key)
    if run_id is None:
        return None
    directory = create_step_directory(home, run_id)
    since = timedelta(seconds=time.monotonic() - supervisor.started_s)
    started_at = datetime.now(timezone.utc) - since
    end = TaskEnd(
        rank=task.rank,
        local_rank=task.local_rank,
        node=node_name(task),
        pid=supervisor.program_pid,
        started_at=started_at,
        end=_end(started_at, outcome),
        troubles=_troubles(outcome),
    )
    replace_file(task_file(directory, task.rank), msgspec.json.encode(end))
    if run is not None:
        write_missing_description(directory, msgspec.json.encode(run))
    return directory


def await_others(recording: Recording, outcome: Outcome) -> None:
    """Wait some seconds for the end of the step's other tasks and nodes.

    If the program failed, this does not wait: other tasks may wait for the failed one until they
    are killed.
    """
    nodes = (recording.run.step.node_count if recording.run.step else None) or 1
    deadline_s = time.monotonic() + _OTHERS_S + seal_spread_s(nodes)
    while outcome.exit_code == 0 and time.monotonic() < deadline_s:
        run = with_parts(recording.run, recording.directory)
        if run.end and all(node.sealed for node in run.nodes):
            return
        pause_s = max(_ASK_S, (len(run.nodes) + len(run.tasks)) / _PARTS_PER_S)
        time.sleep(min(pause_s, max(0.0, deadline_s - time.monotonic())))


def _end(started_at: datetime, outcome: Outcome) -> End:
    return End(
        at=started_at + timedelta(seconds=outcome.elapsed_s),
        elapsed_s=round(outcome.elapsed_s, 6),
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        on_purpose=outcome.on_purpose,
        cpu_s=round(outcome.cpu_s, 6),
        peak_process_bytes=outcome.peak_process_bytes,
    )


def _troubles(outcome: Outcome) -> tuple[Trouble, ...]:
    return tuple(Trouble(elapsed_s=round(at, 3), what=what) for at, what in outcome.troubles)
