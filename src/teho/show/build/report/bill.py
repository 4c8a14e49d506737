"""The bill of a run in its report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from teho.model.document import Fact
from teho.model.missing import Missing
from teho.model.run import Run, RunState
from teho.model.summary import Summary

if TYPE_CHECKING:
    from teho.explain.bill import RunBill

__all__ = ["bill_facts", "bill_if_job"]

_NOT_USED = {
    "GPUs": "the cost of the time in which the GPUs had no work",
    "cores": "the cost of the time in which cores were not used",
}


def bill_if_job(run: Run, summary: Summary) -> RunBill | None:
    """Return the bill of a run; None: it was not a job, or its cluster is not known.

    Only the report of a job loads the catalogue, which takes a part of its time.
    """
    if not any(node.allocation.job_id for node in run.nodes):
        return None
    from teho.explain.bill import bill_of

    return bill_of(run, summary)


def bill_facts(billed: RunBill | None, state: RunState) -> Iterator[Fact]:
    """Yield the cost of a run, and the cost of what was not used."""
    if billed is None:
        return
    cost = billed.cost
    if isinstance(cost, Missing):
        yield Fact("cost", "Cost", cost)
    elif not cost.unit:
        yield Fact("cost", "Cost", "free of charge")
    else:
        # The last part of the sum is the amount itself.
        yield Fact("cost", "Cost", cost.amount, cost.unit, cost.sum.rpartition(" = ")[0])
        if state is RunState.RUNNING and billed.at_limit is not None:
            yield Fact("cost_at_limit", "Cost at the time limit", billed.at_limit, cost.unit)
            if not isinstance(billed.at_limit, Missing):
                left = max(0.0, billed.at_limit - cost.amount)
                yield Fact("cost_left", "Cost from now until the time limit", left, cost.unit)
        note = "" if isinstance(billed.unused, Missing) else _NOT_USED[billed.unused_is_of]
        yield Fact("cost_unused", "Not used", billed.unused, cost.unit, note)
