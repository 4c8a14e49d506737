"""What jobs of the accounting cost, by the formula of their cluster."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from teho.explain.bill import bill_of
from teho.jobs.as_run import as_run
from teho.model.accounted import AccountedJob
from teho.model.missing import Missing

__all__ = ["Costs", "JobCost"]

_HOUR_S = 3600.0


class JobCost(NamedTuple):
    """What a job cost until its end, or until now."""

    amount: float
    unit: str
    """The cluster's billing unit, such as `GPU BU`; empty: the job was free of charge."""


class Costs:
    """Computes the cost of many jobs, as `teho report` computes it for one job.

    A list has few different requests, and the cost grows in proportion to the time. So each request
    is billed once.
    """

    def __init__(self) -> None:
        self._of_an_hour: dict[tuple[object, ...], JobCost | None] = {}

    def of(self, job: AccountedJob) -> JobCost | None:
        """Return what a job cost; None: not known, or the job did not begin."""
        if job.elapsed_s is None or job.started_at is None:
            return None
        request = (
            job.scheduler, job.cluster, job.partition, job.nodes, job.cores, job.gpus, job.gpu_type,
            job.memory_bytes, job.more_memory_than_requested, bool(job.node_list or job.hosts),
        )  # fmt: skip
        if request not in self._of_an_hour:
            self._of_an_hour[request] = _of_an_hour(job)
        each = self._of_an_hour[request]
        return each and JobCost(each.amount * job.elapsed_s / _HOUR_S, each.unit)


def _of_an_hour(job: AccountedJob) -> JobCost | None:
    """Return the cost of an hour. The use of the job is left out: it does not change the cost."""
    asked = msgspec.structs.replace(job, elapsed_s=_HOUR_S, admin_comment="", steps=())
    found = as_run(asked)
    billed = bill_of(found.run, found.summary)
    if billed is None or isinstance(billed.cost, Missing):
        return None
    return JobCost(billed.cost.amount, billed.cost.unit)
