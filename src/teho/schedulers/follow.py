"""Following a job: its state as it changes, and its log as it grows."""

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
"""The job's entries (of an array, one a task) after a change, or what the log has grown by."""

_TICK_S = 0.5
# A controller answers thousands of users: sites ask for no more than two questions a minute.
_ASK_LEAST_S, _ASK_MOST_S, _ASK_SLOWER = 1.0, 30.0, 1.5
# Grid Engine's accounting comes some seconds after the job's end, Slurm's rarely later.
_NOWHERE_S = 60.0
# The last lines may reach the login node's view of the log after the scheduler's word.
_LOG_SETTLES_S = 2.0
_PIECE_BYTES = 1 << 16
# A log that is older than its job's submission is another job's. Clocks of two machines differ.
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
    """Yield what happens to a submitted job until it has ended, or is nowhere to be found.

    A question that the scheduler leaves unanswered is asked again: the job goes on all the
    same. The log is that of a single job; the tasks of an array write one each.

    Raises:
        SchedulerError: the scheduler says no, or its command is not here.
    """
    assert submission.job is not None, "only what was submitted can be followed"  # noqa: S101
    log = _Log()
    jobs: tuple[Job, ...] = ()
    pause_s, ask_at_s, lost_at_s = _ASK_LEAST_S, clock(), clock() + _NOWHERE_S
    while True:
        if clock() >= ask_at_s:
            found = _asked(backend, submission)
            nowhere = _has_left(found)
            if found and not nowhere and _gist(found) != _gist(jobs):
                jobs, pause_s = found, _ASK_LEAST_S
                yield jobs
            else:
                pause_s = min(pause_s * _ASK_SLOWER, _ASK_MOST_S)
            ask_at_s = clock() + pause_s
            if not nowhere:
                lost_at_s = clock() + _NOWHERE_S
            elif clock() >= lost_at_s:
                yield found
                break
            if found and ended(found):
                break
        if log.appears(backend, submission, jobs) and jobs[0].state in _WAITING:
            ask_at_s = clock()  # it has started: its state is told before its first line
            continue
        yield from log.grown()
        sleep(min(_TICK_S, max(0.0, ask_at_s - clock())))
    sleep(0 if submission.array else _LOG_SETTLES_S)
    log.appears(backend, submission, jobs)
    yield from log.grown()


def _asked(backend: Backend, submission: Submission) -> tuple[Job, ...]:
    """Return the job's entries; empty if the scheduler does not answer for now."""
    number = submission.job or ""
    try:
        found = states(backend, [number], {number: submission.submitted_at})[number]
    except NoAnswerError:
        return ()
    return with_missing(submission, found)


def _has_left(jobs: Sequence[Job]) -> bool:
    """Return whether the job, or the rest of an array, is in no list: it may yet come to one."""
    return any(map(_is_nowhere, jobs)) and all(_is_nowhere(job) or job.state.ended for job in jobs)


def _is_nowhere(job: Job) -> bool:
    """Return whether the scheduler lists no such job: just submitted, or between its two lists."""
    return job.state is JobState.UNKNOWN and not job.state_as_written


def _gist(jobs: Sequence[Job]) -> object:
    """Return what is worth a line; an expected start moves with every question."""
    return [(job.id, job.state, job.reason, job.node_list) for job in jobs]


class _Log:
    """The log of one job, read as it grows."""

    def __init__(self) -> None:
        self.found: Path | None = None
        self._read_bytes = 0

    def appears(self, backend: Backend, submission: Submission, jobs: Sequence[Job]) -> bool:
        """Look for the log, and tell whether it is there for the first time."""
        if self.found is not None or len(jobs) != 1 or submission.array:
            return False
        path = backend.log_path(submission, jobs[0])
        try:
            is_its_own = path.stat().st_mtime > submission.submitted_at.timestamp() - _SKEW_S
        except OSError:
            return False
        self.found = path if is_its_own else None
        return is_its_own

    def grown(self) -> Iterator[bytes]:
        """Yield what has been added; from the start where the file was begun again."""
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
            return  # gone, or not readable for a moment: the next look may find it again
