"""What the screen needs of a report on a run. Another process may make it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.config.settings import Settings
from teho.explain.present import IdleGpus, input_wait
from teho.model.document import Report
from teho.model.run import Run, RunState
from teho.model.watched import WatchedProcess
from teho.show.loaded import LoadedRun
from teho.show.top.frame import report_of
from teho.store.long_stays import living_mains

__all__ = ["Reported", "first_report", "reported", "used_cpu_s"]


class Reported(NamedTuple):
    """A report on a run, and what it says about the last minutes."""

    run: Run
    state: RunState
    report: Report
    watched: tuple[WatchedProcess, ...]
    """What the probe recorded of the processes."""
    idle: IdleGpus
    """Of the time before the report."""
    input_wait: str
    """A sentence about waiting for input just before the report; may be empty."""
    mains: tuple[tuple[str, int], ...] = ()
    """Node and process id of the main processes that have not ended."""
    cpu_s: float = 0.0
    """CPU time that the report needed, if another process made it."""


def reported(loaded: LoadedRun) -> Reported:
    """Make the report on a run.

    Raises:
        RecordingError: the recording cannot be read.
    """
    report, summary, policy = report_of(loaded), loaded.summary, loaded.policy
    wait = input_wait(summary.program)
    return Reported(
        loaded.run,
        loaded.state,
        report,
        loaded.processes,
        IdleGpus.of_report(summary, policy),
        wait.sentence(policy) if wait else "",
        living_mains(summary.program),
    )


def first_report(directory: Path, settings: Settings) -> Reported:
    """Make the report on a run in a process that only does this.

    Args:
        directory: the recording.
        settings: the user's settings.

    Raises:
        RecordingError: the recording cannot be read.
    """
    began_s = used_cpu_s()
    made = reported(LoadedRun(directory, settings, running_traces=False))
    # The screen has no rooflines. For 10,000 GPUs, they are large.
    report = msgspec.structs.replace(made.report, rooflines=())
    return made._replace(report=report, cpu_s=used_cpu_s() - began_s)


def used_cpu_s() -> float:
    """Return the CPU time of this thread, and of the child processes that have ended."""
    times = os.times()
    return time.thread_time() + times.children_user + times.children_system
