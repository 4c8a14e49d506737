"""A running job for `teho top`: a recording for as long as `teho top` shows it.

If the job cannot be recorded, `teho top` shows what the scheduler reports of it.
"""

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
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.own_path import own_path
from teho.config.settings import Settings
from teho.errors import (
    InputError,
    RecordingError,
    RunNotFoundError,
    SchedulerError,
    TehoError,
    UnconfiguredError,
)
from teho.model.job import JobState
from teho.model.run import RunState
from teho.patterns import lazy_pattern
from teho.store.index import find_run
from teho.store.layout import runs_directory
from teho.store.read import read_run, run_state

if TYPE_CHECKING:
    from teho.show.top.frame import Source
    from teho.show.top.live import LiveSource

__all__ = ["JobRecording", "is_running", "open_run"]

_JOB = lazy_pattern(r"\d{1,15}(_\d{1,9})?", re.ASCII)
_RECORDING = lazy_pattern(r"recording (\S+): job ")
_NEXT = ". Next: "
_PAUSE_S = 0.05
_RECORDERS_S = 20.0
"""A scheduler needs some seconds to start a recorder on each node. After this time, `teho top`
shows the nodes that have come."""
_END_S = 60.0


class _NotRecordedError(Exception):
    """A running job cannot be recorded.

    Args:
        error: why; for the user.
    """

    def __init__(self, error: TehoError) -> None:
        super().__init__(str(error))
        self.error = error


def is_running(directory: Path) -> bool:
    """Return whether the run of a recording is running."""
    return run_state(read_run(directory), directory) is RunState.RUNNING


def open_run(
    reference: str, settings: Settings, opens: Callable[[Path], LiveSource], *, is_screen: bool
) -> tuple[Source, JobRecording | None]:
    """Open a run; if it is a running job without a recording, begin to record it.

    Args:
        reference: what the user gave.
        settings: the user's settings.
        opens: opens a recording.
        is_screen: whether the frames are shown one after the other: one node is then enough for
            the first frame.

    Raises:
        TehoError: there is no such run, and no such job that can be recorded or asked for.
    """
    try:
        directory, job = _find_or_record(reference, settings.home_directory)
        source = opens(directory) if job is None else _begun(job, opens, is_screen=is_screen)
    except _NotRecordedError as reason:
        return _accounted(reference, settings, reason.error), None
    return source, job


def _begun(
    job: JobRecording, opens: Callable[[Path], LiveSource], *, is_screen: bool
) -> LiveSource:
    """Return the source of a recording that has begun on at least one node."""
    source: LiveSource | None = None
    try:
        # Its lease is there before the first recorder, which so sends its first sample at once.
        source = opens(job.directory)
        if is_screen:
            # Textual is loaded while the recorders start.
            import teho.show.top.app  # noqa: F401 - only loaded
        job.wait_for_nodes(source, all_nodes=not is_screen)
        if not is_screen:
            source.make_report()
    except RecordingError:
        job.end()  # a recording that fails is removed
        job.check()
        raise
    except BaseException:
        if source is not None:
            source.close()
        job.end()
        raise
    return source


def _accounted(reference: str, settings: Settings, reason: TehoError) -> Source:
    """Return what the scheduler reports of a running job.

    Raises:
        TehoError: it reports nothing; the error says why the job is not recorded.
    """
    from teho.jobs.ask import accounting_here
    from teho.show.top.accounted import AccountedSource

    try:
        backend = accounting_here(settings.home_directory)
        source = AccountedSource(backend, reference, settings, f"not recorded: {reason.found}")
    except (SchedulerError, InputError):
        raise reason from None
    if not source.is_running:
        raise reason
    return source


def _find_or_record(reference: str, home: Path) -> tuple[Path, JobRecording | None]:
    """Return the recording of a run; if it is a running job without one, begin to record it.

    Raises:
        TehoError: there is no such run, and no such job.
        _NotRecordedError: the job runs, and cannot be recorded.
    """
    may_be_job = _JOB.fullmatch(reference) is not None and shutil.which("squeue") is not None
    directory: Path | None = None
    not_found: RunNotFoundError | None = None
    try:
        directory = find_run(reference, home)
    except RunNotFoundError as error:
        if not may_be_job:
            unrecorded = _is_unrecorded(reference, home)
            if unrecorded is not None:
                raise _NotRecordedError(unrecorded) from None
            raise error from None
        not_found = error
    if directory is not None and (not may_be_job or is_running(directory)):
        return directory, None
    from teho.cli.attach import running_job

    try:
        running_job(reference)
    except TehoError as error:
        if directory is not None:
            return directory, None  # the recording of a job that has ended
        # The commands of Slurm may be installed on a machine of another scheduler.
        if isinstance(error, UnconfiguredError) and (why := _is_unrecorded(reference, home)):
            raise _NotRecordedError(why) from None
        if not_found is not None and isinstance(error, InputError):
            raise not_found from None
        raise
    recording = JobRecording(reference, home)
    return recording.directory, recording


def _is_unrecorded(reference: str, home: Path) -> InputError | None:
    """Return why a running job cannot be recorded; None: there is no such job."""
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
        _NotRecordedError: the job cannot be recorded.

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
        except BaseException:
            self.end()
            raise
        self.directory = runs_directory(home) / self._id

    def _printed(self) -> str:
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def _wait_for_id(self) -> str:
        while True:
            self.check()
            if recorded := _RECORDING.search(self._printed()):
                return recorded[1]
            time.sleep(_PAUSE_S)

    def wait_for_nodes(self, source: LiveSource, *, all_nodes: bool) -> None:
        """Wait until one node records, or all nodes record.

        Raises:
            _NotRecordedError: the job cannot be recorded.
        """
        deadline_s = time.monotonic() + _RECORDERS_S
        while time.monotonic() < deadline_s:
            self.check()
            source.receive()
            if source.is_complete if all_nodes else source.has_begun:
                return
            time.sleep(_PAUSE_S)

    def check(self) -> None:
        """Raise _NotRecordedError if the recording has failed."""
        if self._child.poll():
            last = (self._printed().strip().splitlines() or ["`teho run --job` failed"])[-1]
            found, _, next_step = last.removeprefix("teho: ").partition(_NEXT)
            raise _NotRecordedError(InputError(found, next_step=next_step))

    def end(self) -> bool:
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
        has_ended = self.end()
        if not has_ended or self._child.returncode:
            click.echo(self._printed(), nl=False, err=True)
            say(f"the end of the recording {self._id} was not recorded")
        else:
            say(f"the recording {self._id} has ended: `teho report {self._id}` prints its report")
        self._output.close()
