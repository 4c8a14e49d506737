"""The beginning and the end of a recording: what `run.json` holds."""

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
from teho.observe.supervisor import Supervisor
from teho.observe.wanted import Wanted
from teho.schedulers.task import Task, is_step
from teho.store.layout import (
    create_run_directory,
    new_run_id,
    node_file,
    output_file,
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
    "keep_output",
    "node_name",
]


# Tasks of one step end together; a report that lacks the last of them says so.
_OTHERS_S = 5.0


class Recording(NamedTuple):
    """What a supervisor knows of the recording that its program is a part of."""

    directory: Path
    run: Run
    """As this supervisor describes it; that of a step is in `run.json` if it began it."""
    plan: RecordingPlan | None
    """For this node's recorder; None if the node's part is closed already."""
    began: bool
    """Whether this supervisor began it, and so tells of it at the end."""


def begin_recording(wanted: Wanted, started_s: float, task: Task) -> Recording:
    """Create the directory of a run, or find that of the step, and write down what runs.

    Args:
        wanted: what is to be recorded.
        started_s: monotonic time of the program's start.
        task: which task of which step this is.

    Raises:
        OSError: it cannot be written.
    """
    home, node = wanted.home, node_name(task)
    run = msgspec.structs.replace(describe(wanted, started_s), step=_step(task, node))
    if run.step is None:
        directory, began = create_run_directory(home, run.id, msgspec.json.encode(run)), True
    else:
        run_id, began = claim_step(home, run.step.key, run.id)
        run = msgspec.structs.replace(run, id=run_id)
        directory = create_step_directory(home, run_id)
        if began:
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
    """Return this node's name, as the scheduler has it where it tells."""
    told = task.hosts[task.node_rank] if task.node_rank < len(task.hosts) else ""
    return safe_name(told or os.uname().nodename) or "node"


def _step(task: Task, node: str) -> Step | None:
    """Return the step that a task is one of several of; None for a program alone."""
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
        versions={
            "teho": __version__,
            "python": platform.python_version(),
            "kernel": os.uname().release,
        },
    )


def _directory() -> str:
    """Return the working directory; empty if it has been deleted under the program."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _label(command: Sequence[str]) -> str:
    """Return what a run is best called: the script rather than its interpreter."""
    scripts = (".py", ".sh", ".R", ".jl")
    words = [word for word in command[1:] if not any(char.isspace() for char in word)]
    script = next((word for word in words if word.endswith(scripts)), "")
    return Path(script or command[0]).name


def ended(run: Run, outcome: Outcome) -> Run:
    """Return the description of a program's run with how it ended."""
    return msgspec.structs.replace(
        run, end=_end(run.started_at, outcome), troubles=_troubles(outcome)
    )


def end_recording(directory: Path, run: Run) -> None:
    """Write down how the program ended.

    Raises:
        OSError: it cannot be written; the recording then reads as cut off.
    """
    replace_file(run_file(directory), msgspec.json.encode(run))


def end_task(
    home: Path, task: Task, run: Run | None, supervisor: Supervisor, outcome: Outcome
) -> Path | None:
    """Write down how one task of a step ended; return its recording, None if there is none.

    Args:
        home: the directory of all recordings.
        task: which one it is.
        run: the step's description, where this supervisor made one: where the node that began
            the recording did not come to write it, this one does.
        supervisor: the program's.
        outcome: how it ended.

    Raises:
        OSError: it cannot be written; the task then counts as one that told no end.
    """
    run_id = run_of_step(home, task.key)
    if run_id is None:
        return None
    directory = create_step_directory(home, run_id)
    since = timedelta(seconds=time.monotonic() - supervisor.started_s)
    started_at = datetime.now(timezone.utc) - since
    told = TaskEnd(
        rank=task.rank,
        local_rank=task.local_rank,
        node=node_name(task),
        pid=supervisor.program_pid,
        started_at=started_at,
        end=_end(started_at, outcome),
        troubles=_troubles(outcome),
    )
    replace_file(task_file(directory, task.rank), msgspec.json.encode(told))
    if run is not None:
        write_missing_description(directory, msgspec.json.encode(run))
    return directory


def keep_output(directory: Path, printed: bytes) -> None:
    """Write down the beginning of what a program printed.

    Raises:
        OSError: it cannot be written.
    """
    replace_file(output_file(directory), printed)


def await_others(recording: Recording, outcome: Outcome) -> None:
    """Let the step's other tasks and nodes come to their end, for a few seconds.

    Not where the program failed: others may wait for it, and be ended when it is gone.
    """
    deadline_s = time.monotonic() + _OTHERS_S
    while outcome.exit_code == 0 and time.monotonic() < deadline_s:
        run = with_parts(recording.run, recording.directory)
        if run.end and all(node.sealed for node in run.nodes):
            return
        time.sleep(0.1)


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
