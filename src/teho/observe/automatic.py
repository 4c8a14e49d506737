"""Records the job of this process without being asked: the recorder of `teho always`.

The job must not notice. If its memory is nearly used up, the recorder ends: it must not be the
reason why the kernel kills a process of the job.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from msgspec.structs import replace

from teho.config.settings import Settings
from teho.devices.host.cgroup import MemoryCgroup
from teho.devices.host.proctree import ProcessTree
from teho.errors import TehoError
from teho.model.job import RunningJob
from teho.model.run import Trouble
from teho.observe.recorder import Recorder
from teho.observe.recorder_end import RecorderEnd
from teho.observe.remote_recorders import RemoteRecorders
from teho.observe.wanted import Wanted
from teho.observe.whole_job import begin_job
from teho.process.json_lines import LineReader
from teho.schedulers.registry import schedulers
from teho.store.automatic import add_troubles, nearest_directory
from teho.units import format_bytes

__all__ = ["record_automatically"]

_DESERTED_S = 2.0
"""Without processes of the job for this time, the job has ended."""
_SEAL_WAIT_S = 15.0
_SPARE_BYTES = 256 << 20
"""The recorder ends if the job has less memory left. Teho's own choice: the recorder uses 80 MB."""
_SPARE_DISK_BYTES = 1 << 30
"""The recorder does not begin if the disk has less space left: the job may need it."""
_FIRST_TO_KILL = "1000"
"""The kernel kills processes with this `oom_score_adj` before all others (proc(5))."""


def record_automatically(settings: Settings, teho: Sequence[str]) -> None:
    """Record the job of this process until it has ended.

    Args:
        settings: the user's.
        teho: the command that starts this installation of Teho.

    Raises:
        TehoError: this process belongs to no job, memory or disk space are scarce, or the settings
            are not valid.
        OSError: the recording cannot be written.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_KILL)
    machine = os.uname().nodename
    found = (scheduler.job_here(os.environ, machine) for scheduler in schedulers().values())
    job = next(filter(None, found), None)
    if job is None or not job.host:
        raise TehoError("this machine runs no job", "a batch script of Slurm or Grid Engine")
    claim = _claim(job)
    if claim is None:
        return  # another recorder of this job was faster
    with claim:
        end = _EndOfJob(job.number)
        if end.is_over:
            raise TehoError("the job has too little memory left for a recorder")
        free_bytes = shutil.disk_usage(nearest_directory(settings.home_directory)).free
        if free_bytes < _SPARE_DISK_BYTES:
            raise TehoError(
                f"only {format_bytes(free_bytes)} are free on the disk of the recordings",
                f"at least {format_bytes(_SPARE_DISK_BYTES)}",
                "set TEHO_HOME to a directory on another disk",
            )
        wanted = Wanted(
            settings,
            (job.name or f"job {job.number}",),
            "",
            {},
            settings.period_s,
            is_automatic=True,
        )
        recording, remote = begin_job(wanted, time.monotonic(), job, mark=None, teho=teho)
        end.remote = remote
        if recording.plan:
            reading, writing = os.pipe()
            os.close(writing)  # without a supervisor, `_EndOfJob` decides
            nowhere = os.open(os.devnull, os.O_WRONLY)
            # The shell that started this process waits for it, and does not belong to the job.
            plan = replace(recording.plan, helper_pids=(*recording.plan.helper_pids, os.getppid()))
            Recorder(plan, LineReader(reading), nowhere, recorder_end=end).run()
        if remote:
            add_troubles(recording.directory, _finish(remote, recording.run.started_at))


def _claim(job: RunningJob) -> socket.socket | None:
    """Return a socket that only one recorder of a job on this node can bind; None: it is taken."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0teho-always-{os.getuid()}-{job.key}")
    except OSError:
        claim.close()
        return None
    return claim


class _EndOfJob(RecorderEnd):
    """Ends the recorder with the last process of the job, and if memory becomes scarce."""

    def __init__(self, number: str) -> None:
        super().__init__(_DESERTED_S)
        self.remote: RemoteRecorders | None = None
        self._memory = MemoryCgroup(Path("/"), number, None)
        self._is_scarce = False
        self._check_memory()

    def check(self, tree: ProcessTree) -> None:
        super().check(tree)
        self._check_memory()
        if self.remote:
            self.remote.supervise()

    def _check_memory(self) -> None:
        used, limit = self._memory.read().get("job_memory_bytes"), self._memory.limit_bytes
        if isinstance(used, (int, float)) and limit is not None:
            self._is_scarce = limit - used < _SPARE_BYTES

    @property
    def is_over(self) -> bool:
        return self._is_scarce or super().is_over


def _finish(remote: RemoteRecorders, began: datetime) -> list[Trouble]:
    """Wait for the recorders of the other nodes, and return their troubles."""
    remote.end((datetime.now(timezone.utc) - began).total_seconds())
    deadline_s = time.monotonic() + _SEAL_WAIT_S
    while not remote.is_over and time.monotonic() < deadline_s:
        time.sleep(0.1)
    remote.terminate()
    return [Trouble(elapsed_s=round(at_s, 3), what=what) for at_s, what in remote.troubles]
