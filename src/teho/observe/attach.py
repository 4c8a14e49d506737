"""Records a job that already runs, from outside and without changing it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone

import msgspec

from teho.errors import InputError, RefusedError, SchedulerError
from teho.model.job import Job, RunningJob
from teho.model.run import End, Run, Trouble
from teho.observe.plan import RecordingPlan
from teho.observe.recording import Recording, describe, end_recording
from teho.observe.wanted import Wanted
from teho.observe.whole_job import start_remote_recorders, step_of_job
from teho.schedulers.jobs import accounting
from teho.schedulers.slurm.backend import Slurm
from teho.schedulers.slurm.overlap import look_up
from teho.store.index import remove_run
from teho.store.layout import create_run_directory

__all__ = ["Attached"]

_ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_SEAL_WAIT_S = 15.0
_TRIES = 10
_PAUSE_S = 1.0
"""The accounting reports an end some seconds later than the queue."""


class Attached:
    """The recording of a running job, until the job ends or a signal ends the recording.

    Args:
        wanted: what is to be recorded.
        job: the running job.
        number: the job's id as the user gave it.
        teho: the command that starts this installation of Teho.

    Raises:
        OSError: the recording cannot be written.
    """

    def __init__(
        self, wanted: Wanted, job: RunningJob, number: str, *, teho: Sequence[str]
    ) -> None:
        """Start the recorders, and block the signals that end the recording."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        self._job, self._number = job, number
        self._started_s = time.monotonic()
        run = describe(wanted, self._started_s)
        # Directory and environment belong to this process, not to the job.
        run = msgspec.structs.replace(
            run, step=step_of_job(job, run.id, job.hosts[0]), directory="", environment={}
        )
        directory = create_run_directory(wanted.home, run.id, msgspec.json.encode(run))
        self.recording = Recording(directory.absolute(), run, None, began=True)
        plan = RecordingPlan(
            directory=str(self.recording.directory),
            node="",
            period_s=wanted.period_s,
            started_s=self._started_s,
            started_at=run.started_at,
            node_count=len(job.hosts),
            job=job.number,
        )
        self._recorders = start_remote_recorders(
            job, job.hosts, wanted.home, run, plan, teho=teho, variables=_array(number)
        )

    def wait(self) -> bool:
        """Wait for the end of the job; return whether a signal ended the recording before."""
        while self._recorders.supervise() or not self._recorders.is_over:
            if signal.sigtimedwait(_ENDING, 0.2) is not None:
                return True
        return False

    def finish(self, on_wait: Callable[[], None], *, is_requested: bool) -> Run:
        """Let the recorders seal, and return the run with its end.

        Args:
            on_wait: called again and again while the recorders seal.
            is_requested: whether a signal has ended the recording, and the job probably continues.

        Raises:
            SchedulerError: no node could be recorded.
            OSError: the end cannot be written.
        """
        at, elapsed_s = datetime.now(timezone.utc), time.monotonic() - self._started_s
        self._recorders.end(elapsed_s)
        deadline_s = time.monotonic() + _SEAL_WAIT_S
        while not self._recorders.is_over and time.monotonic() < deadline_s:
            if signal.sigtimedwait(_ENDING, 0.1) is not None:
                break
            on_wait()
        self._recorders.terminate()
        troubles = self._recorders.troubles
        if not self._recorders.has_begun:
            remove_run(self.recording.directory)
            why = "; ".join(what for _, what in troubles)
            why = why or "the job ended before a recorder started"
            raise RefusedError(
                f"job {self._number} was not recorded: {why}",
                "",
                "in the job's script, use `teho run`, which records from the start of the program",
            )
        job = _ended_job(self._job, self._number, continues=is_requested)
        end = End(
            at=at,
            elapsed_s=round(elapsed_s, 6),
            exit_code=job.exit_code if job else None,
            signal=job.signal if job else None,
            job_state=job.state.value if job else "",
        )
        run = msgspec.structs.replace(
            self.recording.run,
            end=end,
            troubles=tuple(Trouble(elapsed_s=round(at_s, 3), what=what) for at_s, what in troubles),
        )
        end_recording(self.recording.directory, run)
        return run


def _array(number: str) -> Mapping[str, str]:
    """Return the variables that name the task of an array."""
    array, sign, task = number.partition("_")
    return {"SLURM_ARRAY_JOB_ID": array, "SLURM_ARRAY_TASK_ID": task} if sign else {}


def _ended_job(job: RunningJob, number: str, *, continues: bool) -> Job | None:
    """Return the job as the scheduler reports it; None if the scheduler does not answer.

    Args:
        job: the job.
        number: its id as the user gave it.
        continues: whether it probably still runs. The accounting is then asked only once.
    """
    for _ in range(1 if continues else _TRIES):
        with contextlib.suppress(SchedulerError):
            found = accounting(Slurm(), number.partition("_")[0])
            ended = next((one for one in found if one.id == number and one.state.ended), None)
            if ended:
                return ended
        if not continues:
            time.sleep(_PAUSE_S)
    with contextlib.suppress(SchedulerError, InputError):
        return Job(id=number, number=job.number, state=look_up(number)[1])
    return None
