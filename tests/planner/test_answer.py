"""Order, bills and shapes of an answer; and every answer held against the catalogue again."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teho.clusters.catalogue import load_catalogue
from teho.model.cluster import Cluster, NodeKind, Partition
from teho.model.plan import Answer, Option, Refusal
from teho.model.request import Request
from teho.planner.answer import answer
from teho.units import parse_duration, parse_mib

CLUSTERS = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})


def plan(*names: str, **needs: Any) -> Answer:
    needs.setdefault("time_s", 3600.0)
    return answer(Request(**needs), [CLUSTERS[name] for name in names], even_if_retired=True)


def option_of(found: Answer, label: str) -> Option:
    return next(option for option in found.options if option.label == label)


BILLS = [
    # cluster, partition, needs, amount, unit, part of the GPUs
    ("puhti", "gpu", {"cpus_per_gpu": 10, "memory_mib": 80 * 1024}, 78, "GPU BU", 60 / 78),
    ("mahti", "gpumedium", {"gpus": 4}, 400, "GPU BU", 1),
    ("mahti", "gpusmall", {"gpu_type": "a100_1g.5gb"}, 15, "GPU BU", 1),
    ("mahti", "gpusmall", {"local_disk_gib": 950.0}, 109.5, "GPU BU", 100 / 109.5),
    ("roihu", "gpumedium", {"gpus": 2, "time_s": 5 * 3600.0}, 2000, "GPU BU", 1),
    ("roihu", "small", {"gpus": 0, "cpus": 4, "memory_mib": 16 * 1024}, 6, "CPU BU", None),
    ("lumi", "standard-g", {"gpus": 16, "time_s": 7200.0}, 16, "GPU-hour", 1),
    ("lumi", "small-g", {"cpus_per_gpu": 7, "memory_mib": 60 * 1024}, 0.5, "GPU-hour", 1),
    ("lumi", "small-g", {"cpus_per_gpu": 16, "memory_mib": 60 * 1024}, 1, "GPU-hour", 0.5),
    ("narval", "GPU nodes", {"cpus_per_gpu": 12, "memory_mib": 124 * 1024}, 4, "RGU-hour", 1),
    ("narval", "GPU nodes", {"cpus_per_gpu": 24, "memory_mib": 124 * 1024}, 8, "RGU-hour", 0.5),
    ("narval", "CPU nodes", {"gpus": 0, "cpus": 2, "memory_mib": 10 * 1024}, 2.5,
     "core-equivalent-hour", None),
    ("arc4", "GPU nodes", {}, 0, "", None),
    ("aire", "gpu", {}, 0, "", None),
]  # fmt: skip


@pytest.mark.parametrize("row", BILLS, ids=lambda row: f"{row[0]}-{row[1]}-{row[3]}")
def test_bills(row):
    cluster, label, needs, amount, unit, share = row
    cost = option_of(plan(cluster, **needs), label).cost
    assert cost is not None
    assert cost.amount == pytest.approx(amount)
    assert cost.unit == unit
    assert cost.gpu_share == (None if share is None else pytest.approx(share, rel=1e-3))
    assert bool(cost.sum) == bool(unit)
    assert cost.source


def test_an_undocumented_bill_is_no_number():
    option = option_of(plan("graham", gpu_type="a5000"), "A5000 nodes")
    assert option.cost is None
    assert "cost_not_documented" in {one.kind for one in option.advice}


def test_cheapest_first_and_tests_last():
    labels = [option.label for option in plan("lumi", time_s=900.0).options]
    assert labels == ["small-g", "standard-g", "dev-g"]
    labels = [option.label for option in plan("roihu", time_s=900.0, gpu_type="gh200").options]
    assert labels == ["gpumedium", "gputest", "gpuinteractive"]
    for cluster in CLUSTERS.values():
        purpose = {part.title: part.purpose for part in cluster.partitions}
        found = plan(cluster.name, gpus=1, time_s=600.0).options
        test = [purpose[option.label] != "production" for option in found]
        assert test == sorted(test)
        costs = [o.cost.amount for o, late in zip(found, test, strict=True) if o.cost and not late]
        assert costs == sorted(costs)


def test_clusters_by_the_gpu_least_above_the_need_and_each_in_one_piece():
    found = plan(*CLUSTERS, gpu_memory_gib=30.0).options
    names = [option.cluster for option in found]
    assert len(set(names)) == sum(a != b for a, b in zip(names, ["", *names], strict=False))
    firsts = {option.cluster: option for option in reversed(found)}
    groups = [
        (CLUSTERS[name].status == "retired", firsts[name].gpu_memory_gib or math.inf, name)
        for name in dict.fromkeys(names)
    ]
    assert groups == sorted(groups)
    assert all((option.gpu_memory_gib or 99) >= 30 for option in found)
    assert {"fir", "roihu"} < set(names)


@pytest.mark.parametrize("gpus", [1, 2, 4])
@pytest.mark.parametrize("even_if_retired", [False, True])
def test_an_old_gpu_with_little_memory_is_never_first(gpus: int, even_if_retired: bool) -> None:
    found = answer(
        Request(gpus=gpus, time_s=3600.0), CLUSTERS.values(), even_if_retired=even_if_retired
    ).options
    assert found[0].gpu_type is not None
    assert "p100" not in found[0].gpu_type
    assert (found[0].gpu_memory_gib or 0) > 16
    # With retired clusters, there are such GPUs, after those of the present clusters.
    old = {option.cluster for option in found if "p100" in (option.gpu_type or "")}
    assert bool(old) == even_if_retired


def test_an_interactive_partition_does_not_order_the_clusters() -> None:
    found = answer(Request(gpus=1, time_s=3600.0), CLUSTERS.values()).options
    order = list(dict.fromkeys(option.cluster for option in found))
    # Roihu has a smaller GPU, but only in a partition for interactive work.
    assert order.index("lumi") < order.index("roihu")


def test_kinds_of_node_that_are_asked_for_alike_are_one_option():
    found = [option.label for option in plan("puhti", gpus=0, cpus=4).options]
    assert len(found) == len(set(found))


def test_a_retired_cluster_names_its_successor():
    found = answer(Request(), [CLUSTERS["puhti"]])
    ((unfit,), ()) = found.unfit, found.options
    (refusal,) = unfit.refusals
    assert refusal.kind == "retired"
    assert refusal.instead == "--cluster roihu"
    assert "2026-07-31" in refusal.sentence


@pytest.mark.parametrize(
    ("cluster", "label", "automatic"),
    [
        ("arc4", "GPU nodes", ("cores", "memory")),
        ("mahti", "gpusmall", ("memory",)),
        ("roihu", "gpumedium", ("memory",)),
        ("trillium", "compute", ("memory",)),
        ("puhti", "gpu", ()),
    ],
)
def test_what_comes_by_itself_is_not_named(cluster, label, automatic):
    option = option_of(plan(cluster), label)
    assert option.automatic == automatic
    assert (option.memory_mib is None) == ("memory" in automatic)


@pytest.mark.parametrize(
    ("launcher", "tasks", "cpus"),
    [
        ("plain", 1, 40),
        ("torchrun", 1, 40),
        ("launch", 4, 10),
        ("srun", 4, 10),
        ("horovod", 4, 10),
    ],
)
def test_tasks_of_each_launcher(launcher, tasks, cpus):
    option = option_of(plan("puhti", gpus=8, launcher=launcher), "gpu")
    assert (option.nodes, option.gpus_per_node) == (2, 4)
    assert (option.tasks_per_node, option.cpus_per_task) == (tasks, cpus)


def test_grid_engine_starts_one_task_whatever_launches():
    option = option_of(plan("arc4", gpus=4, launcher="launch"), "GPU nodes")
    assert (option.gpus_per_node, option.tasks_per_node) == (4, 1)


def test_the_default_time_is_an_hour_or_the_partitions():
    found = plan("puhti", time_s=None)
    assert {option.label: option.time_s for option in found.options} == {
        "gpu": 3600,
        "gputest": 900,
    }


def test_graham_asks_for_its_nodes_by_constraint():
    assert (
        option_of(plan("graham", gpu_memory_gib=24, gpu_type="v100"), "GPU nodes").constraint
        == "cascade,v100"
    )


# What follows holds answers against the catalogue again, in other words than the planner's.

REQUESTS = st.builds(
    Request,
    gpus=st.sampled_from([0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 20, 24, 28, 32, 40, 64, 80, 84, 100]),
    gpu_memory_gib=st.sampled_from([None, None, 5.0, 16.0, 32.0, 40.0, 64.0, 80.0, 96.0, 200.0]),
    gpu_type=st.sampled_from(
        [None, None, None, "a100", "h100", "v100", "gh200", "mi300a", "a100_1g.5gb"]
    ),
    nodes=st.sampled_from([None, None, None, 1, 2, 3, 4, 5, 20, 30]),
    cpus_per_gpu=st.sampled_from([None, None, 1, 7, 10, 12, 24, 32, 56, 72, 80]),
    cpus=st.sampled_from([None, None, 1, 8, 32, 33, 64, 400]),
    memory_mib=st.sampled_from([None, None, None, 1024, 61500, 126976, 381952, 512000, 2150400]),
    time_s=st.sampled_from([None, 60.0, 600.0, 3600.0, 8e3, 86400.0, 2e5, 5e5, 8e5, 3e6]),
    local_disk_gib=st.sampled_from([None, None, None, 10.0, 150.0, 370.0, 1000.0, 5000.0]),
    account=st.sampled_from([None, "def-x", "rrg-x", "project_1"]),
    launcher=st.sampled_from(["plain", "launch", "torchrun", "srun"]),
)


def where(option: Option) -> tuple[Cluster, Partition, NodeKind]:
    cluster = CLUSTERS[option.cluster]
    kind = next(kind for kind in cluster.nodes if kind.name == option.node_kind)
    parts = [p for p in cluster.partitions if p.title == option.label and kind.name in p.kinds]
    gpus = option.nodes * option.gpus_per_node
    # Trillium's debug is two: one for a single GPU, one for whole nodes.
    return cluster, parts[0] if len(parts) == 1 else parts[gpus > 1], kind


def under(value: float, *limits: float | None) -> bool:
    return all(limit is None or value <= limit for limit in limits)


def hours(text: str | None) -> float | None:
    return None if text is None else parse_duration(text) / 3600


@settings(max_examples=150, deadline=None)
@given(REQUESTS)
def test_every_option_keeps_every_written_limit(request: Request):
    for option in answer(request, CLUSTERS.values(), even_if_retired=True).options:
        cluster, partition, kind = where(option)
        nodes, per_node = option.nodes, option.gpus_per_node
        gpu, gpus = kind.gpu, option.nodes * option.gpus_per_node
        cores = option.tasks_per_node * option.cpus_per_task
        rich = (request.account or "").startswith(("rrg-", "rpp-"))
        most = (rich and partition.max_nodes_with_allocation) or partition.max_nodes
        share = next((one for one in cluster.shares if gpu and one.gpu == gpu.type), None)
        assert gpus == request.gpus
        assert partition.purpose != "restricted"
        assert request.nodes in {None, nodes}
        alike = [  # asked for in the same words: one to the scheduler
            one.count
            for one in cluster.nodes
            if one.name in partition.kinds
            and (one.gpu and one.gpu.type) == (kind.gpu and kind.gpu.type)
            and one.constraint == kind.constraint
        ]
        assert under(nodes, most)
        assert None in alike or nodes <= sum(count or 0 for count in alike)
        assert nodes >= partition.min_nodes
        assert (gpu is None) == (request.gpus == 0)
        if gpu:
            assert under(per_node, gpu.count, gpu.max_per_job, partition.max_gpus_per_node)
            assert per_node >= (partition.min_gpus_per_node or 0)
            assert (partition.min_gpus or 0) <= gpus
            assert under(gpus, partition.max_gpus, gpu.max_per_job)
            assert under(request.gpu_memory_gib or 0, gpu.memory_gib)
            if partition.gpu_multiple:
                assert gpus in partition.gpu_counts or gpus % partition.gpu_multiple == 0
            if partition.whole_nodes_if_several:
                assert nodes == 1 or per_node == gpu.count
        assert under(option.time_s / 3600, hours(partition.max_time))
        assert option.time_s / 3600 >= (hours(partition.min_time) or 0)
        assert under(cores, kind.usable_cores or kind.cores, partition.max_cores_per_node)
        assert under(cores * nodes, partition.max_cores)
        assert under(option.memory_mib or 0, mib(kind.memory), mib(partition.max_memory))
        if share and share.enforced:
            assert under(cores, share.cores and share.cores * per_node)
        if share and share.automatic:
            assert option.memory_mib is request.memory_mib is None
        disk = request.local_disk_gib
        if disk is not None:
            assert cluster.local_disk is not None
            assert under(disk, kind.local_disk_gib, partition.max_local_disk_gib)
            assert under(disk, cluster.local_disk.max_gib)
            assert disk >= (cluster.local_disk.min_gib or 0)


def mib(text: str | None) -> int | None:
    return None if text is None else parse_mib(text)


def breaks(refusal: Refusal, request: Request, cluster: Cluster, partition: Partition) -> bool:
    """Say whether some node kind of a partition really has the limit that a refusal names."""
    kinds = [kind for kind in cluster.nodes if kind.name in partition.kinds]
    return any(_breaks(refusal.kind, request, cluster, partition, kind) for kind in kinds)


_OVER_NODES = ("launch", "plain")
"""Launchers that work on several nodes of Grid Engine."""


def _breaks(
    name: str, request: Request, cluster: Cluster, partition: Partition, kind: NodeKind
) -> bool:
    gpu, gpus = kind.gpu, request.gpus
    if name == "no_such_nodes":
        right = gpu and (not gpu.part_of if not request.gpu_type else gpu.type == request.gpu_type)
        return bool(gpu) if gpus == 0 else not right
    share = next((one for one in cluster.shares if gpu and one.gpu == gpu.type), None)
    limits = [partition.max_gpus_per_node] + ([gpu.count, gpu.max_per_job] if gpu else [])
    per_node_most = min((limit for limit in limits if limit), default=gpus) or 1
    nodes = request.nodes or next(
        n for n in range(max(1, math.ceil(gpus / per_node_most)), gpus + 2) if gpus % n == 0
    )
    per_node = math.ceil(gpus / nodes)
    rich = (request.account or "").startswith(("rrg-", "rpp-"))
    most_nodes = (rich and partition.max_nodes_with_allocation) or partition.max_nodes
    time_h = request.time_s and request.time_s / 3600
    disk, own = request.local_disk_gib, cluster.local_disk
    memory = request.memory_mib
    cores = request.cpus_per_gpu * per_node if gpus and request.cpus_per_gpu else None
    if cores is None and request.cpus:
        cores = math.ceil(request.cpus / nodes)
    tasks = {"srun": True, "launch": cluster.scheduler == "slurm"}
    if cores and per_node and tasks.get(request.launcher):
        cores = math.ceil(cores / per_node) * per_node  # a task for each GPU, all with as many
    whole = kind.usable_cores or kind.cores
    least_memory = min(mib(kind.memory) or math.inf, mib(partition.max_memory) or math.inf)
    fair = (mib(share.memory) or 0) * per_node if share else 0
    broken = {
        "restricted": partition.purpose == "restricted",
        "no_such_launcher": cluster.scheduler == "grid_engine"
        and (request.launcher == "srun" or (nodes > 1 and request.launcher not in _OVER_NODES)),
        "one_node": cluster.scheduler == "grid_engine" and nodes > 1 and gpus > 0,
        "gpu_memory": (request.gpu_memory_gib or 0) > ((gpu and gpu.memory_gib) or math.inf),
        "uneven_gpus": gpus % nodes != 0,
        "too_many_gpus_per_node": per_node > per_node_most,
        "too_few_gpus_per_node": per_node < (partition.min_gpus_per_node or 0),
        "not_whole_nodes": nodes > 1 and per_node != (gpu and gpu.count),
        "too_many_gpus": not under(gpus, partition.max_gpus, gpu.max_per_job if gpu else None),
        "too_few_gpus": gpus < (partition.min_gpus or 0),
        "gpu_count": gpus not in partition.gpu_counts and gpus % (partition.gpu_multiple or 1) != 0,
        "too_many_nodes": not under(nodes, most_nodes, kind.count),
        "too_few_nodes": nodes < partition.min_nodes,
        "too_long": time_h is not None and not under(time_h, hours(partition.max_time)),
        "too_short": time_h is not None and time_h < (hours(partition.min_time) or 0),
        "too_many_cores_per_node": cores is None
        or not under(cores, whole, partition.max_cores_per_node),
        "too_many_cores": cores is None or cores * nodes > (partition.max_cores or math.inf),
        "cores_above_share": bool(share and share.enforced and cores and share.cores)
        and (cores or 0) > (share.cores if share and share.cores else 0) * per_node,
        "cores_are_automatic": bool(share and "cores" in share.automatic and cores),
        "too_much_memory": (fair if memory is None else memory) > least_memory,
        "memory_above_share": bool(share and share.enforced) and (memory or 0) > fair,
        "memory_is_automatic": memory is not None
        and (
            cluster.dialect.memory == "none"
            or "memory" in partition.automatic
            or bool(share and "memory" in share.automatic)
            or (bool(cluster.dialect.several_nodes) and nodes > 1)
        ),
        "no_local_disk": disk is not None and (own is None or not kind.local_disk_gib),
        "too_much_local_disk": disk is not None
        and not under(
            disk, kind.local_disk_gib, partition.max_local_disk_gib, own.max_gib if own else None
        ),
        "too_little_local_disk": disk is not None and disk < ((own and own.min_gib) or 0),
    }
    return broken[name]


@settings(max_examples=150, deadline=None)
@given(REQUESTS)
def test_every_refusal_names_a_limit_that_is_broken(request: Request):
    for unfit in answer(request, CLUSTERS.values(), even_if_retired=True).unfit:
        cluster = CLUSTERS[unfit.cluster]
        parts = [part for part in cluster.partitions if part.title == unfit.label]
        assert unfit.refusals
        for refusal in unfit.refusals:
            assert refusal.sentence
            assert refusal.source
            assert any(breaks(refusal, request, cluster, part) for part in parts), refusal


@settings(max_examples=60, deadline=None)
@given(REQUESTS)
def test_nothing_is_left_out_and_planning_twice_says_the_same(request: Request):
    found = answer(request, CLUSTERS.values(), even_if_retired=True)
    assert found == answer(request, CLUSTERS.values(), even_if_retired=True)
    seen = {(one.cluster, one.label) for one in (*found.options, *found.unfit)}
    assert seen == {(c.name, part.title) for c in CLUSTERS.values() for part in c.partitions}


def test_the_preferred_clusters_come_first_and_test_partitions_last() -> None:
    request = Request(gpus=1, time_s=600.0)
    usual = list(dict.fromkeys(one.cluster for one in answer(request, CLUSTERS.values()).options))
    preferred = usual[:0:-1][:2]
    found = answer(request, CLUSTERS.values(), preferred=preferred).options
    others = [name for name in usual if name not in preferred]
    assert list(dict.fromkeys(one.cluster for one in found)) == [*preferred, *others]
    for name in usual:
        purposes = {one.name: one.purpose for one in CLUSTERS[name].partitions}
        own = [purposes[one.partition] != "production" for one in found if one.cluster == name]
        assert own == sorted(own), name
    assert any(one.partition == "gputest" for one in found)
