"""The catalogue's files of CSC, LUMI and Leeds against their documentation.

The tables below were written from the sites' pages, not from the files.
"""

from __future__ import annotations

import math
import re
from datetime import date
from typing import Any

import msgspec
import pytest

from teho.clusters.catalogue import load_cluster
from teho.model.cluster import Billing, NodeKind, Partition, Term
from teho.units import parse_duration, parse_mib

NAMES = ["puhti", "mahti", "roihu", "lumi", "arc4", "aire"]
CLUSTERS = {name: load_cluster(name, {"XDG_CONFIG_HOME": "/nonexistent"}) for name in NAMES}

GPU_NODES = [
    # cluster, kind, nodes, GPU, a node, its GiB, cores, usable cores, memory GiB, disk GiB
    ("puhti", "gpu", 80, "v100", 4, 32, 40, 40, 373, 3600),
    ("mahti", "gpu", 24, "a100", 4, 40, 128, 128, 490, 3500),
    ("mahti", "gpu-slice", None, "a100_1g.5gb", None, 5, 128, 128, 490, 3500),
    ("roihu", "gpu", 132, "gh200", 4, 96, 288, 288, 4 * 217, 150),
    ("roihu", "V", 4, "l40", 2, 48, 64, 64, 2 * 183, 14 * 1024),
    ("lumi", "gpu", 2978, "mi250", 8, 64, 64, 56, 480, 0),
    ("arc4", "gpu", 3, "v100", 4, 32, 40, 40, 192, 119),
    ("aire", "gpu", 28, "l40s", 3, 48, 24, 24, 256, 346),
]

CPU_NODES = [
    # cluster, kind, nodes, cores, memory GiB (None: not documented), disk GiB
    ("puhti", "M", 484, 40, 185, 0),
    ("puhti", "M-IO", 48, 40, None, 1490),
    ("puhti", "L", 92, 40, 373, 0),
    ("puhti", "L-IO", 40, 40, 373, 3600),
    ("puhti", "XL", 12, 40, None, 1490),
    ("puhti", "BM-IO", 6, 40, 1496, 5960),
    ("mahti", "cpu", 1404 - 60, 128, 256, 0),
    ("mahti", "cpu-nvme", 60, 128, 240, 3500),
    ("roihu", "M", 414, 384, 744, 600),
    ("roihu", "L", 72, 384, 1500, 20),
    ("roihu", "XL", 4, 128, 6037, 578),
    ("lumi", "cpu-256g", 1888, 128, 224, 0),
    ("lumi", "cpu-512g", 128, 128, None, 0),
    ("lumi", "cpu-1024g", 32, 128, None, 0),
    ("arc4", "standard", 149, 40, 192, None),
    ("arc4", "high-memory", 2, 40, 768, None),
    ("aire", "standard", 52, 168, None, 346),
    ("aire", "high-memory", 2, 168, None, 346),
]

PARTITIONS: list[tuple[str, str, float | None, dict[str, Any]]] = [
    # cluster, partition, hours, other limits
    ("puhti", "gputest", 0.25, {"max_nodes": 2, "max_gpus": 8, "max_cores": 80}),
    ("puhti", "gpu", 72, {"max_nodes": 20, "max_gpus": 80, "max_cores": 800}),
    ("puhti", "test", 0.25, {"max_nodes": 2, "max_cores": 80}),
    ("puhti", "small", 72, {"max_nodes": 1, "max_cores": 40}),
    ("puhti", "large", 72, {"max_nodes": 26, "max_cores": 1040}),
    ("puhti", "longrun", 336, {"max_nodes": 1, "max_cores": 40}),
    ("puhti", "hugemem", 72, {"max_nodes": 4, "max_cores": 160}),
    ("puhti", "hugemem_longrun", 336, {"max_nodes": 1, "max_cores": 40}),
    ("mahti", "gputest", 0.25,
     {"max_nodes": 1, "max_gpus": 4, "max_cores": 128, "max_running_jobs": 1}),
    ("mahti", "gpusmall", 36,
     {"max_nodes": 1, "max_gpus": 2, "max_cores": 64, "kinds": ("gpu", "gpu-slice")}),
    ("mahti", "gpumedium", 36, {"max_nodes": 6, "max_gpus": 24, "max_cores": 768}),
    ("mahti", "test", 1, {"max_nodes": 2, "exclusive": True}),
    ("mahti", "medium", 36, {"min_nodes": 1, "max_nodes": 20, "exclusive": True}),
    ("mahti", "large", 36, {"min_nodes": 20, "max_nodes": 200, "exclusive": True}),
    ("mahti", "gc", 36, {"min_nodes": 200, "max_nodes": 700, "exclusive": True}),
    ("mahti", "small", 72, {"max_nodes": 1, "max_cores": 128, "exclusive": False}),
    ("mahti", "interactive", 168, {"max_nodes": 1, "max_cores": 32, "max_running_jobs": 8,
      "max_memory": "60GiB"}),
    ("roihu", "gputest", 0.25, {"max_nodes": 2, "min_gpus": 1}),
    ("roihu", "gpumedium", 36, {"max_nodes": 4, "min_gpus": 1, "max_gpus": 4}),
    ("roihu", "gpularge", 36,
     {"max_nodes": 10, "min_gpus": 4, "purpose": "production", "unknown": ("exclusive",),
      "needs": "an accepted scalability test"}),
    ("roihu", "gpuinteractive", 12, {"max_nodes": 1, "max_gpus": None, "max_cores": None}),
    ("roihu", "vizinteractive", 12, {"max_nodes": 1, "max_gpus": 2}),
    ("roihu", "test", 0.25, {"max_nodes": 2}),
    ("roihu", "small", 72, {"max_nodes": 1, "max_cores": 384, "max_local_disk_gib": 20}),
    ("roihu", "medium", 36, {"min_nodes": 1, "max_nodes": 6, "exclusive": True}),
    ("roihu", "large", 36, {"min_nodes": 6, "max_nodes": 60, "exclusive": True}),
    ("roihu", "longrun", 240, {"max_nodes": 1, "max_cores": 192}),
    ("roihu", "hugemem", 36, {"max_nodes": 1, "max_cores": 128}),
    ("roihu", "hugemem_longrun", 240, {"max_nodes": 1, "max_cores": 128}),
    ("roihu", "interactive", 36,
     {"max_nodes": 1, "max_cores": 32, "max_memory": "64GiB", "max_local_disk_gib": 20}),
    ("lumi", "standard-g", 48,
     {"max_nodes": 1024, "exclusive": True, "max_jobs": 210, "max_running_jobs": 200}),
    ("lumi", "small-g", 72,
     {"max_nodes": 4, "max_gpus": 32, "max_jobs": 210, "max_running_jobs": 200}),
    ("lumi", "dev-g", 3, {"max_nodes": 32, "unknown": ("max_jobs", "max_running_jobs")}),
    ("lumi", "standard", 48,
     {"max_nodes": 512, "exclusive": True, "max_jobs": 120, "max_running_jobs": 100}),
    ("lumi", "small", 72, {"max_nodes": 4, "max_jobs": 220, "max_running_jobs": 200}),
    ("lumi", "debug", 0.5,
     {"max_nodes": 4, "max_jobs": 2, "max_running_jobs": 1, "purpose": "test"}),
    ("lumi", "bench", 6, {"max_nodes": None, "purpose": "restricted", "exclusive": True}),
    ("arc4", "", 48,
     {"min_time": "15min", "min_gpus": 1, "max_gpus": 4, "max_nodes": None, "billing": ""}),
    ("arc4", "", 48,
     {"min_time": "15min", "max_nodes": None, "kinds": ("standard", "high-memory")}),
    ("aire", "gpu", None, {"billing": ""}),
    ("aire", "", None, {"kinds": ("standard",)}),
    ("aire", "himem", None, {"kinds": ("high-memory",)}),
]  # fmt: skip

SHARES = [
    # cluster, GPU, cores, memory GiB, more is refused, comes by itself
    ("puhti", "v100", 10, 93, False, ()),
    ("mahti", "a100", 32, 122.5, False, ("memory",)),
    ("mahti", "a100_1g.5gb", 4, 17.5, True, ("memory",)),
    ("roihu", "gh200", 72, 217, True, ("memory",)),
    ("roihu", "l40", 32, 183, True, ("memory",)),
    ("lumi", "mi250", 7, 60, False, ()),
    ("arc4", "v100", 10, 48, False, ("cores", "memory")),
    ("aire", "l40s", 8, 85, False, ()),
]

BILLS = [
    # cluster, partition, hours, quantities, amount, unit; marked *: the site's own example
    ("puhti", "gpu", 1, {"gpus": 1, "cores": 10, "memory_gib": 80}, 78, "GPU BU"),
    ("puhti", "gpu", 1, {"gpus": 1, "local_disk_gib": 1000}, 66, "GPU BU"),
    ("puhti", "small", 2, {"cores": 40, "memory_gib": 100, "local_disk_gib": 100}, 101.2, "CPU BU"),
    ("mahti", "gpusmall", 1, {"weighted_gpus": ("gpu", 1), "cores": 32}, 100, "GPU BU"),
    ("mahti", "gpumedium", 1, {"weighted_gpus": ("gpu", 4)}, 400, "GPU BU"),  # *
    ("mahti", "gpusmall", 2, {"weighted_gpus": ("gpu-slice", 1)}, 30, "GPU BU"),
    ("mahti", "gpusmall", 1, {"weighted_gpus": ("gpu", 1), "local_disk_gib": 950}, 109.5, "GPU BU"),
    ("mahti", "medium", 3, {"nodes": 2, "cores": 256}, 600, "CPU BU"),
    ("mahti", "small", 1, {"nodes": 1, "cores": 64, "local_disk_gib": 100}, 65, "CPU BU"),
    ("roihu", "gpumedium", 5, {"gpus": 2, "cores": 144, "memory_gib": 434}, 2000, "GPU BU"),  # *
    ("roihu", "small", 2, {"cores": 4, "memory_gib": 16}, 12, "CPU BU"),  # *
    ("roihu", "small", 1, {"cores": 8, "memory_gib": 8}, 6, "CPU BU"),
    ("roihu", "hugemem", 1, {"cores": 2, "memory_gib": 200}, 50, "CPU BU"),
    ("roihu", "hugemem", 1, {"cores": 8, "memory_gib": 200}, 96, "CPU BU"),
    ("roihu", "medium", 3, {"nodes": 2, "cores": 768}, 1728, "CPU BU"),
    ("lumi", "small-g", 1, {"gpus": 1, "cores": 7, "memory_gib": 60}, 0.5, "GPU-hour"),
    ("lumi", "small-g", 1, {"gpus": 1, "cores": 16, "memory_gib": 60}, 1, "GPU-hour"),
    ("lumi", "small-g", 24, {"gpus": 2}, 24, "GPU-hour"),  # *
    ("lumi", "small-g", 24, {"gpus": 1, "memory_gib": 128}, 24, "GPU-hour"),  # *
    ("lumi", "dev-g", 1, {"gpus": 1, "cores": 16, "memory_gib": 256}, 2, "GPU-hour"),  # *
    ("lumi", "dev-g", 1, {"gpus": 1, "cores": 9}, 1, "GPU-hour"),
    ("lumi", "dev-g", 2, {"gpus": 1, "cores": 8, "memory_gib": 64}, 1, "GPU-hour"),
    ("lumi", "dev-g", 2, {"gpus": 1, "cores": 8, "memory_gib": 65}, 2, "GPU-hour"),
    ("lumi", "standard-g", 24, {"nodes": 4, "gpus": 32}, 384, "GPU-hour"),  # *
    ("lumi", "standard", 12, {"nodes": 16}, 24576, "CPU-core-hour"),  # *
    ("lumi", "small", 24, {"nodes": 1, "cores": 4, "memory_gib": 4}, 96, "CPU-core-hour"),  # *
    ("lumi", "small", 24, {"nodes": 1, "cores": 4, "memory_gib": 32}, 384, "CPU-core-hour"),  # *
]


def gib(text: str | None) -> float | None:
    return None if text is None else parse_mib(text) / 1024


def kind_of(cluster: str, name: str) -> NodeKind:
    return next(kind for kind in CLUSTERS[cluster].nodes if kind.name == name)


def partition_of(cluster: str, name: str) -> Partition:
    return next(part for part in CLUSTERS[cluster].partitions if part.name == name)


def test_the_state_of_each_cluster():
    found = {name: (one.status, one.retired_on, one.successor) for name, one in CLUSTERS.items()}
    assert found == {
        "puhti": ("retired", date(2026, 7, 31), "roihu"),
        "mahti": ("retired", date(2026, 8, 31), "roihu"),
        "roihu": ("active", None, ""),
        "lumi": ("active", None, ""),
        "arc4": ("retired", None, "aire"),
        "aire": ("active", None, ""),
    }
    assert {one.verified_on for one in CLUSTERS.values()} == {date(2026, 11, 20)}
    assert [name for name in NAMES if CLUSTERS[name].scheduler != "slurm"] == ["arc4"]


@pytest.mark.parametrize("row", GPU_NODES, ids=lambda row: f"{row[0]}-{row[1]}")
def test_nodes_with_gpus(row):
    cluster, name, nodes, gpu_type, count, gpu_gib, cores, usable, memory, disk = row
    kind = kind_of(cluster, name)
    assert kind.gpu is not None
    gpu = kind.gpu
    assert (gpu.type, gpu.count, gpu.memory_gib) == (gpu_type, count, gpu_gib)
    assert gpu.part_of == ("a100" if name == "gpu-slice" else "")
    assert gpu.vendor == ("amd" if cluster == "lumi" else "nvidia")
    assert (kind.count, kind.cores, kind.usable_cores or kind.cores) == (nodes, cores, usable)
    assert (gib(kind.memory), kind.local_disk_gib) == (memory, disk)
    assert kind.arch == ("aarch64" if gpu_type == "gh200" else "x86_64")


@pytest.mark.parametrize("row", CPU_NODES, ids=lambda row: f"{row[0]}-{row[1]}")
def test_nodes_without_gpus(row):
    cluster, name, *expected = row
    kind = kind_of(cluster, name)
    assert [kind.count, kind.cores, gib(kind.memory), kind.local_disk_gib] == expected
    assert kind.gpu is None


def test_every_kind_of_node_is_checked_and_has_two_sockets_or_as_documented():
    others = {("roihu", "gpu"): 4, ("lumi", "gpu"): 1, ("aire", "gpu"): None}
    kinds = {(name, kind.name): kind for name in NAMES for kind in CLUSTERS[name].nodes}
    assert {row[:2] for row in [*GPU_NODES, *CPU_NODES]} == {*kinds}
    assert {key: kind.sockets for key, kind in kinds.items()} == dict.fromkeys(kinds, 2) | others


def test_partitions_are_all_there_and_no_others():
    found = [(name, one.name) for name in NAMES for one in CLUSTERS[name].partitions]
    assert sorted(found) == sorted(row[:2] for row in PARTITIONS)


@pytest.mark.parametrize("row", PARTITIONS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_limits_of_each_partition(row):
    cluster, name, hours, expected = row
    kinds = expected.get("kinds", ())
    partition = next(
        one
        for one in CLUSTERS[cluster].partitions
        if one.name == name and set(kinds) <= set(one.kinds)
    )
    found = None if partition.max_time is None else parse_duration(partition.max_time) / 3600
    assert found == hours
    assert {key: getattr(partition, key) for key in expected} == expected


@pytest.mark.parametrize("name", NAMES)
def test_limits_on_one_node_are_the_nodes_own(name: str):
    for partition in CLUSTERS[name].partitions:
        kind = kind_of(name, partition.kinds[0])
        if partition.max_cores_per_node is not None:
            assert partition.max_cores_per_node == (kind.usable_cores or kind.cores)
        if kind.gpu and "max_gpus_per_node" not in partition.unknown:
            expected = 2 if partition.name == "gpusmall" else kind.gpu.count
            assert partition.max_gpus_per_node == expected


@pytest.mark.parametrize("name", NAMES)
def test_unknown_limits_are_marked_and_have_no_value(name: str):
    for partition in CLUSTERS[name].partitions:
        for limit in partition.unknown:
            assert getattr(partition, limit) in {None, False}, (partition.name, limit)
        assert (partition.max_time is None) == ("max_time" in partition.unknown)


@pytest.mark.parametrize("row", SHARES, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_fair_share_of_each_gpu(row):
    cluster, gpu, *expected = row
    share = next(share for share in CLUSTERS[cluster].shares if share.gpu == gpu)
    assert [share.cores, gib(share.memory), share.enforced, share.automatic] == expected


def test_how_requests_are_written():
    gpus, disks = {}, {}
    for name, cluster in CLUSTERS.items():
        dialect, disk = cluster.dialect, cluster.local_disk
        assert disk is not None
        option = dialect.gpus.format(type=cluster.shares[0].gpu, count=2)
        gpus[name] = (option, dialect.partition, dialect.memory, cluster.account.required)
        disks[name] = (disk.variable, disk.option.format(gib=100), disk.joins_gres, disk.in_memory)
        assert disk.default_gib == {"roihu": 150, "arc4": 1}.get(name)
        assert disk.only_if_asked == (name in {"puhti", "mahti"})
        assert disk.per_core == (name == "arc4")
        assert disk.path == ("/tmp" if name == "lumi" else "")
        assert dialect.time_required
    assert gpus == {
        "puhti": ("--gres=gpu:v100:2", "required", "node", True),
        "mahti": ("--gres=gpu:a100:2", "required", "none", True),
        "roihu": ("--gres=gpu:gh200:2", "required", "node", True),
        "lumi": ("--gpus-per-node=2", "required", "node", True),
        "arc4": ("-l coproc_v100=2", "never", "core", False),
        "aire": ("--gres=gpu:2", "optional", "node", False),
    }
    assert disks == {
        "puhti": ("LOCAL_SCRATCH", "nvme:100", True, False),
        "mahti": ("LOCAL_SCRATCH", "nvme:100", True, False),
        "roihu": ("TMPDIR", "", False, False),
        "lumi": ("", "", False, True),
        "arc4": ("TMPDIR", "-l disk=100G", False, False),
        "aire": ("TMPDIR", "", False, False),
    }
    assert CLUSTERS["arc4"].account.option == "-P"
    assert CLUSTERS["arc4"].dialect.cores == "-pe smp {cores}"
    node_type = CLUSTERS["arc4"].dialect.constraint
    constraint = kind_of("arc4", "high-memory").constraint
    assert node_type.format(constraint=constraint) == "-l node_type=40core-768G"
    assert CLUSTERS["arc4"].script_lines == ("unset GOMP_CPU_AFFINITY KMP_AFFINITY",)


def amount(billing: Billing, hours: float, quantities: dict[str, float]) -> float:
    """Work out a bill as the site's formula says, apart from Teho's own planner."""

    def term(one: Term) -> float:
        value = quantities.get(one.quantity, 0) * one.times / one.per
        return math.ceil(value) if one.up else value

    largest = max((term(one) for one in billing.largest), default=0)
    return billing.scale * (sum(term(one) for one in billing.sum) + largest) * hours


@pytest.mark.parametrize("row", BILLS, ids=lambda row: f"{row[0]}-{row[1]}-{row[4]}")
def test_bills(row):
    cluster, partition, hours, quantities, expected, unit = row
    billing = CLUSTERS[cluster].billing[partition_of(cluster, partition).billing]
    counted = dict(quantities)
    if "weighted_gpus" in counted:
        name, count = counted["weighted_gpus"]
        gpu = kind_of(cluster, name).gpu
        assert gpu is not None
        counted |= {"gpus": count, "weighted_gpus": count * gpu.weight}
    assert billing.unit == unit
    assert amount(billing, hours, counted) == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
def test_free_resources_are_not_billed_and_the_cost_of_gpus_is_known(name: str):
    # Nothing is charged in Leeds; Roihu's TMPDIR is free, and so are the GPU jobs' cores.
    free = {"roihu-gpu": {"cores", "memory_gib"}, "mahti-gpu": {"cores", "memory_gib"}}
    assert bool(CLUSTERS[name].billing) == (name not in {"arc4", "aire"})
    for partition in CLUSTERS[name].partitions:
        if not CLUSTERS[name].billing:
            assert partition.billing == ""
            continue
        billing = CLUSTERS[name].billing[partition.billing]
        terms = (*billing.sum, *billing.largest)
        counted = {term.quantity for term in terms}
        assert not counted & free.get(f"{name}-{partition.billing}", set())
        assert name != "roihu" or "local_disk_gib" not in counted
        has_gpus = any(kind_of(name, kind).gpu for kind in partition.kinds)
        assert sum(term.gpu_part for term in terms) == has_gpus, partition.name


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("puhti", "module purge; module load pytorch"),
        ("mahti", "module purge; module load pytorch"),
        ("roihu", "module purge; module load python-pytorch"),
        ("lumi", (
            "module purge; module use /appl/local/laifs/modules; "
            "module load lumi-aif-singularity-bindings; "
            "export SIF=/appl/local/laifs/containers/lumi-multitorch-latest.sif"
        )),
        ("arc4", "module load anaconda; source activate pytorch-gpu"),
    ],
)  # fmt: skip
def test_how_pytorch_is_loaded(name: str, lines: str):
    software = next(one for one in CLUSTERS[name].software if one.framework == "pytorch")
    assert "; ".join(software.lines) == lines
    assert software.run_prefix == ("singularity run $SIF" if name == "lumi" else "")


CONFLICTS = [
    ("lumi", ("63", "56", "August 2023")),
    ("lumi", ("dev-g", "#198", "#255")),
    ("arc4", ("128 GB", "800 GB")),
    ("roihu", ("gpumedium", "4 nodes", "4 GPUs")),
    ("aire", ("28", "17", "14")),
]


@pytest.mark.parametrize(("name", "words"), CONFLICTS)
def test_conflicts_say_what_is_followed(name: str, words: tuple[str, ...]):
    (text,) = [one for one in CLUSTERS[name].conflicts if all(word in one for word in words)]
    assert "This file " in text


def sources_of(value: Any) -> list[str]:
    """Return every `source` of a file, however deep it stands."""
    if isinstance(value, dict):
        own = [value["source"]] if isinstance(value.get("source"), str) else []
        return own + [one for part in value.values() for one in sources_of(part)]
    return [one for part in value for one in sources_of(part)] if isinstance(value, tuple) else []


@pytest.mark.parametrize("name", NAMES)
def test_every_fact_has_a_known_source_with_a_page_and_a_date(name: str):
    cluster = CLUSTERS[name]
    sources = sources_of(msgspec.to_builtins(cluster))
    assert len(sources) >= len(cluster.nodes) + len(cluster.partitions) + len(cluster.billing) + 3
    for source in sources:
        key, _, page = source.replace(";", " ").partition(" ")
        assert key in cluster.sources, source
        assert re.search(r"\d{4}-\d{2}|20\d{4}", page), source
