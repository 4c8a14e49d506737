"""Finds the processes of a job on a node, if they are not descendants of a supervisor.

The scheduler starts the tasks of `srun`. On the node of the batch script they are not children of
the program, and on other nodes Teho has no parent process. Their environment or their cgroup
shows that they belong to the job.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from teho.patterns import lazy_pattern

__all__ = ["RECORDED", "RECORDER", "JobProcesses", "is_recorded", "new_mark"]

RECORDED = "TEHO_RECORDED_JOB"
"""Variable of a program whose whole job is recorded: the job, and the supervisor's pid."""
RECORDER = "TEHO_RECORDER"
"""Variable of the remote recorders of a job, and of their `srun`."""

# Larger numbers mean the batch script and similar steps, as in `teho.schedulers.task`.
_STEP = lazy_pattern(rb"\0SLURM_STEP_?ID=\d{1,9}\0")
_CGROUP_STEP = r"/step_\d{1,9}(/|$)"


def new_mark(environment: Mapping[str, str]) -> str:
    """Return the mark of the recording that this process supervises, in its job."""
    return f"{_job(environment)}.{os.getpid()}"


def is_recorded(environment: Mapping[str, str]) -> bool:
    """Return whether a `teho run` around this process records its whole job."""
    recorded = environment.get(RECORDED, "").partition(".")[0]
    return recorded != "" and recorded == _job(environment)


def _job(environment: Mapping[str, str]) -> str:
    return environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID", "")


class JobProcesses:
    """Decides whether a process belongs to a job.

    Args:
        job: the job's number, as in `SLURM_JOB_ID`.
        mark: the value of `RECORDED` in the environment of this recording's program. Its tasks
            have the same value if the step passes the environment on. Processes of steps without
            a mark count too. None: all processes of the job count, including its script.
        variables: variables that only processes of the job have; empty: `SLURM_JOB_ID`.
    """

    def __init__(
        self, job: str, mark: str | None, variables: Mapping[str, str] | None = None
    ) -> None:
        self._user = os.getuid()
        named = variables or {"SLURM_JOB_?ID": job}
        self._job = tuple(
            re.compile(f"\0{name}={re.escape(value)}\0".encode()) for name, value in named.items()
        )
        below = _CGROUP_STEP if mark is not None else r"(/|$)"
        self._cgroup = re.compile(rf"/job_{re.escape(job)}{below}".encode(), re.MULTILINE)
        self._mark = None if mark is None else f"\0{RECORDED}={mark}\0".encode()

    def __call__(self, directory: str) -> bool:
        """Return whether a process belongs to the job; its directory is /proc/4711 or similar."""
        try:
            if os.stat(directory).st_uid != self._user:  # noqa: PTH116 - of each new process
                return False
            variables = b"\0" + _read(directory + "/environ") + b"\0"
            if f"\0{RECORDER}=".encode() in variables:
                return False
            if self._mark is not None and f"\0{RECORDED}=".encode() in variables:
                return self._mark in variables
            if all(one.search(variables) for one in self._job):
                return self._mark is None or _STEP.search(variables) is not None
            return self._cgroup.search(_read(directory + "/cgroup")) is not None
        except OSError:
            # It has ended, or its environment cannot be read because its user has changed.
            return False


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - of each new process
        return file.read()
