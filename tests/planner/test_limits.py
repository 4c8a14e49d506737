"""Each written limit, on both of its sides."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from teho.clusters.catalogue import load_catalogue
from teho.errors import InputError
from teho.model.cluster import Cluster, Gpu
from teho.model.plan import Answer, Refusal
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.inventory import UNTYPED, gpu_of
from teho.schedulers.script.write import write_script

CLUSTERS = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})
H, DAY = 3600.0, 86400.0


def plan(cluster: str, **needs: Any) -> Answer:
    return answer(Request(**needs), [CLUSTERS[cluster]], even_if_retired=True)


def labels(found: Answer) -> set[str]:
    return {option.label for option in found.options}


def refusals(found: Answer, label: str) -> list[Refusal]:
    return [one for unfit in found.unfit if unfit.label == label for one in unfit.refusals]


LIMITS: list[tuple[str, str, str, dict[str, Any], dict[str, Any]]] = [
    # kind, cluster, partition, what it takes, what it refuses
    ("too_many_gpus", "mahti", "gpusmall", {"gpus": 2}, {"gpus": 3}),
    ("too_many_gpus", "roihu", "gpumedium", {"gpus": 4}, {"gpus": 5}),
    ("too_many_gpus", "arc4", "GPU nodes", {"gpus": 4}, {"gpus": 5}),
    ("too_many_gpus", "lumi", "small-g", {"gpus": 32}, {"gpus": 40}),
    ("too_many_gpus", "narval", "GPU slices",
     {"gpus": 1, "gpu_type": "a100_1g.5gb"}, {"gpus": 2, "gpu_type": "a100_1g.5gb"}),
    ("too_many_gpus", "mahti", "gpusmall",
     {"gpus": 1, "gpu_type": "a100_1g.5gb"}, {"gpus": 2, "gpu_type": "a100_1g.5gb"}),
    ("too_few_gpus", "roihu", "gpularge", {"gpus": 4}, {"gpus": 3}),
    ("too_many_gpus_per_node", "puhti", "gpu", {"gpus": 4, "nodes": 1}, {"gpus": 5, "nodes": 1}),
    ("too_many_gpus_per_node", "aire", "gpu", {"gpus": 3, "nodes": 1}, {"gpus": 4, "nodes": 1}),
    ("too_few_gpus_per_node", "nibi", "MI300A nodes",
     {"gpus": 4, "gpu_type": "mi300a"}, {"gpus": 2, "gpu_type": "mi300a"}),
    ("not_whole_nodes", "trillium", "compute", {"gpus": 8, "nodes": 2}, {"gpus": 8, "nodes": 4}),
    ("gpu_count", "trillium", "compute", {"gpus": 1}, {"gpus": 2}),
    ("gpu_count", "trillium", "compute", {"gpus": 4}, {"gpus": 6}),
    ("uneven_gpus", "puhti", "gpu", {"gpus": 6, "nodes": 2}, {"gpus": 5, "nodes": 2}),
    ("gpu_memory", "lumi", "small-g", {"gpu_memory_gib": 64}, {"gpu_memory_gib": 64.5}),
    ("too_many_nodes", "nibi", "CPU nodes", {"gpus": 0, "nodes": 710, "cpus": 710},
     {"gpus": 0, "nodes": 711, "cpus": 711}),
    ("too_many_nodes", "lumi", "small-g", {"gpus": 4, "nodes": 4}, {"gpus": 5, "nodes": 5}),
    ("too_many_nodes", "trillium", "compute", {"gpus": 20}, {"gpus": 24}),
    ("too_many_nodes", "trillium", "compute",
     {"gpus": 100, "account": "rrg-x"}, {"gpus": 104, "account": "rrg-x"}),
    ("too_many_nodes", "arc4", "CPU nodes", {"gpus": 0, "nodes": 149}, {"gpus": 0, "nodes": 150}),
    ("one_node", "arc4", "GPU nodes", {"gpus": 2}, {"gpus": 2, "nodes": 2}),
    ("no_such_launcher", "arc4", "CPU nodes", {"gpus": 0, "nodes": 2, "launcher": "launch"},
     {"gpus": 0, "nodes": 2, "launcher": "torchrun"}),
    ("memory_is_automatic", "arc4", "CPU nodes", {"gpus": 0, "memory_mib": 1024},
     {"gpus": 0, "nodes": 2, "memory_mib": 1024}),
    ("too_few_nodes", "mahti", "large", {"gpus": 0, "nodes": 20}, {"gpus": 0, "nodes": 19}),
    ("too_long", "puhti", "gpu", {"time_s": 3 * DAY}, {"time_s": 3 * DAY + 1}),
    ("too_long", "lumi", "standard-g", {"time_s": 2 * DAY}, {"time_s": 2 * DAY + 1}),
    ("too_short", "arc4", "GPU nodes", {"time_s": 900.0}, {"time_s": 899.0}),
    ("too_short", "narval", "GPU nodes", {"time_s": 300.0}, {"time_s": 299.0}),
    ("too_many_cores_per_node", "lumi", "small-g",
     {"gpus": 8, "cpus_per_gpu": 7, "nodes": 1}, {"gpus": 8, "cpus_per_gpu": 8, "nodes": 1}),
    ("too_many_cores_per_node", "puhti", "gpu", {"cpus_per_gpu": 40}, {"cpus_per_gpu": 41}),
    ("too_many_cores", "mahti", "interactive",
     {"gpus": 0, "cpus": 32}, {"gpus": 0, "cpus": 33}),
    ("cores_above_share", "roihu", "gpumedium", {"cpus_per_gpu": 72}, {"cpus_per_gpu": 73}),
    ("cores_above_share", "trillium", "compute", {"cpus_per_gpu": 24}, {"cpus_per_gpu": 25}),
    ("cores_are_automatic", "arc4", "GPU nodes", {}, {"cpus_per_gpu": 10}),
    ("too_much_memory", "puhti", "gpu", {"memory_mib": 373 * 1024}, {"memory_mib": 374 * 1024}),
    ("too_much_memory", "roihu", "interactive",
     {"gpus": 0, "memory_mib": 64 * 1024}, {"gpus": 0, "memory_mib": 65 * 1024}),
    ("memory_is_automatic", "mahti", "gpusmall", {}, {"memory_mib": 100 * 1024}),
    ("memory_is_automatic", "roihu", "gpumedium", {}, {"memory_mib": 100 * 1024}),
    ("memory_is_automatic", "roihu", "hugemem", {"gpus": 0}, {"gpus": 0, "memory_mib": 100 * 1024}),
    ("memory_is_automatic", "arc4", "GPU nodes", {}, {"memory_mib": 40 * 1024}),
    ("memory_is_automatic", "trillium", "compute", {}, {"memory_mib": 40 * 1024}),
    ("too_much_local_disk", "puhti", "gpu", {"local_disk_gib": 3600}, {"local_disk_gib": 3601}),
    ("too_much_local_disk", "roihu", "small",
     {"gpus": 0, "local_disk_gib": 20}, {"gpus": 0, "local_disk_gib": 21}),
    ("too_much_local_disk", "beluga", "GPU nodes",
     {"local_disk_gib": 2490}, {"local_disk_gib": 2491}),
    ("too_little_local_disk", "rorqual", "GPU nodes",
     {"local_disk_gib": 370}, {"local_disk_gib": 369}),
    ("no_such_nodes", "puhti", "gpu", {"gpus": 1}, {"gpus": 0}),
    ("no_such_nodes", "puhti", "small", {"gpus": 0}, {"gpus": 1}),
    ("no_such_nodes", "puhti", "gpu", {"gpu_type": "V100"}, {"gpu_type": "a100"}),
]  # fmt: skip


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_both_sides_of_a_limit(row):
    kind, cluster, label, fits, breaks = row
    taken = plan(cluster, **fits)
    assert label in labels(taken), refusals(taken, label)
    assert not refusals(taken, label) or cluster == "trillium"
    refused = plan(cluster, **breaks)
    assert label not in labels(refused)
    found = [one for one in refusals(refused, label) if one.kind == kind]
    assert found
    assert all(one.source.split()[0].rstrip(":;") for one in found)


@pytest.mark.parametrize("cluster", ["lumi", "trillium"])
def test_nodes_without_a_disk(cluster):
    found = plan(cluster, local_disk_gib=10)
    assert not found.options
    kinds = {one.kind for unfit in found.unfit for one in unfit.refusals}
    assert "no_local_disk" in kinds


def test_an_invitation_is_needed():
    (refusal,) = refusals(plan("lumi", time_s=H), "bench")
    assert (refusal.kind, refusal.source[:3]) == ("restricted", "LUG")


def test_three_gpus_on_mahti_go_to_gpumedium():
    found = plan("mahti", gpus=3, partition="gpusmall")
    assert found.options == ()
    (refusal,) = refusals(found, "gpusmall")
    assert refusal.kind == "too_many_gpus"
    assert refusal.sentence == ("the job requests 3 GPUs, more than the limit of 2 per job")
    assert refusal.instead == "--partition gpumedium"


def test_what_would_fit_is_shown():
    instead = {
        (cluster, label): [one.instead for one in refusals(plan(cluster, **needs), label)]
        for cluster, label, needs in [
            ("roihu", "gpumedium", {"gpus": 8}),
            ("puhti", "gpu", {"gpus": 8, "nodes": 1}),
            ("trillium", "compute", {"gpus": 3, "nodes": 1}),
            ("trillium", "debug (one GPU)", {"gpus": 1, "partition": "debug", "time_s": 5 * H}),
        ]
    }
    assert instead["roihu", "gpumedium"] == ["--partition gpularge"]
    assert instead["puhti", "gpu"][0] == "--nodes 2"
    assert instead["trillium", "compute"][0] == "4 GPUs"
    assert "leave --partition out" in instead["trillium", "debug (one GPU)"]


def changed(share: dict[str, Any], partition: dict[str, Any]) -> Cluster:
    """Return Puhti with one partition and other limits."""
    puhti = CLUSTERS["puhti"]
    (gpu,) = [one for one in puhti.partitions if one.name == "gpu"]
    return replace(
        puhti,
        shares=tuple(replace(one, **share) for one in puhti.shares),
        partitions=(replace(gpu, **partition),),
    )


@pytest.mark.parametrize(
    ("cluster", "needs", "kind", "instead"),
    [
        (changed({"enforced": True}, {}), {"memory_mib": 94 * 1024}, "memory_above_share",
         "--mem 93GiB"),
        (changed({}, {"max_cores_per_node": 20}), {"cpus_per_gpu": 21}, "too_many_cores_per_node",
         ""),
    ],
)  # fmt: skip
def test_limits_that_only_a_sites_own_file_has_today(cluster, needs, kind, instead):
    assert answer(Request(), [cluster], even_if_retired=True).options
    found = answer(Request(**needs), [cluster], even_if_retired=True)
    (refusal,) = refusals(found, "gpu")
    assert (refusal.kind, refusal.instead) == (kind, instead)


def test_more_nodes_for_an_allocation():
    (refusal,) = refusals(plan("trillium", gpus=24), "compute")[:1]
    assert refusal.instead == "an account that begins with rrg- or rpp- may have 25 nodes"
    without = refusals(plan("trillium", gpus=24, account="def-x"), "compute")
    assert without[0].kind == "too_many_nodes"


@pytest.mark.parametrize(
    ("cluster", "partition", "kind"),
    [
        ("narval", "gpu", "partition_named"),
        ("trillium", "compute", "partition_named"),
        ("puhti", "gup", "no_such_partition"),
    ],
)
def test_partitions_named_wrongly(cluster, partition, kind):
    found = plan(cluster, partition=partition)
    ((unfit,), ()) = found.unfit, found.options
    assert [one.kind for one in unfit.refusals] == [kind]


@pytest.mark.parametrize(
    "needs",
    [
        {"gpus": -1},
        {"nodes": 0},
        {"cpus": 0},
        {"cpus_per_gpu": 0},
        {"time_s": 0.0},
        {"memory_mib": -1 * 1024},
        {"time_s": float("nan")},
        {"local_disk_gib": float("inf")},
    ],
)
def test_numbers_that_are_no_need(needs):
    (name,) = needs
    with pytest.raises(InputError, match=name.rsplit("_", 1)[0].replace("_", " ")):
        plan("puhti", **needs)


class TestSites:
    """GPUs by the names that a site gives them."""

    @staticmethod
    def site(*gpus: Gpu, constraint: str = "") -> Cluster:
        cluster = CLUSTERS["puhti"]
        base = next(kind for kind in cluster.nodes if kind.gpu)
        kinds = tuple(
            replace(base, name=f"k{place}", gpu=gpu, constraint=constraint)
            for place, gpu in enumerate(gpus)
        )
        gpu_partition = next(part for part in cluster.partitions if part.name == "gpu")
        part = replace(gpu_partition, kinds=tuple(kind.name for kind in kinds))
        return replace(cluster, nodes=kinds, partitions=(part,), shares=())

    def test_a_slice_is_meant_by_its_memory_and_not_by_default(self) -> None:
        cluster = self.site(gpu_of("a100", 4), gpu_of("a100_3g.20gb", 8), gpu_of("tiny", 8))
        assert types(cluster) == {"a100"}
        assert types(cluster, gpu_memory_gib=5) == {"a100", "a100_3g.20gb"}
        assert types(cluster, gpu_memory_gib=30) == {"a100"}
        assert types(cluster, gpus=2, gpu_memory_gib=5) == {"a100"}
        assert types(cluster, gpu_type="tiny") == {"tiny"}

    def test_gpus_without_a_type_do_not_count_for_others(self) -> None:
        mixed = self.site(gpu_of("a100", 4), gpu_of(UNTYPED, 4))
        assert types(mixed) == {"a100"}
        (unfit,) = answer(Request(gpu_type=UNTYPED), [mixed], even_if_retired=True).unfit
        assert [one.kind for one in unfit.refusals] == ["untyped_gpus"]
        alone = self.site(gpu_of(UNTYPED, 4))
        (option,) = answer(Request(command=("x",)), [alone], even_if_retired=True).options
        assert "#SBATCH --gres=gpu:1\n" in write_script(option, alone).text

    def test_whole_nodes_are_given_and_billed_whole(self) -> None:
        shared, whole = (
            next(one for one in plan("puhti", gpus=1, exclusive=exclusive).options)
            for exclusive in (False, True)
        )
        assert whole.cost is not None
        assert shared.cost is not None
        assert whole.cost.amount > 3 * shared.cost.amount
        assert "exclusive" not in {one.kind for one in refusals(plan("puhti", exclusive=True), "")}
        (refusal,) = refusals(plan("arc4", gpus=0, qos="long"), "CPU nodes")
        assert refusal.kind == "slurm_alone"


def types(cluster: Cluster, **needs: Any) -> set[str]:
    found = answer(Request(**needs), [cluster], even_if_retired=True)
    return {option.gpu_type for option in found.options}
