"""The price of an hour of a placement on a cluster."""

from __future__ import annotations

from functools import cache

import msgspec

from teho.model.cluster import Cluster
from teho.model.plan import Cost
from teho.model.request import Request
from teho.planner.answer import answer

__all__ = ["Prices"]

_MOST_CORES = 4096


class Prices:
    """A site's prices: of the cheapest job with a number of cores or GPUs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.site = cluster.title
        self._costs = cache(self._cost)

    def hourly(self, kind: str, count: int) -> Cost | None:
        """Return the cost of an hour; None if such a job is not possible or its cost is unknown.

        Args:
            kind: `cpu` or `gpu`.
            count: number of cores, or of GPUs with the site's share of cores and memory.
        """
        return self._costs(kind, count)

    def _cost(self, kind: str, count: int) -> Cost | None:
        own = Request(cpus=count, gpus=0) if kind == "cpu" else Request(gpus=count)
        found = answer(
            msgspec.structs.replace(own, time_s=3600.0), [self._cluster], even_if_retired=True
        )
        costs = [option.cost for option in found.options if option.cost and option.cost.unit]
        return min(costs, key=lambda cost: cost.amount, default=None)

    def same_cost_cores(self, gpus: int) -> int | None:
        """Return the number of cores that cost as much as these GPUs.

        None if it is not known, or if the smallest job with cores costs more. If no job
        can have that number of cores, compute the number from the largest job.
        """
        wanted, one = self.hourly("gpu", gpus), self.hourly("cpu", 1)
        if not wanted or not one or wanted.unit != one.unit or not 0 < one.amount <= wanted.amount:
            return None
        low, high = 1, _MOST_CORES  # `low` cores never cost more than the GPUs
        found = one
        while low < high:
            middle = (low + high + 1) // 2
            cost = self.hourly("cpu", middle)
            if cost is not None and cost.unit == wanted.unit and cost.amount <= wanted.amount:
                low, found = middle, cost
            else:
                high = middle - 1
        is_last = low == _MOST_CORES or self.hourly("cpu", low + 1) is None
        return round(low * wanted.amount / found.amount) if is_last else low
