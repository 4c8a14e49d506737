"""The beginning and the end of a recording: what `run.json` holds."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec

from teho.config.privacy import (
    kept_environment,
    masked_command,
    masked_tags,
    masked_text,
)
from teho.model.run import FORMAT_VERSION, End, Run, Trouble
from teho.observe.plan import Plan
from teho.observe.supervisor import Outcome
from teho.store.layout import (
    create_run_directory,
    new_run_id,
    replace_file,
    run_file,
    safe_name,
)
from teho.store.read import supervisor_stamp
from teho.version import __version__

__all__ = ["begin_recording", "end_recording", "ended"]


def begin_recording(
    home: Path,
    command: Sequence[str],
    started_s: float,
    *,
    name: str,
    tags: dict[str, str],
    period_s: float,
) -> tuple[Plan, Run]:
    """Create the directory of a run and write down what runs.

    Args:
        home: the directory of all recordings.
        command: as typed.
        started_s: monotonic time of the program's start.
        name: what the user calls the run; may be empty.
        tags: what else she wants to be kept with it.
        period_s: time between two samples.

    Raises:
        OSError: it cannot be written.
    """
    started_at = datetime.now(timezone.utc) - timedelta(seconds=time.monotonic() - started_s)
    node = safe_name(os.uname().nodename) or "node"
    name = masked_text(name)
    command = masked_command(command)
    run = Run(
        format=FORMAT_VERSION,
        id=new_run_id(started_at, name or _label(command)),
        name=name,
        tags=masked_tags(tags),
        command=tuple(command),
        directory=masked_text(_directory()),
        started_at=started_at,
        host=node,
        supervisor_pid=os.getpid(),
        supervisor_stamp=supervisor_stamp(os.getpid()),
        period_s=period_s,
        environment=kept_environment(os.environ),
        versions={
            "teho": __version__,
            "python": platform.python_version(),
            "kernel": os.uname().release,
        },
    )
    directory = create_run_directory(home, run.id, msgspec.json.encode(run))
    plan = Plan(
        directory=str(directory.absolute()),
        node=node,
        period_s=period_s,
        started_s=started_s,
        started_at=started_at,
        supervisor_pid=os.getpid(),
    )
    return plan, run


def _directory() -> str:
    """Return the working directory; empty where it has been deleted under the program."""
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
    """Return the description of a run with how it ended."""
    end = End(
        at=run.started_at + timedelta(seconds=outcome.elapsed_s),
        elapsed_s=round(outcome.elapsed_s, 6),
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        cpu_s=round(outcome.cpu_s, 6),
        peak_process_bytes=outcome.peak_process_bytes,
    )
    troubles = tuple(Trouble(elapsed_s=round(at, 3), what=what) for at, what in outcome.troubles)
    return msgspec.structs.replace(run, end=end, troubles=troubles)


def end_recording(directory: Path, run: Run) -> None:
    """Write down how the program ended.

    Raises:
        OSError: it cannot be written; the recording then reads as cut off.
    """
    replace_file(run_file(directory), msgspec.json.encode(run))
