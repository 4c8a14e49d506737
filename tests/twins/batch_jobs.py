"""Batch jobs on a Slurm twin whose recordings are in a home that all nodes share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from slurm_twin import SlurmTwin

__all__ = ["BatchJobs"]


class BatchJobs:
    """The twin, a folder for the jobs' outputs, and the home for their recordings."""

    patience_s = 90.0

    def __init__(self, twin: SlurmTwin, folder: Path) -> None:
        self.twin = twin
        self.folder = folder
        self.home = folder / "home"
        twin.environment["TEHO_HOME"] = str(self.home)
        twin.environment["PATH"] = os.environ["PATH"]
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            twin.environment[name] = str(folder)

    def send(self, script: str, directory: Path) -> str:
        """Submit a script that starts in a directory, and return the job's number."""
        sent = self.twin.run("sbatch", "--parsable", f"--chdir={directory}", stdin=script)
        assert sent.returncode == 0, sent.stderr
        return sent.stdout.strip()

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        end_s = time.monotonic() + self.patience_s
        while not holds():
            assert time.monotonic() < end_s, what
            time.sleep(0.2)

    def has_left(self, job: str) -> bool:
        """Return whether the queue no longer has a job."""
        return not self.twin.run("squeue", "-h", "-j", job).stdout.strip()

    def wait(self, job: str) -> None:
        """Wait for a job's end."""
        self.until(f"the end of job {job}", lambda: self.has_left(job))
