"""Follow a job: report changes of its state, and new lines of its log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Union

from teho.errors import NoAnswerError
from teho.model.job import Job, JobState, Submission
from teho.schedulers.array import with_missing
from teho.schedulers.backend import Backend
from teho.schedulers.jobs import states

__all__ = ["Event", "ended", "follow"]

Event = Union[tuple[Job, ...], bytes]
"""The job's entries after a change (one for each task of an array), or new bytes of the log."""

_TICK_S = 0.5
# A controller answers thousands of users, so sites ask for at most two questions a minute.
_ASK_LEAST_S, _ASK_MOST_S, _ASK_SLOWER = 1.0, 30.0, 1.5
# Grid Engine's accounting has a job some seconds after its end, and Slurm's rarely later.
_UNLISTED_S = 60.0
# The login node may see the last lines of the log after the scheduler reports the end.
_LOG_SETTLES_S = 2.0
_PIECE_BYTES = 1 << 16
# A log that is older than the submission belongs to another job. Clocks of machines may differ.
_SKEW_S = 1.0
_WAITING = frozenset({JobState.PENDING, JobState.HELD})


def ended(jobs: Sequence[Job]) -> bool:
    """Return whether a job, or every task of an array, has ended."""
    return all(job.state.ended for job in jobs)


def follow(
    backend: Backend,
    submission: Submission,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Event]:
    """Yield the changes of a submitted job until it ends, or until no list of the scheduler has it.

    If the scheduler does not answer, it is asked again. Only the log of a single job is read: each
    task of an array has its own.

    Raises:
        SchedulerError: the scheduler refuses, or its command is not installed.
    """
    assert submission.job is not None, "only a submitted job can be followed"  # noqa: S101
    log = _Log()
    jobs: tuple[Job, ...] = ()
    pause_s, ask_at_s, lost_at_s = _ASK_LEAST_S, clock(), clock() + _UNLISTED_S
    while True:
        if clock() >= ask_at_s:
            found = _current_jobs(backend, submission)
            unlisted = _is_unlisted(found)
            if found and not unlisted and _shown(found) != _shown(jobs):
                jobs, pause_s = found, _ASK_LEAST_S
                yield jobs
            else:
                pause_s = min(pause_s * _ASK_SLOWER, _ASK_MOST_S)
            ask_at_s = clock() + pause_s
            if not unlisted:
                lost_at_s = clock() + _UNLISTED_S
            elif clock() >= lost_at_s:
                yield found
                break
            if found and ended(found):
                break
        if log.appears(backend, submission, jobs) and jobs[0].state in _WAITING:
            ask_at_s = clock()  # The job has started: report its state before its first line.
            continue
        yield from log.new_bytes()
        sleep(min(_TICK_S, max(0.0, ask_at_s - clock())))
    sleep(0 if submission.array else _LOG_SETTLES_S)
    log.appears(backend, submission, jobs)
    yield from log.new_bytes()


def _current_jobs(backend: Backend, submission: Submission) -> tuple[Job, ...]:
    """Return the job's entries; empty: the scheduler does not answer at the moment."""
    number = submission.job or ""
    try:
        found = states(backend, [number], {number: submission.submitted_at})[number]
    except NoAnswerError:
        return ()
    return with_missing(submission, found)


def _is_unlisted(jobs: Sequence[Job]) -> bool:
    """Return whether no list has the job, or the rest of an array. It may still appear in one.

    This happens right after the submission, and between the end and the record of it.
    """
    unlisted = [job.state is JobState.UNKNOWN and not job.state_as_written for job in jobs]
    return any(unlisted) and all(
        absent or job.state.ended for job, absent in zip(jobs, unlisted, strict=True)
    )


def _shown(jobs: Sequence[Job]) -> object:
    """Return the facts whose change is reported. An expected start changes with every question."""
    return [(job.id, job.state, job.reason, job.node_list) for job in jobs]


class _Log:
    """Reads the log of one job while the job writes it."""

    def __init__(self) -> None:
        self.found: Path | None = None
        self._read_bytes = 0

    def appears(self, backend: Backend, submission: Submission, jobs: Sequence[Job]) -> bool:
        """Check for the log, and return whether it exists for the first time."""
        if self.found is not None or len(jobs) != 1 or submission.array:
            return False
        path = backend.log_path(submission, jobs[0])
        try:
            is_new = path.stat().st_mtime > submission.submitted_at.timestamp() - _SKEW_S
        except OSError:
            return False
        self.found = path if is_new else None
        return is_new

    def new_bytes(self) -> Iterator[bytes]:
        """Yield the bytes that were added, or the whole file if it was written again."""
        if self.found is None:
            return
        try:
            with self.found.open("rb") as file:
                if self.found.stat().st_size < self._read_bytes:
                    self._read_bytes = 0
                file.seek(self._read_bytes)
                while piece := file.read(_PIECE_BYTES):
                    self._read_bytes += len(piece)
                    yield piece
        except OSError:
            return  # It does not exist or cannot be read now. The next call may find it again.
