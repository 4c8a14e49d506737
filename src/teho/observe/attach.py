"""Recording a job that runs already, from outside and without touching it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone

import msgspec

from teho.errors import InputError, RefusedError, SchedulerError
from teho.model.job import Job
from teho.model.run import End, Run, Step, Trouble
from teho.observe.plan import RecordingPlan
from teho.observe.recording import Recording, describe, end_recording
from teho.observe.wanted import Wanted
from teho.observe.whole_job import start_remote_recorders
from teho.schedulers.jobs import accounting
from teho.schedulers.slurm.backend import Slurm
from teho.schedulers.slurm.overlap import RunningJob, look_up
from teho.store.index import remove_run
from teho.store.layout import create_run_directory, safe_name

__all__ = ["Attached"]

_ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_SEAL_WAIT_S = 15.0
# The accounting learns of an end some seconds after the queue.
_LOOKS = 10
_LOOK_S = 1.0


class Attached:
    """The recording of somebody else's job, until that ends or we are asked to.

    Args:
        wanted: what is to be recorded.
        job: the running job.
        asked: the job as the user named it.
        teho: the command that starts this very Teho.

    Raises:
        OSError: the recording cannot be written.
    """

    def __init__(self, wanted: Wanted, job: RunningJob, asked: str, *, teho: Sequence[str]) -> None:
        """Begin; signals that end the recording are held back from now on."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        self._job, self._asked = job, asked
        self._started_s = time.monotonic()
        run = describe(wanted, self._started_s)
        step = Step(
            key=f"{job.key}-{run.id}",
            started_by="Slurm",
            began_on=safe_name(job.hosts[0]),
            task_count=1,
            node_count=len(job.hosts),
            hosts=job.hosts,
        )
        # Directory and environment are ours, and say nothing of the job.
        run = msgspec.structs.replace(run, step=step, directory="", environment={})
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
        self._fleet = start_remote_recorders(
            job, job.hosts, wanted.home, run, plan, teho=teho, told=_array(asked)
        )

    def wait(self) -> bool:
        """Wait until the job has ended, or a signal ends the recording; return whether one did."""
        while self._fleet.tend() or not self._fleet.is_over:
            if signal.sigtimedwait(_ENDING, 0.2) is not None:
                return True
        return False

    def finish(self, on_wait: Callable[[], None], *, is_asked: bool) -> Run:
        """Let the recorders seal, and return the run with its end.

        Args:
            on_wait: called while there is nothing else to do.
            is_asked: whether a signal has ended the recording, and the job probably goes on.

        Raises:
            SchedulerError: no node could be recorded.
            OSError: the end cannot be written.
        """
        at, elapsed_s = datetime.now(timezone.utc), time.monotonic() - self._started_s
        self._fleet.end(elapsed_s)
        deadline_s = time.monotonic() + _SEAL_WAIT_S
        while not self._fleet.is_over and time.monotonic() < deadline_s:
            if signal.sigtimedwait(_ENDING, 0.1) is not None:
                break
            on_wait()
        self._fleet.give_up()
        troubles = self._fleet.troubles
        if not self._fleet.has_begun:
            remove_run(self.recording.directory)
            why = "; ".join(what for _, what in troubles) or "it ended before a recorder came up"
            raise RefusedError(
                f"job {self._asked} was not recorded: {why}",
                "",
                "`teho run` in the job's script records it from its start",
            )
        told = _how_it_ended(self._job, self._asked, goes_on=is_asked)
        end = End(
            at=at,
            elapsed_s=round(elapsed_s, 6),
            exit_code=told.exit_code if told else None,
            signal=told.signal if told else None,
            job_state=told.state.value if told else "",
        )
        run = msgspec.structs.replace(
            self.recording.run,
            end=end,
            troubles=tuple(Trouble(elapsed_s=round(at_s, 3), what=what) for at_s, what in troubles),
        )
        end_recording(self.recording.directory, run)
        return run


def _array(asked: str) -> Mapping[str, str]:
    """Return by which variables a step knows that it is of an array's task."""
    array, sign, task = asked.partition("_")
    return {"SLURM_ARRAY_JOB_ID": array, "SLURM_ARRAY_TASK_ID": task} if sign else {}


def _how_it_ended(job: RunningJob, asked: str, *, goes_on: bool) -> Job | None:
    """Return what the scheduler says of a job; None if it says nothing.

    Args:
        job: the job.
        asked: as the user named it.
        goes_on: whether it has probably not ended, so that nobody waits for the accounting.
    """
    for _ in range(1 if goes_on else _LOOKS):
        with contextlib.suppress(SchedulerError):
            found = accounting(Slurm(), asked.partition("_")[0])
            told = next((one for one in found if one.id == asked and one.state.ended), None)
            if told:
                return told
        if not goes_on:
            time.sleep(_LOOK_S)
    with contextlib.suppress(SchedulerError, InputError):
        return Job(id=asked, number=job.number, state=look_up(asked)[1])
    return None
