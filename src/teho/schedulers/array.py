"""Job arrays: the indices of their tasks, and the tasks that no list of the scheduler has."""

from __future__ import annotations

import re
from collections.abc import Sequence

from teho.model.job import Job, JobState, Submission
from teho.patterns import lazy_pattern

__all__ = ["NOWHERE", "count_tasks", "tasks_of", "with_missing"]

_RANGE = lazy_pattern(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?", re.ASCII)
_MOST_TASKS = 100_000
NOWHERE = "the job is neither in the queue nor (yet) in the accounting"
"""Why the state of a job, or of a task, is not known."""


def tasks_of(array: str) -> tuple[str | None, ...]:
    """Return the indices of `1-10:3,15%2`; a single None if the job is not an array.

    Raises:
        ValueError: not a list of indices.
    """
    if not array:
        return (None,)
    ranges = []
    for item in array.partition("%")[0].split(","):
        match = _RANGE.fullmatch(item.strip())
        if match is None:
            raise ValueError(f"array {array!r} is not a list of indices such as 1-10 or 0,3,7")
        first, last, step = match.groups(default="")
        ranges.append(range(int(first), int(last or first) + 1, int(step or 1) or 1))
    total = sum(map(len, ranges))
    if not 0 < total <= _MOST_TASKS:
        raise ValueError(f"array {array!r} has {total} tasks; 1 to {_MOST_TASKS} are allowed")
    return tuple(str(index) for indices in ranges for index in indices)


def count_tasks(job: Job) -> int:
    """Return the number of tasks of an entry, such as `123_[5-9]`; 1 if it cannot be read."""
    try:
        return len(tasks_of(job.task or ""))
    except ValueError:
        return 1


def with_missing(submission: Submission, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return an array's entries, and one UNKNOWN entry for the tasks that no list has.

    Tasks of Grid Engine leave the queue before the accounting has them, each at another time. So
    if all known tasks have ended, another task may still have failed. If a task waits or runs, or
    if the scheduler's indices cannot be read, no entry is added.
    """
    if not submission.array or not all(job.state.ended for job in jobs):
        return tuple(jobs)
    try:
        listed = {task for job in jobs if job.task for task in tasks_of(job.task)}
        missing = [task for task in tasks_of(submission.array) if task and task not in listed]
    except ValueError:
        return tuple(jobs)
    if not listed or not missing:
        return tuple(jobs)
    unknown = Job(
        id=f"{submission.number}_[{','.join(missing)}]",
        number=submission.number,
        task=",".join(missing),
        state=JobState.UNKNOWN,
        reason=NOWHERE,
    )
    return (*jobs, unknown)
