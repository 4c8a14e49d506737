"""Which processes of a node are a job's, where they descend from no supervisor of Teho's.

A scheduler starts the tasks of `srun` itself: on the node of the batch script they are no
children of the program, and on the other nodes nobody of Teho's is above them. They are known by
their environment, or by the cgroup that the scheduler has put them in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

__all__ = ["RECORDED", "RECORDER", "JobProcesses", "is_recorded", "new_mark"]

RECORDED = "TEHO_RECORDED_JOB"
"""Variable of a program whose job is recorded as a whole: the job, and the supervisor's pid."""
RECORDER = "TEHO_RECORDER"
"""Variable of the recorders that are started on a job's nodes, and of their `srun`."""

# Larger numbers stand for the batch script and the like, as in `teho.schedulers.task`.
_STEP = re.compile(rb"\0SLURM_STEP_?ID=\d{1,9}\0")
_CGROUP_STEP = r"/step_\d{1,9}(/|$)"


def new_mark(environment: Mapping[str, str]) -> str:
    """Return the mark of a recording that this process leads, of the job that it is in."""
    return f"{_job(environment)}.{os.getpid()}"


def is_recorded(environment: Mapping[str, str]) -> bool:
    """Return whether a `teho run` around this process records its whole job."""
    recorded = environment.get(RECORDED, "").partition(".")[0]
    return recorded != "" and recorded == _job(environment)


def _job(environment: Mapping[str, str]) -> str:
    return environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID", "")


class JobProcesses:
    """Tells whether a process is one of a job's.

    Args:
        job: the job's number, as `SLURM_JOB_ID` has it.
        mark: what `RECORDED` says in the environment of this recording's program. Its tasks carry
            it, where the step hands the environment on; those of steps without any mark count
            too. None: everything counts that the job runs, its script included.
    """

    def __init__(self, job: str, mark: str | None) -> None:
        self._user = os.getuid()
        self._job = re.compile(rb"\0SLURM_JOB_?ID=" + re.escape(job).encode() + rb"\0")
        below = _CGROUP_STEP if mark is not None else r"(/|$)"
        self._cgroup = re.compile(rf"/job_{re.escape(job)}{below}".encode(), re.MULTILINE)
        self._mark = None if mark is None else f"\0{RECORDED}={mark}\0".encode()

    def __call__(self, directory: str) -> bool:
        """Tell it of the process of a directory such as /proc/4711."""
        try:
            if os.stat(directory).st_uid != self._user:  # noqa: PTH116 - of each new process
                return False
            variables = b"\0" + _read(directory + "/environ") + b"\0"
            if f"\0{RECORDER}=".encode() in variables:
                return False
            if self._mark is not None and f"\0{RECORDED}=".encode() in variables:
                return self._mark in variables
            if self._job.search(variables):
                return self._mark is None or _STEP.search(variables) is not None
            return self._cgroup.search(_read(directory + "/cgroup")) is not None
        except OSError:
            # It has ended, or hides its environment, as what is not its owner's any more does.
            return False


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - of each new process
        return file.read()
