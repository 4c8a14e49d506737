"""A twin of Puhti whose nodes share a folder for recordings, and the jobs that record there."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from slurm_twin import SlurmTwin

from support import TEHO
from teho.clusters.catalogue import load_cluster

__all__ = ["RecordingSite", "recording_site"]


class RecordingSite:
    """The twin, and the recordings that its nodes share."""

    def __init__(self, twin: SlurmTwin, folder: Path) -> None:
        self.twin = twin
        self.folder = folder
        self.home = folder / "home"

    def send(self, script: str, folder: Path) -> str:
        """Submit a script that runs in a folder, and return the job's number."""
        sent = self.twin.run("sbatch", "--parsable", f"--chdir={folder}", stdin=script)
        assert sent.returncode == 0, sent.stderr
        return sent.stdout.strip()

    def until(
        self, what: str, holds: Callable[[], bool], patience_s: float = 180, every_s: float = 0.2
    ) -> None:
        end_s = time.monotonic() + patience_s
        while not holds():
            assert time.monotonic() < end_s, what
            time.sleep(every_s)

    def state(self, job: str) -> str:
        return self.twin.run("squeue", "-h", "-j", job, "-o", "%T").stdout

    def has_left(self, job: str) -> bool:
        return not self.state(job).strip()

    def wait(self, job: str) -> None:
        # To ask Slurm is work for two cores, on which other tests run.
        self.until(f"the end of job {job}", lambda: self.has_left(job), every_s=0.6)

    def teho(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.twin.run(*TEHO, *arguments)

    def said(self, job: str) -> str:
        return (self.folder / f"{job}.out").read_text()


@contextmanager
def recording_site(nodes: int, *, apart: bool = False) -> Iterator[RecordingSite]:
    """Start a twin with this number of GPU nodes; `apart`: each sees only its own processes."""
    with (
        tempfile.TemporaryDirectory(prefix="site-") as folder,
        tempfile.TemporaryDirectory(prefix="twin-") as place,
        SlurmTwin(
            load_cluster("puhti", {}), Path(place), live={"gpu": nodes}, asleep=False, apart=apart
        ) as twin,
    ):
        site = RecordingSite(twin, Path(folder))
        twin.environment.update(
            {
                "TEHO_HOME": str(site.home),
                "PATH": os.environ["PATH"],
                "XDG_CONFIG_HOME": folder,
                "XDG_CACHE_HOME": folder,
            }
        )
        yield site
