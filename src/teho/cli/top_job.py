"""A recording of a running job for as long as `teho top` shows this job."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import click

from teho.cli import say
from teho.cli.own_path import own_path
from teho.errors import InputError, RecordingError, RunNotFoundError, TehoError
from teho.model.job import JobState
from teho.model.run import RunState
from teho.store.index import find_run
from teho.store.layout import runs_directory
from teho.store.read import read_run, run_state

__all__ = ["JobRecording", "find_or_record", "is_running"]

_JOB = re.compile(r"\d{1,15}(_\d{1,9})?", re.ASCII)
_SAID = re.compile(r"recording (\S+): job ")
_PAUSE_S = 0.05
_RECORDERS_S = 20.0
"""A scheduler needs some seconds to start a recorder on each node. After this time, the screen
shows the nodes that have come."""
_END_S = 60.0


def is_running(directory: Path) -> bool:
    """Return whether the run of a recording is running."""
    return run_state(read_run(directory), directory) is RunState.RUNNING


def find_or_record(reference: str, home: Path) -> tuple[Path, JobRecording | None]:
    """Return the recording of a run; if it is a running job without one, begin to record it.

    Args:
        reference: what the user gave.
        home: the directory of all recordings.

    Raises:
        TehoError: there is no such run, and no such job that can be recorded.
    """
    may_be_job = _JOB.fullmatch(reference) is not None and shutil.which("squeue") is not None
    directory: Path | None = None
    not_found: RunNotFoundError | None = None
    try:
        directory = find_run(reference, home)
    except RunNotFoundError as error:
        if not may_be_job:
            raise _is_unrecorded(reference, home) or error from None
        not_found = error
    if directory is not None and (not may_be_job or is_running(directory)):
        return directory, None
    from teho.cli.attach import running_job

    try:
        running_job(reference)
    except TehoError as error:
        if directory is not None:
            return directory, None  # the recording of a job that has ended
        if not_found is not None and isinstance(error, InputError):
            raise not_found from None
        raise
    recording = JobRecording(reference, home)
    return recording.directory, recording


def _is_unrecorded(reference: str, home: Path) -> InputError | None:
    """Return what can be seen of a running job that cannot be recorded; None: no such job."""
    from teho.jobs.ask import accounting_here
    from teho.schedulers.jobs import states
    from teho.schedulers.registry import scheduler_of

    if _JOB.fullmatch(reference) is None:
        return None
    number = reference.partition("_")[0]
    try:
        backend = accounting_here(home)
        found = states(backend, [number])[number]
    except TehoError:
        return None
    running = next((job for job in found if job.state is JobState.RUNNING), None)
    if running is None:
        return None
    shows = scheduler_of(backend.name).advice.running_command(number)
    return InputError(
        f"job {number} runs on {running.node_list or 'a node'} without `teho run`, and "
        f"{backend.title} cannot start a recorder in a running job",
        "",
        f"{f'{shows} prints what this job has used; ' if shows else ''}start `teho run` in the "
        "script of the next job",
    )


class JobRecording:
    """Records a job with `teho run --job` until it is closed.

    Args:
        job: the number of a running job.
        home: the directory of all recordings.

    Raises:
        SystemExit: the job cannot be recorded; the reason is printed.

    Attributes:
        directory: the recording.
    """

    def __init__(self, job: str, home: Path) -> None:
        # Appended to, because this process reads from the beginning of the same file.
        self._output = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed by `close`
        # In a session of its own: Ctrl-C must not end the recording before the screen.
        self._child = subprocess.Popen(
            [*own_path(), "run", "--job", job, "--report", "brief"],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )
        try:
            self._id = self._wait_for_id()
            self.directory = runs_directory(home) / self._id
            self._wait_for_nodes()
        except BaseException:
            self._end()
            raise

    def _said(self) -> str:
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def _wait_for_id(self) -> str:
        while True:
            self._check()
            if said := _SAID.search(self._said()):
                return said[1]
            time.sleep(_PAUSE_S)

    def _wait_for_nodes(self) -> None:
        deadline_s = time.monotonic() + _RECORDERS_S
        while time.monotonic() < deadline_s:
            self._check()
            with contextlib.suppress(RecordingError):
                run = read_run(self.directory)
                if run.step is not None and len(run.nodes) >= len(run.step.hosts):
                    return
            time.sleep(_PAUSE_S)

    def _check(self) -> None:
        """Print why the recording has failed, and exit, if it has."""
        if self._child.poll():
            click.echo(self._said(), nl=False, err=True)
            raise SystemExit(self._child.returncode)

    def _end(self) -> bool:
        """End the recording; return whether it has ended by itself."""
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return False
        return True

    def close(self) -> None:
        """End the recording; the job continues."""
        has_ended = self._end()
        if not has_ended or self._child.returncode:
            click.echo(self._said(), nl=False, err=True)
            say(f"the end of the recording {self._id} was not recorded")
        else:
            say(f"the recording {self._id} has ended: `teho report {self._id}` prints its report")
        self._output.close()
