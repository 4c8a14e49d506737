"""A cluster from Slurm's answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.clusters.billing import BilledUse, bill
from teho.errors import MissingCommandError, SchedulerError
from teho.model.cluster import Cluster, Partition
from teho.schedulers.command import Completed
from teho.schedulers.inventory import Host, gpu_of, kinds_of, length
from teho.schedulers.slurm.inventory import slurm_cluster
from teho.schedulers.slurm.rows import columns, settings, text_rows
from teho.units import parse_duration

DATA = Path(__file__).parents[2] / "data" / "discover"
TODAY = date(2026, 11, 20)


class Slurm:
    """Answers from files; what is not there is refused."""

    def __init__(self, folder: str, *, accounting: bool = True) -> None:
        self.folder = DATA / folder
        self.accounting = accounting
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        assert repeat
        assert timeout_s >= 1
        self.asked.append(tuple(argv))
        name = {"node": "nodes"}.get(argv[-1], argv[-1])
        if argv[0] == "sacctmgr":
            if not self.accounting:
                raise MissingCommandError("sacctmgr cannot be started")
            name = "qos" if "qos" in argv else "user"
        if name == "user":
            return Completed(tuple(argv), 0, "bio\n", "")
        path = self.folder / f"{name}.txt"
        if not path.exists():
            return Completed(tuple(argv), 1, "", "scontrol: nothing is known of that\n")
        return Completed(tuple(argv), 0, path.read_text(), "")


def discovered(folder: str = "slurm", *, accounting: bool = True, name: str = "") -> Cluster:
    ask = Slurm(folder, accounting=accounting)
    return slurm_cluster(ask, user="ada", host="login1", today=TODAY, name=name)


def edited(**changes: str) -> Cluster:
    """Discover from the text with some words exchanged: `old=new`, in any answer."""
    ask = Slurm("slurm")

    def answer(argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        done = ask(argv, timeout_s=timeout_s, repeat=repeat)
        text = done.stdout
        for old, new in changes.items():
            text = text.replace(old, new)
        return msgspec.structs.replace(done, stdout=text)

    return slurm_cluster(answer, user="ada", host="login1", today=TODAY)


@pytest.fixture(scope="module")
def oak() -> Cluster:
    return discovered()


def part(cluster: Cluster, name: str) -> Partition:
    (found,) = [one for one in cluster.partitions if one.name == name]
    return found


def test_the_cluster_itself(oak: Cluster) -> None:
    assert (oak.name, oak.title, oak.scheduler, oak.status) == ("oak", "oak", "slurm", "active")
    assert oak.verified_on == TODAY
    assert oak.hosts == ("login1",)
    assert oak.recognised_by == {"SLURM_CLUSTER_NAME": "oak"}
    assert oak.account.example == "bio"
    assert oak.dialect.partition == "optional"
    assert discovered(name="Birch").name == "birch"


def test_nodes_that_are_alike_are_one_kind(oak: Cluster) -> None:
    (gpu,) = [kind for kind in oak.nodes if kind.gpu and kind.gpu.count == 4 and
              kind.gpu.type == "a100"]  # fmt: skip
    assert gpu.count == 2
    assert (gpu.cores, gpu.usable_cores, gpu.sockets) == (64, 62, 2)
    # CPUs are threads: 0 and 1 are the first core, 64 and 65 the 33rd.
    assert gpu.reserved_cores == (0, 32)
    assert gpu.memory == "1000GiB"  # 1031000 - 7000 MiB
    assert gpu.local_disk_gib == pytest.approx(1757.81)
    assert gpu.gpu is not None
    assert gpu.gpu.memory_gib is None


def test_each_gpu_type_of_a_node_is_a_kind(oak: Cluster) -> None:
    kinds = {kind.name: kind for kind in oak.nodes if kind.name in part(oak, "mig").kinds}
    types = {kind.gpu.type: kind.gpu for kind in kinds.values() if kind.gpu}
    assert {name: gpu.count for name, gpu in types.items()} == {"a100": 2, "a100_1g.5gb": 14}
    assert types["a100_1g.5gb"].part_of == "a100"
    assert types["a100_1g.5gb"].memory_gib == 5
    assert all("14 × a100_1g.5gb" in kind.notes for kind in kinds.values())


def test_nodes_that_differ_only_in_features_are_one_kind(oak: Cluster) -> None:
    (thin,) = [kind for kind in oak.nodes if kind.gpu is None]
    assert (thin.constraint, thin.count, thin.threads_per_core) == ("", 3, 1)
    assert thin.local_disk_gib == 0  # --tmp brings no job there
    (grace,) = [kind for kind in oak.nodes if kind.arch == "aarch64"]
    assert grace.gpu is not None
    assert (grace.gpu.type, grace.gpu.typed) == ("gpu", False)
    assert "{type}" in oak.dialect.gpus  # for the others


def test_limits_of_a_partition_and_of_its_qos(oak: Cluster) -> None:
    gpu = part(oak, "gpu")
    assert gpu.max_time == "1d"  # the QOS is stricter than the partition's 3 days
    assert gpu.max_nodes == 4
    assert (gpu.min_gpus, gpu.max_gpus, gpu.max_gpus_per_node) == (1, 8, 4)
    assert gpu.max_cores == 240  # 480 threads
    assert (gpu.max_jobs, gpu.max_running_jobs) == (200, 10)
    assert gpu.unknown == ()
    cpu = part(oak, "cpu")
    assert (cpu.max_time, cpu.min_nodes, cpu.exclusive) == (None, 2, True)
    debug = part(oak, "debug")
    assert (debug.max_time, debug.max_cores_per_node, debug.max_memory) == ("15min", 16, "128GiB")
    assert "DOWN" in debug.notes
    assert debug.unknown == ("billing",)
    assert part(oak, "mig").max_time == "8h"


def test_users_without_access_to_a_partition_are_reported(oak: Cluster) -> None:
    assert part(oak, "priority").purpose == "production"  # hidden, and open
    assert part(oak, "grace").purpose == "restricted"  # for root alone
    assert part(oak, "gpu").purpose == "production"
    assert part(oak, "priority").accounts == ("bio", "chem", "physics", "maths")
    assert part(oak, "grace").groups == ("wheel",)
    assert part(oak, "gpu").accounts == part(oak, "gpu").groups == ()


def test_qos_and_what_is_enforced_are_reported(oak: Cluster) -> None:
    assert oak.enforced == ("associations", "limits", "qos")
    assert part(oak, "gpu").qos == "gpu"
    gpu = oak.qos["gpu"]
    assert gpu.max_of_job == {"cpu": 480, "gres/gpu": 8, "mem": 1024 * 1024}
    assert (gpu.max_of_user, gpu.max_of_all) == ({"cpu": 960}, {"node": 90})
    assert (gpu.flags, gpu.max_time) == (("DenyOnLimit",), "1d")
    lax = edited(**{"= associations,limits,qos": "= associations"})
    assert part(lax, "gpu").max_gpus is None


def test_weights_are_a_bill(oak: Cluster) -> None:
    use = BilledUse(nodes=1, gpus=(("a100", 2),), cpus=80, cores=40, memory_gib=100, hours=1)
    gpu = oak.billing[part(oak, "gpu").billing]
    # MAX_TRES: 2 × 16 for GPUs; 80 threads × 0.5; 100 GiB × 0.125.
    assert bill(gpu, use).amount == 40
    assert bill(oak.billing["cpu"], msgspec.structs.replace(use, nodes=50)).amount == 100
    # Weights of two GPU types have no word in a bill.
    assert part(oak, "mig").billing == ""
    assert "billing" in part(oak, "mig").unknown
    assert "GRES/gpu:a100=10" in part(oak, "mig").notes


@pytest.mark.parametrize(
    ("flags", "amount"), [("", 32 + 40 + 12.5), ("MAX_TRES_GRES", 32 + 40), ("MAX_TRES", 40)]
)
def test_priority_flags_say_how_weights_are_added(flags: str, amount: float) -> None:
    cluster = edited(**{"= MAX_TRES\n": f"= {flags}\n"})
    use = BilledUse(nodes=1, gpus=(("a100", 2),), cpus=80, cores=40, memory_gib=100, hours=1)
    assert bill(cluster.billing["gpu"], use).amount == amount


def test_weights_of_gpu_types_that_are_counted_are_a_bill() -> None:
    cluster = edited(**{"pages,gres/gpu": "pages,gres/gpu,gres/gpu:a100,gres/gpu:a100_1g.5gb"})
    assert cluster.counted_gpus == ("a100", "a100_1g.5gb")
    use = BilledUse(nodes=1, gpus=(("a100_1g.5gb", 4),), cpus=3, hours=1)
    assert bill(cluster.billing["mig"], use).amount == 8  # the largest
    assert "4 a100_1g.5gb GPUs × 2" in bill(cluster.billing["mig"], use).sum


def test_defaults_of_a_partition_are_its_own_or_the_clusters(oak: Cluster) -> None:
    gpu, mig = part(oak, "gpu"), part(oak, "mig")
    assert (gpu.default_cpus_per_gpu, gpu.default_memory_per_gpu) == (30, "240GiB")
    assert (mig.default_cpus_per_gpu, mig.default_memory_per_gpu) == (None, None)
    general = "PriorityFlags           = MAX_TRES\nDefMemPerCPU = 1000\nMaxMemPerNode = UNLIMITED\n"
    cluster = edited(**{"PriorityFlags           = MAX_TRES\n": general})
    assert part(cluster, "mig").default_memory_per_cpu == "1000MiB"
    assert part(cluster, "mig").max_memory is None
    assert part(cluster, "debug").max_memory == "128GiB"


def test_defaults_and_weights_that_do_not_read_are_left_out() -> None:
    told = "JobDefaults=DefCpuPerGPU=x,DefMemPerGPU=1X"
    cluster = edited(**{
        "JobDefaults=(null)": told,
        "JobDefaults=DefCpuPerGPU=30,DefMemPerGPU=245760": told,
        "GRES/gpu=16": "GRES/gpu=many",
    })  # fmt: skip
    assert part(cluster, "gpu").default_cpus_per_gpu is None
    assert part(cluster, "gpu").default_memory_per_gpu is None
    assert "billing" in part(cluster, "gpu").unknown


def test_without_priority_flags_a_sum_is_not_known() -> None:
    # Slurm does not show them with priority/basic.
    cluster = edited(**{"PriorityFlags           = MAX_TRES\n": ""})
    assert "billing" in part(cluster, "gpu").unknown


def test_a_gpu_type_without_a_count_is_one_gpu() -> None:
    cluster = edited(**{"Gres=gpu:4 ": "Gres=gpu:gh200 ", "TmpDisk=1800000": "TmpDisk=0"})
    (grace,) = [kind.gpu for kind in cluster.nodes if kind.arch == "aarch64"]
    assert grace is not None
    assert (grace.type, grace.count, grace.vendor) == ("gh200", 1, "nvidia")
    assert "{type}" in cluster.dialect.gpus
    assert cluster.local_disk is None
    assert edited(**{"Gres=gpu:4 ": "Gres=gpu:mi250:8 "}).nodes[-1].gpu.vendor == "amd"  # type: ignore[union-attr]


def test_a_plugin_that_slurm_itself_has_says_that_a_time_is_needed() -> None:
    assert edited(**{"= lua": "= lua,require_timelimit"}).dialect.time_required
    plain = edited(**{"JobSubmitPlugins        = lua": "JobSubmitPlugins        = (null)"})
    assert not plain.dialect.time_required
    assert not any("JobSubmitPlugins" in note for note in plain.notes)


def test_features_that_name_places_make_no_kinds() -> None:
    hosts = [
        Host(name=f"n{rack}", cores=4, usable_cores=4, features=frozenset({"ib", f"rack{rack}"}))
        for rack in range(3)
    ]
    (kind,) = kinds_of(hosts, "X")
    assert (kind.count, kind.constraint, kind.notes) == (3, "", "Features: ib.")


@given(st.integers(1, 10**9))
def test_a_length_of_time_reads_back(seconds: int) -> None:
    assert parse_duration(length(seconds)) == seconds


def test_what_could_not_be_learnt_is_named(oak: Cluster) -> None:
    notes = " ".join(oak.notes)
    assert "JobSubmitPlugins=lua" in notes
    assert "counts threads" in notes
    assert "also have nvme" in notes
    assert not oak.dialect.time_required
    assert "powered down" not in notes
    without = discovered(accounting=False)
    assert {"max_gpus", "max_jobs"} <= set(part(without, "gpu").unknown)
    assert part(without, "gpu").max_gpus is None
    assert part(without, "debug").unknown == ("billing",)
    assert without.account.example == "project"


def test_nodes_that_slurm_does_not_show_leave_no_count() -> None:
    cluster = edited(**{"TotalNodes=3": "TotalNodes=300"})
    assert {kind.count for kind in cluster.nodes} == {None}
    assert any("powered down" in note and " cpu " in note for note in cluster.notes)


def test_a_slurm_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(SchedulerError, match="nothing is known"):
        slurm_cluster(Slurm("nowhere"), user="ada", host="x", today=TODAY)


def test_free_text_does_not_shift_a_row() -> None:
    (first, second, *_) = text_rows((DATA / "slurm" / "nodes.txt").read_text())
    assert second["Gres"] == first["Gres"] == "gpu:a100:4(S:0-1)"
    assert first["OS"] == "Linux 5.14.0 #1 SMP PREEMPT_DYNAMIC Mon"


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), max_size=12)


@given(st.dictionaries(st.from_regex(r"[A-Z][A-Za-z]{0,8}", fullmatch=True), WORDS, min_size=1))
def test_every_row_reads_back(row: dict[str, str]) -> None:
    line = " ".join(f"{key}={value}" for key, value in row.items())
    expected = {key: "" if value == "(null)" else value for key, value in row.items()}
    assert text_rows(line) == [expected]
    assert settings("\n".join(f"{key} = {value}" for key, value in row.items())) == expected


@given(st.text())
def test_any_text_is_rows(text: str) -> None:
    lines = text.splitlines()
    rows = text_rows(text)
    assert len(rows) == sum("=" in line for line in lines)
    assert all(key[0].isupper() and key.isascii() for row in rows for key in row)
    found = settings(text)
    assert set(found) == {line.partition("=")[0].strip() for line in lines if "=" in line}
    table = columns(text, "a,b")
    assert [row["a"] for row in table] == [line.partition("|")[0] for line in lines if line]
    assert all(row.keys() <= {"a", "b"} for row in table)
    cells = [*found.values(), *(value for row in rows for value in row.values())]
    assert "(null)" not in cells


@pytest.mark.parametrize(
    ("name", "part_of", "gib", "may_be_slice"),
    [
        ("a100", "", None, False),
        ("nvidia_a100-sxm4-80gb", "", None, False),
        ("geforce_rtx_2080_ti", "", None, False),
        ("mi250", "", None, False),
        ("gpu", "", None, False),
        ("a100_3g.20gb", "a100", 20, False),
        ("nvidia_a100_1g.5gb", "nvidia_a100", 5, False),
        ("1g.10gb", "gpu", 10, False),
        ("h100_1g", "h100", None, False),
        ("a100_mig_2g", "a100", None, False),
        ("tiny", "", None, True),
    ],
)
def test_names_of_slices(name: str, part_of: str, gib: float | None, *, may_be_slice: bool) -> None:
    gpu = gpu_of(name, 4)
    assert (gpu.part_of, gpu.memory_gib, gpu.may_be_slice) == (part_of, gib, may_be_slice)
