"""`teho run --job JOB`: record a job that runs already."""

from __future__ import annotations

import re
import shutil
import sys

from teho.cli import say
from teho.cli.own_path import own_path
from teho.cli.progress import ProgressLine
from teho.cli.report import print_text
from teho.errors import InputError, MissingCommandError
from teho.model.job import JobState
from teho.observe.attach import Attached
from teho.observe.wanted import Wanted
from teho.schedulers.slurm.overlap import RunningJob, look_up
from teho.show.loaded import LoadedRun
from teho.show.text.document import Detail

__all__ = ["attach"]

_JOB = re.compile(r"\d{1,15}(_\d{1,9})?", re.ASCII)
_NOT_YET = frozenset({JobState.PENDING, JobState.HELD})


def attach(asked: str, wanted: Wanted, shown: str) -> None:
    """Record a job until it ends, or until Ctrl-C, and report.

    Args:
        asked: the job, as the user names it.
        wanted: what is to be recorded; its command is the job's script.
        shown: `none`, `short` or `full`.

    Raises:
        InputError: there is no such job of this user's, or it does not run.
        SchedulerError: Slurm does not let it be recorded.
    """
    job = _running(asked)
    command = (job.script or job.name or f"job {asked}",)
    attached = Attached(wanted._replace(command=command), job, asked, teho=own_path())
    quiet = shown == "none"
    if not quiet:
        nodes = f"{len(job.hosts)} node{'s' if len(job.hosts) > 1 else ''}"
        say(
            f"recording {attached.recording.run.id}: job {asked} on {nodes}; Ctrl-C ends the "
            "recording, and the job goes on"
        )
    is_asked = attached.wait()
    run = attached.finish(ProgressLine(quiet=quiet), is_asked=is_asked)
    if not quiet:
        loaded = LoadedRun(attached.recording.directory, wanted.settings, run)
        detail: Detail = "default" if shown == "full" else "brief"
        print_text(loaded.view_with(plots=False), sys.stderr, detail)


def _running(asked: str) -> RunningJob:
    """Return a job that runs.

    Raises:
        InputError: there is no such job of this user's, or it does not run.
        MissingCommandError: there is no Slurm here.
        SchedulerError: Slurm cannot be asked.
    """
    if _JOB.fullmatch(asked) is None:
        raise InputError(
            f"--job {asked!r}", "a job's number, or a task's such as 123_4", "`squeue --me`"
        )
    if shutil.which("squeue") is None:
        grid_engine = "; Grid Engine starts nothing beside a job that runs"
        raise MissingCommandError(
            f"no squeue here{grid_engine if shutil.which('qstat') else ''}",
            "a machine with Slurm's commands, such as a login node",
            "log in there, or start `teho run` in the job's script",
        )
    job, state = look_up(asked)
    if state in _NOT_YET:
        raise InputError(f"job {asked} waits", "a job that runs", "put `teho run` into its script")
    if state.ended or state is JobState.COMPLETING or not job.hosts:
        raise InputError(
            f"job {asked} has ended ({state.value.replace('_', ' ')})",
            "a job that runs",
            "`teho list` shows what was recorded of it",
        )
    return job
