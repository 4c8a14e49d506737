"""`teho run --job JOB`: record a job that already runs."""

from __future__ import annotations

import re
import shutil
import sys

from teho.cli import say
from teho.cli.own_path import own_path
from teho.cli.progress import ProgressLine
from teho.cli.terminal import print_text
from teho.errors import InputError, MissingCommandError
from teho.model.job import JobState, RunningJob
from teho.observe.attach import Attached
from teho.observe.wanted import Wanted
from teho.patterns import lazy_pattern
from teho.schedulers.slurm.overlap import look_up
from teho.show.loaded import LoadedRun
from teho.show.text.document import Detail

__all__ = ["attach", "running_job"]

_JOB = lazy_pattern(r"\d{1,15}(_\d{1,9})?", re.ASCII)
_NOT_YET = frozenset({JobState.PENDING, JobState.HELD})


def attach(number: str, wanted: Wanted, shown: str) -> None:
    """Record a job until it ends, or until Ctrl-C, and report.

    Args:
        number: the number of the job.
        wanted: what to record; the job's script becomes its command.
        shown: how much to print: `none`, `short` or `full`.

    Raises:
        InputError: this user has no such job, or the job does not run.
        SchedulerError: Slurm does not allow the recording.
    """
    job = running_job(number)
    command = (job.script or job.name or f"job {number}",)
    attached = Attached(wanted._replace(command=command), job, number, teho=own_path())
    quiet = shown == "none"
    if not quiet:
        nodes = f"{len(job.hosts)} node{'s' if len(job.hosts) > 1 else ''}"
        say(
            f"recording {attached.recording.run.id}: job {number} on {nodes}; Ctrl-C ends the "
            "recording, and the job continues"
        )
    is_requested = attached.wait()
    run = attached.finish(ProgressLine(quiet=quiet), is_requested=is_requested)
    if not quiet:
        loaded = LoadedRun(attached.recording.directory, wanted.settings, run)
        detail: Detail = "default" if shown == "full" else "brief"
        print_text(loaded.view_with(plots=False), sys.stderr, detail)


def running_job(number: str) -> RunningJob:
    """Return a running job.

    Raises:
        InputError: this user has no such job, or the job does not run.
        MissingCommandError: this machine has no commands of Slurm.
        SchedulerError: Slurm does not answer.
    """
    if _JOB.fullmatch(number) is None:
        raise InputError(
            f"--job {number!r} is not a job number",
            "the number of a job such as 123, or of a task such as 123_4",
            "`squeue --me` lists your jobs",
        )
    if shutil.which("squeue") is None:
        grid_engine = " (Teho cannot record a running job of Grid Engine)"
        raise MissingCommandError(
            "--job needs Slurm's command squeue, and this machine does not have it"
            + (grid_engine if shutil.which("qstat") else ""),
            "a machine with the commands of Slurm, such as a login node",
            "log in to such a machine, or start `teho run` in the job's script",
        )
    job, state = look_up(number)
    if state in _NOT_YET:
        raise InputError(
            f"job {number} has not started", "a running job", "put `teho run` into the job's script"
        )
    if state.ended or state is JobState.COMPLETING or not job.hosts:
        raise InputError(
            f"job {number} has ended ({state.value.replace('_', ' ')})",
            "a running job",
            "`teho list` shows the recordings of this job",
        )
    return job
