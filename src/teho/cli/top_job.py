"""A recording of a running job for as long as `teho top` shows this job."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from teho.cli import say
from teho.cli.attach import running_job
from teho.cli.own_path import own_path
from teho.errors import RecordingError, RunNotFoundError, TehoError
from teho.store.index import find_run
from teho.store.layout import runs_directory
from teho.store.read import read_run

__all__ = ["JobRecording", "find_or_record"]

_JOB = re.compile(r"\d{1,15}(_\d{1,9})?", re.ASCII)
_SAID = re.compile(r"recording (\S+): job ")
_PAUSE_S = 0.05
_RECORDER_S = 20.0
"""A scheduler needs some seconds to start a recorder on a node. The screen then shows nodes as they
come."""
_END_S = 30.0


def find_or_record(
    reference: str, home: Path, is_running: Callable[[Path], bool]
) -> tuple[Path, JobRecording | None]:
    """Return the recording of a run; if it is a running job without one, begin to record it.

    Args:
        reference: what the user gave.
        home: the directory of all recordings.
        is_running: whether the run of a recording is running.

    Raises:
        TehoError: there is no such run, and no such job that can be recorded.
    """
    directory: Path | None = None
    may_be_job = _JOB.fullmatch(reference) is not None and shutil.which("squeue") is not None
    try:
        directory = find_run(reference, home)
    except RunNotFoundError:
        if not may_be_job:
            raise
    if directory is not None and (not may_be_job or is_running(directory)):
        return directory, None
    try:
        running_job(reference)
    except TehoError:
        if directory is None:
            raise
        return directory, None  # the recording of a job that has ended
    recording = JobRecording(reference, home)
    return recording.directory, recording


class JobRecording:
    """Records a job with `teho run --job` until it is closed.

    Args:
        job: the number of a running job.
        home: the directory of all recordings.

    Attributes:
        directory: the recording.
    """

    def __init__(self, job: str, home: Path) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        # In a session of its own: Ctrl-C must not end the recording before the screen.
        self._child = subprocess.Popen(
            [*own_path(), "run", "--job", job],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )
        while (said := _SAID.search(self._said())) is None:
            if self._child.poll() is not None:
                click.echo(self._said(), nl=False, err=True)
                self._output.close()
                raise SystemExit(self._child.returncode or 1)
            time.sleep(_PAUSE_S)
        self._id = said[1]
        self.directory = runs_directory(home) / self._id
        self._wait_for_a_node()

    def _said(self) -> str:
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def _wait_for_a_node(self) -> None:
        deadline_s = time.monotonic() + _RECORDER_S
        while time.monotonic() < deadline_s and self._child.poll() is None:
            with contextlib.suppress(RecordingError):
                if read_run(self.directory).nodes:
                    return
            time.sleep(_PAUSE_S)

    def close(self) -> None:
        """End the recording; the job continues."""
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(_END_S)
        self._output.close()
        say(f"the recording {self._id} has ended: `teho report {self._id}` prints its report")
