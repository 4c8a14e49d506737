"""The Alliance's files hold what its pages say, no more and no less.

The tables below were written from the pages, not from the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from fnmatch import fnmatch
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec
import pytest

from teho.clusters.catalogue import load_cluster
from teho.model.cluster import Billing, Cluster, NodeKind, Partition
from teho.units import parse_mib

ACTIVE = ("fir", "narval", "nibi", "rorqual", "trillium")
RETIREMENTS = {
    "beluga": (date(2025, 7, 31), "rorqual"),
    "cedar": (date(2025, 9, 12), "fir"),
    "graham": (date(2025, 9, 1), "nibi"),
}
RETIRED = tuple(RETIREMENTS)
ALLIANCE = ACTIVE + RETIRED
GENERAL = ("fir", "narval", "nibi", "rorqual")
"""The clusters whose jobs name no partition and may have a slice of a GPU."""


def gib(text: str | None) -> float | None:
    return None if text is None else parse_mib(text) / 1024


@cache
def cluster(name: str) -> Cluster:
    return load_cluster(name, {"XDG_CONFIG_HOME": "/nonexistent"})


def kind(name: str, kind_name: str) -> NodeKind:
    return next(found for found in cluster(name).nodes if found.name == kind_name)


def partitions(name: str, kind_name: str) -> list[Partition]:
    return [found for found in cluster(name).partitions if kind_name in found.kinds]


def said(name: str) -> str:
    return " ".join(cluster(name).notes)


@pytest.mark.parametrize("name", ALLIANCE)
def test_status(name):
    found = cluster(name)
    assert (found.retired_on, found.successor) == RETIREMENTS.get(name, (None, ""))
    assert found.status == ("retired" if name in RETIREMENTS else "active")
    assert found.internet_on_compute_nodes is (name in {"cedar", "fir", "nibi"})
    assert found.verified_on == date(2026, 11, 20)


# Cluster, kind: nodes, GPUs a node, type, GPU memory, RGU, cores, memory as the page rounds it
# and in Slurm's M.
GPU_NODES = {
    ("narval", "a100"): (159, 4, "a100", 40, 4.0, 48, 498, 510_000),
    ("beluga", "v100"): (172, 4, "v100", 16, 2.2, 40, 186, 191_000),
    ("cedar", "p100"): (114, 4, "p100", 12, 1.0, 24, 125, 128_000),
    ("cedar", "p100l"): (32, 4, "p100l", 16, 1.1, 24, 250, 257_000),
    ("cedar", "v100l"): (192, 4, "v100l", 32, 2.6, 32, 187, 192_000),
    ("graham", "p100"): (160, 2, "p100", 12, 1.0, 32, 124, 127_518),
    ("graham", "v100-16gb"): (7, 8, "v100", 16, 2.2, 28, 178, 183_105),
    ("graham", "v100"): (2, 8, "v100", 32, 2.6, 40, 377, 386_048),
    ("graham", "t4-16"): (6, 4, "t4", 16, 1.3, 16, 187, 191_840),
    ("graham", "t4-44"): (30, 4, "t4", 16, 1.3, 44, 187, 191_840),
    ("graham", "a100-128"): (1, 8, "a100", 80, 4.8, 128, 2000, 2_048_000),
    ("graham", "a100-32"): (2, 4, "a100", 80, 4.8, 32, 256, 262_144),
    ("graham", "a5000"): (11, 4, "a5000", None, None, 64, 128, 131_072),
    ("fir", "h100"): (160, 4, "h100", 80, 12.2, 48, 1125, 1_152_000),
    ("rorqual", "h100"): (93, 4, "h100", 80, 12.2, 64, 498, 510_000),
    ("nibi", "h100"): (36, 8, "h100", 80, 12.2, 112, 2000, 2_048_000),
    ("nibi", "mi300a"): (6, 4, "mi300a", None, None, 96, 495, 507_000),
    ("trillium", "h100"): (63, 4, "h100", 80, 12.2, 96, 749, 767_000),
}


@pytest.mark.parametrize(("where", "expected"), GPU_NODES.items())
def test_gpu_nodes(where, expected):
    count, per_node, gpu_type, gpu_gib, rgu, cores, memory_gib, memory_mib = expected
    found = kind(*where)
    assert (found.count, found.cores, gib(found.memory)) == (count, cores, memory_gib)
    assert found.gpu is not None
    assert (found.gpu.type, found.gpu.count, found.gpu.memory_gib) == (gpu_type, per_node, gpu_gib)
    assert found.gpu.vendor == ("amd" if gpu_type == "mi300a" else "nvidia")
    assert f"{memory_mib}M" in found.notes
    assert memory_gib == memory_mib // 1024, "what a job can ask for in whole GiB"
    if rgu is not None:
        assert found.gpu.weight == rgu


# Cluster, slice: type in a request, memory, RGU, cores and memory that go with it.
H100_SLICES = {
    "fir": ("nvidia_h100_80gb_hbm3_", (1, 35), (3, 70), (6, 140)),
    "nibi": ("h100_", (2, 31), (4, 62), (6, 124)),
    "rorqual": ("h100_", (2, 15), (4, 31), (8, 62)),
}
SLICES = {
    ("narval", "a100-1g.5gb"): ("a100_1g.5gb", 5, 0.57, 1, 15),
    ("narval", "a100-2g.10gb"): ("a100_2g.10gb", 10, 1.14, 3, 31),
    ("narval", "a100-3g.20gb"): ("a100_3g.20gb", 20, 2.0, 6, 62),
    ("narval", "a100-4g.20gb"): ("a100_4g.20gb", 20, 2.3, 6, 62),
    **{
        (name, f"h100-{size}"): (prefix + size, gib, rgu, *part)
        for name, (prefix, *parts) in H100_SLICES.items()
        for (size, gib, rgu), part in zip(
            (("1g.10gb", 10, 1.74), ("2g.20gb", 20, 3.48), ("3g.40gb", 40, 6.1)), parts, strict=True
        )
    },
}


@pytest.mark.parametrize(("where", "expected"), SLICES.items())
def test_slices(where, expected):
    found = kind(*where)
    assert found.gpu is not None
    assert (found.gpu.type, found.gpu.memory_gib, found.gpu.weight) == expected[:3]
    assert (found.count, found.gpu.count, found.gpu.max_per_job) == (None, None, 1)
    assert found.gpu.part_of == ("a100" if where[0] == "narval" else "h100")
    nodes = attrgetter("cores", "sockets", "memory", "local_disk_gib")
    assert nodes(found) == nodes(kind(where[0], found.gpu.part_of))
    (partition,) = partitions(*where)
    assert (partition.max_gpus, partition.max_nodes) == (1, 1), "one slice a job"


SHARES = {
    ("narval", "a100"): (12, 124),
    ("fir", "h100"): (12, 280),
    ("rorqual", "h100"): (16, 124),
    ("nibi", "h100"): (14, 250),
    # The pages say 188; four of those are more than the node has: see the file's conflicts.
    ("trillium", "h100"): (24, 187),
    ("beluga", "v100"): (10, 32),
    ("graham", "v100"): (3, None),  # 3.5 on nodes of 28 cores, 5 on nodes of 40
}


def test_shares_are_exactly_these():
    kinds = {(name, node.name) for name in ALLIANCE for node in cluster(name).nodes if node.gpu}
    assert kinds == set(GPU_NODES) | set(SLICES)
    found = {(name, one.gpu): one for name in ALLIANCE for one in cluster(name).shares}
    slices = {(name, row[0]): row[3:] for (name, _), row in SLICES.items()}
    assert {key: (one.cores, gib(one.memory)) for key, one in found.items()} == SHARES | slices
    assert {key for key, one in found.items() if one.enforced} == {("trillium", "h100")}


# Nodes without GPUs: how many, cores, memory in Slurm's M.
CPU_NODES = {
    "fir": {(864, 192, 768_000)},
    "narval": {(1145, 64, 256_000), (33, 64, 2_057_500), (3, 64, 4_096_000)},
    "nibi": {(700, 192, 766_000), (10, 192, 6_144_000)},
    "rorqual": {(670, 192, 768_000), (8, 192, 768_000), (8, 192, 3_086_250)},
    "trillium": {(1224, 192, 767_000)},
    "beluga": {(160, 40, 95_000), (579, 40, 191_000), (10, 40, 191_000)}
    | {(51, 40, 771_000), (2, 40, 771_000)},
    "cedar": {(256, 32, 128_000), (256, 32, 257_000), (40, 32, 515_000), (16, 32, 1_547_000)}
    | {(6, 32, 4_096_000), (2, 40, 6_144_000), (608, 48, 192_000), (768, 48, 192_000)},
    "graham": {(136, 44, 191_840), (6, 32, 1_048_576), (903, 32, 128_000), (56, 32, 256_500)}
    | {(24, 32, 514_500), (3, 64, 3_095_000)},
}


@pytest.mark.parametrize(("name", "expected"), CPU_NODES.items())
def test_nodes_without_gpus(name, expected):
    nodes = [node for node in cluster(name).nodes if node.gpu is None]
    slurm = [int(node.notes.split("M", 1)[0]) for node in nodes]
    found = [(node.count, node.cores, mib) for node, mib in zip(nodes, slurm, strict=True)]
    assert sorted(found) == sorted(expected)
    assert [gib(node.memory) for node in nodes] == [mib // 1024 for mib in slurm]


@pytest.mark.parametrize("name", ALLIANCE)
def test_shares_never_exceed_the_node(name):
    for fair in cluster(name).shares:
        for node in cluster(name).nodes:
            if node.gpu and node.gpu.type == fair.gpu and node.gpu.count:
                assert (fair.cores or 0) * node.gpu.count <= node.cores
                assert (gib(fair.memory) or 0) * node.gpu.count <= (gib(node.memory) or 0)


@pytest.mark.parametrize("name", [*GENERAL, *RETIRED])
def test_limits_of_the_general_purpose_clusters(name):
    assert cluster(name).dialect.partition == "never"
    for found in cluster(name).partitions:
        assert (found.name, found.exclusive) == ("", False)
        gpus = [kind(name, one).gpu for one in found.kinds]
        assert (found.max_gpus_per_node or 0) == max(
            (gpu.count or gpu.max_per_job or 0) if gpu else 0 for gpu in gpus
        )
        if name != "cedar":
            assert (found.max_time, found.max_jobs) == ("7d", 1000)
            assert found.advised_min_time == "1h"
            assert found.min_time == (None if name == "nibi" else "5min")


# Name, longest, nodes, GPUs, GPUs of a node, cores, jobs, running jobs.
TRILLIUM = [
    ("", "24h", 5, (1, None), (None, 4), None, 500, 150),
    ("debug", "2h", 1, (1, 1), (None, 1), 24, 1, 1),
    ("debug", "30min", 2, (4, 8), (4, 4), 192, 1, 1),
    ("", "24h", 10, (None, None), (None, None), None, 500, 150),
    ("debug", "1h", 2, (None, None), (None, None), 384, 1, 1),
]


@pytest.mark.parametrize("number", range(5))
def test_trilliums_partitions(number):
    found = cluster("trillium").partitions[number]
    gpus = (found.min_gpus, found.max_gpus), (found.min_gpus_per_node, found.max_gpus_per_node)
    jobs = found.max_cores, found.max_jobs, found.max_running_jobs
    assert (found.name, found.max_time, found.max_nodes, *gpus, *jobs) == TRILLIUM[number]
    assert found.purpose == ("test" if found.name else "production")
    assert found.min_time == (None if found.name else "15min")
    assert found.kinds == (("cpu",) if number > 2 else ("h100",))
    assert found.exclusive == (number > 2)
    assert found.gpu_counts == ((1,) if number == 0 else ())
    assert found.gpu_multiple == (4 if number in {0, 2} else None), "1 GPU, or whole nodes of 4"


def test_requests():
    assert cluster("trillium").dialect.partition == "optional", "debug is named, compute is not"
    gpu, cpu = partitions("trillium", "h100")[0], partitions("trillium", "cpu")[0]
    assert (gpu.max_nodes_with_allocation, cpu.max_nodes_with_allocation) == (25, 128)
    assert gpu.whole_nodes_if_several
    for name in ALLIANCE:
        asked = cluster(name).dialect.gpus.format(type="h100", count=4)
        new = "--gpus-per-node=4" if name == "trillium" else "--gpus-per-node=h100:4"
        assert asked == ("--gres=gpu:h100:4" if name in RETIRED else new)
        assert cluster(name).dialect.memory == ("none" if name == "trillium" else "node")
        assert cluster(name).dialect.time_required
        assert cluster(name).dialect.gpu_type_optional == (name in {"beluga", "trillium"})
        assert cluster(name).account.example.startswith("def-")
        assert not cluster(name).account.required, "members of one project need not say it"
        assert cluster(name).account.allocations == ("rrg-", "rpp-")
        assert cluster(name).recognised_by == {"CC_CLUSTER": name}
    assert cluster("trillium").dialect.submit_from == "$SCRATCH"
    assert cluster("cedar").dialect.never_submit_from == "/home"
    assert kind("graham", "v100").constraint == "cascade,v100"
    assert all(cluster(name).dialect.default_memory_per_core == "256MiB" for name in GENERAL)
    assert all("DISABLE_DCGM=1 in the env" in said(name) for name in ("narval", "rorqual"))
    for name, span in (("rorqual", (370, 3360)), ("beluga", (350, 2490))):
        disk = cluster(name).local_disk
        assert disk is not None
        assert (disk.min_gib, disk.max_gib) == span
    assert "--switches=1" in partitions("nibi", "h100")[0].notes
    (whole,) = partitions("nibi", "mi300a")
    assert (whole.min_gpus_per_node, whole.max_gpus_per_node, whole.gpu_multiple) == (4, 4, 4)


def test_local_disk():
    found = {name: cluster(name).local_disk for name in ALLIANCE}
    assert {disk.variable for disk in found.values() if disk} == {"SLURM_TMPDIR"}
    default = {name: disk.default_gib for name, disk in found.items() if disk and disk.default_gib}
    assert default == {"narval": 800, "rorqual": 375, "fir": 7 * 1024, "nibi": 3 * 1024}
    assert {name for name, disk in found.items() if disk and disk.in_memory} == {"trillium"}
    options = {name: disk.option for name, disk in found.items() if disk and disk.option}
    assert options == dict.fromkeys(("rorqual", "beluga"), "--tmp={gib}G")
    whole = {"rorqual": 3360, "nibi": 11 * 1024, "narval": 800, "fir": 7 * 1024, "trillium": 0}
    for where in GPU_NODES:
        expected = 3 * 1024 if where[1] == "mi300a" else whole.get(where[0])
        assert kind(*where).local_disk_gib == expected
    for name in ACTIVE:
        sizes = {node.local_disk_gib for node in cluster(name).nodes if not node.gpu}
        assert sizes == {default.get(name, 0)} | ({3360} if name == "rorqual" else set())


@pytest.mark.parametrize("name", ALLIANCE)
def test_software(name):
    lines = {software.framework: software.lines for software in cluster(name).software}
    assert set(lines) == {"pytorch", "tensorflow", "any"}
    assert {found[0].split()[2] for found in lines.values()} == {"StdEnv/2023"}
    if name == "trillium":
        assert not any("SLURM_TMPDIR" in line for line in lines["pytorch"]), "its RAM is the job's"
        return
    for framework, package in (("pytorch", "torch"), ("tensorflow", "tensorflow")):
        everywhere, make, activate, install, end, again = lines[framework][1:]
        assert (everywhere[:38], end) == ("srun -N $SLURM_NNODES -n $SLURM_NNODES", "EOF")
        assert make == "virtualenv --no-download $SLURM_TMPDIR/env"
        assert activate == again == "source $SLURM_TMPDIR/env/bin/activate"
        assert install == f"pip install --no-index {package}"


def bill(billing: Billing, *, rgu: float = 0, cores: float, memory_gib: float) -> float:
    amount = {"weighted_gpus": rgu, "cores": cores, "memory_gib": memory_gib}
    assert (billing.sum, billing.scale) == ((), 1)
    return max(amount[term.quantity] * term.times / term.per for term in billing.largest)


# Cores and GB in the bundle of one RGU.
BUNDLES = {
    "fir": (0.98, 23.6),
    "narval": (3.00, 31.1),
    "nibi": (1.15, 20.5),
    "rorqual": (1.31, 10.2),
    "trillium": (1.97, 15.4),
    "beluga": (4.5, 21),
    "cedar": (3.1, 25),
    "graham": (9.7, 43),
}


@pytest.mark.parametrize(("name", "bundle"), BUNDLES.items())
def test_a_gpu_jobs_bill_is_its_largest_part_in_bundles(name, bundle):
    billing, (cores, memory) = cluster(name).billing["gpu"], bundle
    assert billing.unit == "RGU-hour"
    assert bill(billing, rgu=5, cores=0, memory_gib=0) == 5
    assert bill(billing, cores=cores * 7, memory_gib=0) == pytest.approx(7)
    assert bill(billing, cores=0, memory_gib=memory * 9) == pytest.approx(9)
    assert [term.quantity for term in billing.largest if term.gpu_part] == ["weighted_gpus"]


@pytest.mark.parametrize(("cores", "expected"), [(12, 4.0), (24, 8.0)])
def test_narvals_worked_example(cores, expected):
    billing = cluster("narval").billing["gpu"]
    assert bill(billing, rgu=4.0, cores=cores, memory_gib=124) == pytest.approx(expected)


@pytest.mark.parametrize(("cores", "memory_gb", "expected"), [(2, 4, 2), (2, 10, 2.5), (1, 8, 2)])
@pytest.mark.parametrize("name", ALLIANCE)
def test_a_cpu_jobs_bill_is_its_core_equivalents(name, cores, memory_gb, expected):
    billing = cluster(name).billing["cpu"]
    assert bill(billing, cores=cores, memory_gib=memory_gb) == expected


@pytest.mark.parametrize("name", ACTIVE)
def test_a_gpu_with_its_fair_share_costs_what_the_gpu_costs(name):
    """To the half per cent to which the page rounds its ratios."""
    weights = {node.gpu.type: node.gpu.weight for node in cluster(name).nodes if node.gpu}
    for fair in cluster(name).shares:
        rgu, asked = weights[fair.gpu], (fair.cores or 0, gib(fair.memory) or 0)
        cost = bill(cluster(name).billing["gpu"], rgu=rgu, cores=asked[0], memory_gib=asked[1])
        assert rgu <= cost <= rgu * 1.005


@pytest.mark.parametrize("name", ALLIANCE)
def test_what_a_partition_bills(name):
    for partition in cluster(name).partitions:
        gpus = any(kind(name, one).gpu for one in partition.kinds)
        unknown = partition.kinds in {("mi300a",), ("a5000",)}
        assert partition.billing == ("" if unknown else "gpu" if gpus else "cpu")
        assert ("billing" in partition.unknown) == unknown


def test_what_is_not_documented_is_named_and_not_guessed():
    for partition in cluster("cedar").partitions:
        assert (partition.max_time, partition.min_time, partition.max_jobs) == (None, None, None)
        assert {"max_time", "min_time", "max_jobs"} <= set(partition.unknown)
    assert "28 d" in said("cedar")
    assert re.search(r"the memory and the RGU of the RTX A5000", said("graham"))
    assert re.search(r"For an MI300A, these facts are not documented", said("nibi"))
    assert "does not give their number of cores" in said("fir")
    for where in SLICES:
        assert "not documented" in kind(*where).notes
    told = {"graham": "3.5", "beluga": "46 GB", "cedar": "1352", "narval": "4g.20gb"}
    for name, words in (told | {"trillium": "188", "fir": "1000 jobs"}).items():
        assert any(words in conflict for conflict in cluster(name).conflicts), name


@pytest.mark.parametrize("name", ALLIANCE)
def test_what_is_unknown_is_left_out(name):
    for partition in cluster(name).partitions:
        assert {getattr(partition, limit) for limit in partition.unknown} <= {None, ""}


def sources(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from [one] if key == "source" else sources(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from sources(one)


@pytest.mark.parametrize("name", ALLIANCE)
def test_every_fact_has_a_page_and_a_date(name):
    found = list(sources(msgspec.to_builtins(cluster(name))))
    assert len(found) > len(cluster(name).nodes) + len(cluster(name).partitions)
    for source in found:
        assert source.split(" ")[0].rstrip(";") in cluster(name).sources, source
        key = source.split(" ")[0].rstrip(";")
        if key in {"GUIDE", "TABLE", "RAC2025"}:
            continue  # One document without pages or dates.
        assert re.search(r"[\w-]+\.(md|rst)", source), source
        dates = re.findall(r"\d{4}-\d{2}-\d{2}", source)
        assert dates, source
        assert all(date.fromisoformat(one) <= cluster(name).verified_on for one in dates)


def test_hosts_identify_their_cluster():
    hosts = {"narval1": "narval", "gra-login4": "graham", "fir2": "fir", "rorqual2": "rorqual"}
    hosts |= {"cedar1": "cedar", "beluga.alliancecan.ca": "beluga", "l1.nibi": "nibi"}
    hosts |= dict.fromkeys(("tri-login01", "trig-login01"), "trillium")
    hosts |= dict.fromkeys(("firewall", "laptop"))
    for host, expected in hosts.items():
        found = [name for name in ALLIANCE if any(fnmatch(host, p) for p in cluster(name).hosts)]
        assert found == ([expected] if expected else []), host


# CPUs and GPUs of whole clusters, as the Alliance's guide counts them.
TOTALS = {
    "narval": (75_584, 636),
    "beluga": (32_080, 688),
    "cedar": (90_752, 1352),
    "graham": (37_664, 536),
}


@pytest.mark.parametrize(("name", "expected"), TOTALS.items())
def test_the_guides_totals(name, expected):
    totals = cluster(name).totals
    assert totals is not None
    assert (totals.cores, totals.gpus) == expected
    gpus = {node.name: node.gpu.count * node.count for node in cluster(name).nodes
            if node.gpu and node.gpu.count and node.count}  # fmt: skip
    later = {"a100-128", "a100-32", "a5000"} if name == "graham" else set()
    assert sum(count for kind, count in gpus.items() if kind not in later) == totals.gpus
