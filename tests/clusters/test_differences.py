"""Where the catalogue and a live cluster differ."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from teho.clusters.catalogue import load_catalogue
from teho.clusters.differences import Difference, differences
from teho.model.cluster import Cluster, NodeKind, Partition

change = msgspec.structs.replace


@pytest.fixture(scope="module")
def clusters() -> dict[str, Cluster]:
    return load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})


@pytest.fixture
def mahti(clusters: dict[str, Cluster]) -> Cluster:
    return clusters["mahti"]


def with_partition(cluster: Cluster, name: str, /, **facts: Any) -> Cluster:
    parts = tuple(change(one, **facts) if one.name == name else one for one in cluster.partitions)
    return change(cluster, partitions=parts)


def with_kind(cluster: Cluster, name: str, /, **facts: Any) -> Cluster:
    kinds = tuple(change(one, **facts) if one.name == name else one for one in cluster.nodes)
    return change(cluster, nodes=kinds)


def test_no_cluster_differs_from_itself(clusters: dict[str, Cluster]) -> None:
    for cluster in clusters.values():
        assert differences(cluster, cluster) == ()


@pytest.mark.parametrize(
    ("fact", "value", "said", "live"),
    [
        ("max_time", "2d", "36h", "2d"),
        ("max_nodes", 8, "6", "8"),
        ("max_gpus", 32, "24", "32"),
        ("max_jobs", 10, "not documented", "10"),
        ("min_nodes", 2, "1", "2"),
        ("exclusive", True, "no", "yes"),
    ],
)
def test_another_limit_is_reported(
    mahti: Cluster, fact: str, value: Any, said: str, live: str
) -> None:
    (found,) = differences(mahti, with_partition(mahti, "gpumedium", **{fact: value}))
    source = "CSC batch-job-partitions.md 2026-08-05"
    assert found == Difference("partition gpumedium", fact, said, live, source)


@pytest.mark.parametrize(
    "facts",
    [
        {"max_time": "1d12h"},  # the same time
        {"max_time": None},  # no limit of its own: a plugin may hold one
        {"max_gpus": None},
        {"max_gpus": 4, "unknown": ("max_gpus",)},  # accounting could not be asked
        {"billing": "", "notes": "x", "source": "SLURM", "needs": "x", "min_time": "1h"},
    ],
)
def test_what_the_scheduler_does_not_report_is_no_difference(
    mahti: Cluster, facts: dict[str, Any]
) -> None:
    assert differences(mahti, with_partition(mahti, "gpumedium", **facts)) == ()


def test_new_and_removed_partitions_are_reported(mahti: Cluster) -> None:
    fewer = change(mahti, partitions=mahti.partitions[1:])
    (gone,) = differences(mahti, fewer)
    assert (gone.place, gone.catalogue, gone.live) == ("partition gputest", "gputest", "none")
    (new,) = differences(fewer, mahti)
    assert (new.place, new.catalogue, new.live) == (
        "partition gputest", "not documented", "gputest"
    )  # fmt: skip
    assert new.source == ""
    assert differences(fewer, with_partition(mahti, "gputest", purpose="restricted")) == ()


@pytest.mark.parametrize(
    ("fact", "value", "told"),
    [
        ("memory", "502170MiB", None),  # the catalogue has whole GiB
        ("memory", "491GiB", "490GiB 491GiB"),
        ("memory", None, None),
        ("usable_cores", 120, "128 120"),
        ("count", 23, "24 23"),
        ("count", None, None),
        ("name", "a100-x4", None),
        ("local_disk_gib", None, None),
    ],
)
def test_other_nodes_are_reported(mahti: Cluster, fact: str, value: Any, told: str | None) -> None:
    found = differences(mahti, with_kind(mahti, "gpu", **{fact: value}))
    found = tuple(one for one in found if one.place.startswith("nodes"))
    assert [f"{one.catalogue} {one.live}" for one in found] == ([told] if told else [])
    assert {one.fact for one in found} <= {fact}


def test_another_gpu_is_reported_twice(mahti: Cluster) -> None:
    gpu = change(next(kind.gpu for kind in mahti.nodes if kind.gpu), type="h200")
    first, second = differences(mahti, with_kind(mahti, "gpu", gpu=gpu))
    assert (first.place, first.catalogue, first.live) == ("nodes gpu", "a100 GPUs", "none")
    assert (second.catalogue, second.live) == ("not documented", "h200 GPUs")


def test_nodes_split_by_features_count_together(mahti: Cluster) -> None:
    (whole,) = [kind for kind in mahti.nodes if kind.name == "gpu"]
    halves: tuple[NodeKind, ...] = tuple(
        change(whole, name=f"gpu-{half}", count=12, constraint=half) for half in ("a", "b")
    )
    kinds = tuple(one for one in mahti.nodes if one is not whole) + halves
    assert [one for one in differences(mahti, change(mahti, nodes=kinds))
            if one.place.startswith("nodes")] == []  # fmt: skip


def test_a_nameless_partition_is_compared_with_the_laxest(clusters: dict[str, Cluster]) -> None:
    narval = clusters["narval"]
    gpu = narval.partitions[0]
    tiers = tuple(
        change(gpu, name=f"gpu_b{tier}", label="", max_time=time, max_jobs=1000)
        for tier, time in enumerate(("3h", "1d", "7d"))
    )
    rest = tuple(change(one, name=one.label) for one in narval.partitions[1:])
    assert differences(narval, change(narval, partitions=(*tiers, *rest))) == ()
    own: tuple[Partition, ...] = (change(tiers[2], needs="one of the accounts x"),)
    (found,) = differences(narval, change(narval, partitions=(*tiers[:2], *own, *rest)))
    assert (found.place, found.fact) == ("partition GPU nodes", "max_time")
    assert (found.catalogue, found.live) == ("7d", "1d")
