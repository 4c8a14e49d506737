"""What a job cost that ran for less than it asked for, by the sites' formulas."""

from __future__ import annotations

from typing import Any

import pytest

from teho.clusters.catalogue import load_catalogue
from teho.model.plan import Option
from teho.model.request import Request
from teho.planner.answer import answer
from teho.planner.cost import cost_of_use
from teho.planner.shape import fewest_nodes

CLUSTERS = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})


def option(cluster: str, partition: str | None = None, **needs: Any) -> Option:
    request = Request(partition=partition, **needs)
    return answer(request, [CLUSTERS[cluster]], even_if_retired=True).options[0]


@pytest.mark.parametrize(
    ("cluster", "partition", "needs", "hours", "amount"),
    [
        # (gpus*60 + cores + memGiB*0.1 + nvmeGiB*0.006) * h
        ("puhti", "gpu", {"memory_mib": 80 * 1024, "cpus_per_gpu": 10, "time_s": 36000.0}, 1, 78),
        # whole nodes: nodes * 4 * h
        ("lumi", "standard-g", {"gpus": 8, "time_s": 36000.0}, 0.5, 2),
        # max(RGU, cores / 3, memory / 31.1): the cores are the most
        ("narval", None, {"cpus_per_gpu": 24, "memory_mib": 124 * 1024, "time_s": 36000.0}, 2, 16),
        # 256 MB with each core where none is asked for: max(cores, GB / 4)
        ("narval", None, {"gpus": 0, "cpus": 4, "time_s": 36000.0}, 3, 12),
        # a whole node of the CPU nodes; the partition of the GPU nodes has the same name
        ("trillium", None, {"gpus": 0, "cpus": 4, "time_s": 36000.0}, 3, 576),
    ],
)
def test_the_bill_is_that_of_the_time_it_ran(
    cluster: str, partition: str | None, needs: dict[str, Any], hours: float, amount: float
) -> None:
    planned = option(cluster, partition, **needs)
    cost = cost_of_use(planned, CLUSTERS[cluster], hours * 3600)
    assert cost is not None
    assert cost.amount == pytest.approx(amount)
    assert planned.cost is not None
    assert planned.cost.amount == pytest.approx(amount / hours * 10)


def test_memory_that_the_site_chose_is_billed_as_it_was_given() -> None:
    planned = option("puhti", "small", gpus=0, cpus=4, time_s=3600.0)
    assert cost_of_use(planned, CLUSTERS["puhti"], 3600) is None, "nobody knows the memory"
    cost = cost_of_use(planned, CLUSTERS["puhti"], 3600, memory_mib=20 * 1024)
    assert cost is not None
    assert cost.amount == pytest.approx(4 + 2)
    named = option("puhti", "small", gpus=0, cpus=4, memory_mib=10 * 1024, time_s=3600.0)
    cost = cost_of_use(named, CLUSTERS["puhti"], 3600, memory_mib=20 * 1024)
    assert cost is not None
    assert cost.amount == pytest.approx(4 + 1), "what was asked for is what is billed"


def test_a_partition_that_is_no_more_has_no_bill() -> None:
    assert cost_of_use(option("puhti", "gpu"), CLUSTERS["mahti"], 3600) is None


@pytest.mark.parametrize(
    ("gpus", "most", "nodes"),
    [(0, 4, 1), (1, 4, 1), (4, 4, 1), (6, 4, 2), (7, 4, 7), (12, 8, 2), (10**9 + 7, 4, 10**9 + 7)],
)
def test_the_fewest_nodes_that_share_evenly(gpus: int, most: int, nodes: int) -> None:
    assert fewest_nodes(gpus, most) == nodes
