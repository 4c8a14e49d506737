"""How long the user's own jobs waited for their start, for plans that the scheduler cannot time."""

from __future__ import annotations

import getpass
import math
import statistics
from collections.abc import Iterable

import msgspec

from teho.model.plan import Answer, Option, PastJob, PastWait
from teho.schedulers.inventory import Ask
from teho.schedulers.registry import scheduler_of

__all__ = ["BACK_S", "past_jobs_of_user", "past_wait", "wait_of_same_size", "with_past_waits"]

BACK_S = 90 * 86400.0
"""Jobs of this time count. Sites change their partitions and priorities, so not all jobs do."""
_FEWEST = 5
"""With fewer jobs, a median says little."""
_SIMILAR = 2.0
"""A job counts if its GPUs (or its cores, without GPUs) differ by at most this factor."""


def with_past_waits(found: Answer, cluster: str, scheduler: str, ask: Ask) -> Answer:
    """Return the answer with the past waiting time of each option that has no expected start.

    Args:
        found: the answer of the planner.
        cluster: name of the cluster of this machine.
        scheduler: name of its scheduler.
        ask: runs a command of the scheduler.
    """
    if all(one.expected_start_at for one in found.options if one.cluster == cluster):
        return found
    jobs = past_jobs_of_user(scheduler, ask)
    options = tuple(
        _with_past_wait(one, jobs)
        if one.cluster == cluster and one.expected_start_at is None
        else one
        for one in found.options
    )
    return msgspec.structs.replace(found, options=options)


def past_jobs_of_user(scheduler: str, ask: Ask) -> tuple[PastJob, ...]:
    """Return this user's jobs of the last 90 days that have started; none if it is not known.

    Args:
        scheduler: name of the scheduler of this machine.
        ask: runs a command of the scheduler.
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        return ()
    return scheduler_of(scheduler).past_jobs(ask, user, BACK_S)


def _with_past_wait(option: Option, jobs: Iterable[PastJob]) -> Option:
    waits = _waits_of_similar(jobs, option)
    return msgspec.structs.replace(option, past_wait=_wait(waits), similar_jobs=len(waits))


def past_wait(jobs: Iterable[PastJob], option: Option) -> PastWait | None:
    """Return how long similar jobs waited. None: fewer than five are known.

    Similar jobs were in the same partition and had between half and twice the GPUs, or the cores
    if the option has no GPU.
    """
    return _wait(_waits_of_similar(jobs, option))


def _waits_of_similar(jobs: Iterable[PastJob], option: Option) -> list[float]:
    gpus = option.nodes * option.gpus_per_node
    cores = option.nodes * option.tasks_per_node * option.cpus_per_task * option.cpus_per_core
    return [
        job.wait_s
        for job in jobs
        if job.partition == option.partition
        and bool(job.gpus) == bool(gpus)
        and 1 / _SIMILAR <= (job.gpus / gpus if gpus else job.cores / cores) <= _SIMILAR
    ]


def wait_of_same_size(jobs: Iterable[PastJob], *, gpus: int, cores: int) -> PastWait | None:
    """Return how long jobs with this size waited. None: fewer than five are known.

    They were in any partition, and had this number of GPUs; without GPUs, this number of cores.
    """
    return _wait(
        job.wait_s for job in jobs if job.gpus == gpus and (gpus > 0 or job.cores == cores)
    )


def _wait(waits_s: Iterable[float]) -> PastWait | None:
    waits = sorted(waits_s)
    if len(waits) < _FEWEST:
        return None
    return PastWait(
        median_s=statistics.median(waits),
        most_s=waits[math.ceil(0.9 * len(waits)) - 1],
        jobs=len(waits),
    )
