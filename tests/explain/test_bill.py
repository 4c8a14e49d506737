"""The bill of a recorded job: the same as the planner's, or a sentence about what is missing."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from scenario_parts import NodePart, gpu, scenario

from teho.clusters.catalogue import load_catalogue
from teho.clusters.gpu_model import is_same_model
from teho.explain import bill as bills
from teho.explain.analysis import Analysis
from teho.explain.bill import RunBill, bill_of
from teho.model.allocation import Allocation
from teho.model.cluster import Gpu
from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.plan import Cost, Option
from teho.model.request import Request
from teho.model.run import Node, Run, RunState
from teho.model.summary import Summary
from teho.planner.answer import answer
from teho.planner.cost import cost_of_use
from teho.show.build.report.document import build_report
from teho.units import GIB, MIB

CLUSTERS = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})
BILLED = sorted(name for name, one in CLUSTERS.items() if one.billing)
NAMES = {
    "A100": "NVIDIA A100-SXM4-40GB",
    "V100": "Tesla V100-SXM2-32GB",
    "H100": "NVIDIA H100 80GB HBM3",
    "GH200": "NVIDIA GH200 120GB",
    "L40": "NVIDIA L40",
    "MI250X": "AMD Instinct MI250X",
    "P100": "Tesla P100-PCIE-12GB",
    "T4": "Tesla T4",
    "A5000": "NVIDIA RTX A5000",
    "MI300A": "AMD Instinct MI300A",
}
"""What drivers report, by the word of the catalogue's product name."""


@pytest.fixture(autouse=True)
def _shipped_catalogue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TEHO_CLUSTERS", raising=False)


def job(cluster: str, partition: str, gpus: int = 1, **of: Any) -> tuple[Run, Summary]:
    """Return an hour of a job on one node."""
    part = {key: of.pop(key) for key in ("model", "cores_used", "gpu_memory_bytes") if key in of}
    busy = of.pop("busy", 80.0)
    asked = {"cores_asked": 10, "memory_limit_bytes": 80 * GIB, "memory_limit_source": "cgroup"}
    allocation = Allocation(
        **{
            "scheduler": "slurm",
            "job_id": "4711",
            "cluster": cluster,
            "partition": partition,
            "gpus_held": gpus,
            **asked,
            **of,
        }
    )
    return scenario(
        NodePart(cores=10, gpus=[gpu(busy)] * gpus, allocation=allocation, **part),
    )


def billed(given: tuple[Run, Summary]) -> RunBill:
    found = bill_of(*given)
    assert found is not None
    return found


def cost(given: tuple[Run, Summary]) -> Cost:
    found = billed(given).cost
    assert isinstance(found, Cost), found
    return found


def lack(given: tuple[Run, Summary]) -> str:
    found = billed(given)
    assert isinstance(found.cost, Missing)
    assert isinstance(found.unused, Missing)
    assert found.cost.detail in found.notes[0]
    return found.cost.detail


def recorded(option: Option) -> tuple[Run, Summary]:
    """Return the recording of a planned job that ran for an hour."""
    cluster = CLUSTERS[option.cluster]
    (kind,) = (one for one in cluster.nodes if one.name == option.node_kind)
    given = option.given
    assert given is not None
    assert given.cores is not None
    gpus = sum(count for _, count in given.gpus or ())
    requested = option.memory_mib
    if requested is None and given.memory_mib and "memory" not in option.automatic:
        requested = given.memory_mib  # the site's default, which Slurm puts into its variables
    allocation = Allocation(
        scheduler=cluster.scheduler,
        job_id="4711",
        cluster=cluster.name,
        partition=option.partition or "gpubase_bygpu_b1",
        node_count=option.nodes,
        cores_asked=given.cores * kind.threads_per_core,
        gpus_held=gpus or None,
        memory_limit_bytes=requested * MIB if requested else 500 * GIB,
        memory_limit_source="scheduler" if requested else "node",
    )
    parts = [
        NodePart(
            f"n{number}",
            cores=given.cores * kind.threads_per_core,
            gpus=[gpu()] * gpus,
            allocation=allocation,
            vendor=kind.gpu.vendor if kind.gpu else "nvidia",
            model=_name_of(kind.gpu) if kind.gpu else "",
            gpu_memory_bytes=_memory_of(kind.gpu) if kind.gpu else None,
        )
        for number in range(option.nodes)
    ]
    run, summary = scenario(*parts)
    if kind.gpu and kind.gpu.part_of:
        run = replace(run, nodes=tuple(map(_sliced, run.nodes)))
    return run, summary


def _sliced(node: Node) -> Node:
    return replace(node, devices=tuple(replace(one, parent_id="GPU-0") for one in node.devices))


def _name_of(gpu: Gpu) -> str:
    words = gpu.model.replace(",", "").replace("-", " ").split()
    name = NAMES[next(word for word in words if word in NAMES)]
    profile = gpu.type.rpartition("_")[2] if gpu.part_of else ""
    return f"{name} MIG {profile}" if profile else name


def _memory_of(gpu: Gpu) -> int | None:
    return round(gpu.memory_gib * 0.96 * GIB) if gpu.memory_gib else None


def _options() -> list[Option]:
    requests = [
        Request(gpus=1, time_s=900.0),
        Request(gpus=1, cpus_per_gpu=4, memory_mib=40 * 1024, time_s=900.0),
        Request(gpus=4, time_s=900.0),
        Request(gpus=8, time_s=900.0),
        Request(gpus=0, cpus=4, memory_mib=30 * 1024, time_s=900.0),
        Request(gpus=0, cpus=4, time_s=900.0),
    ]
    return [
        option
        for name in BILLED
        for request in requests
        for option in answer(request, [CLUSTERS[name]], even_if_retired=True).options
    ]


OPTIONS = _options()


@pytest.mark.parametrize("name", BILLED)
def test_it_agrees_with_the_planner(name: str) -> None:
    options = [option for option in OPTIONS if option.cluster == name]
    agreed = unknown_memory = 0
    for option in options:
        run, summary = recorded(option)
        found = billed((run, summary))
        expected = cost_of_use(option, CLUSTERS[name], 3600.0)
        if isinstance(found.cost, Missing):
            detail = found.cost.detail
            comes_with_cores = "memory" in option.automatic and "memory" in detail
            assert comes_with_cores or expected is None, (option, found)
            unknown_memory += 1
            continue
        assert expected is not None, option
        assert found.cost.amount == pytest.approx(expected.amount), option
        assert (found.cost.unit, found.cost.sum) == (expected.unit, expected.sum)
        agreed += 1
    assert agreed > 2 * unknown_memory


def test_units_for_what_the_gpus_did_not_do() -> None:
    given = job("puhti", "gpu", gpus=2, busy=25.0)
    # 2 GPUs × 60 + 10 cores + 80 GiB × 0.1, for an hour
    assert cost(given).amount == pytest.approx(138)
    found = billed(given)
    assert found.unused == pytest.approx(138 * 0.75)
    assert found.unused_is_of == "GPUs"
    assert found.notes == (
        (
            "The cost does not include local disk: a recording does not say how much local disk "
            "the job requested."
        ),
    )


def test_units_for_cores_that_a_job_without_gpus_did_not_use() -> None:
    given = job("puhti", "small", gpus=0, cores_used=4.0)
    assert cost(given).amount == pytest.approx(10 + 8)
    assert billed(given).unused == pytest.approx(18 * 0.6)
    assert billed(given).unused_is_of == "cores"


def test_without_utilisation_of_each_gpu_nothing_is_judged() -> None:
    run, summary = job("puhti", "gpu", gpus=2)
    held = replace(run.nodes[0].allocation, gpus_held=3)
    seen = billed((replace(run, nodes=(replace(run.nodes[0], allocation=held),)), summary))
    assert isinstance(seen.cost, Cost)
    assert isinstance(seen.unused, Missing)
    assert "2 of 3 GPUs" in seen.unused.detail
    late = billed(job("puhti", "gpu", busy=[None] * 20 + [90.0] * 40))
    assert isinstance(late.unused, Missing)
    idle = Missing(Reason.FORBIDDEN, "no permission")
    assert isinstance(billed(job("puhti", "small", gpus=0, cores_used=idle)).unused, Missing)


def test_a_whole_node_is_billed_if_jobs_get_whole_nodes() -> None:
    given = job(
        "lumi", "standard-g", gpus=2, model="AMD Instinct MI250X", gpu_memory_bytes=64 * GIB
    )
    (node,) = given[0].nodes
    amd = tuple(replace(device, vendor="amd") for device in node.devices)
    given = (replace(given[0], nodes=(replace(node, devices=amd),)), given[1])
    assert cost(given).amount == pytest.approx(4)
    unused = billed(given).unused
    assert isinstance(unused, Missing)
    assert "2 of 8 GPUs" in unused.detail


def test_missing_is_never_zero() -> None:
    assert "memory the job requested" in lack(job("puhti", "gpu", memory_limit_source="node"))
    assert "memory the job requested" in lack(job("puhti", "gpu", memory_limit_bytes=None))
    assert "how many GPUs" in lack(job("puhti", "gpu", gpus=1, gpus_held=None))
    assert "cores the job had on r01g01" in lack(job("puhti", "gpu", cores_asked=None))
    assert "1 node of the job left no recording" in lack(job("puhti", "gpu", node_count=2))
    assert "does not have partition hugegpu" in lack(job("puhti", "hugegpu"))
    assert "nodes of this run" in lack(job("puhti", "gpu", model="NVIDIA H100 80GB HBM3"))


def test_the_requested_memory_is_billed_and_not_the_smallest_limit() -> None:
    run, summary = job("puhti", "gpu", memory_limit_source="node", memory_limit_bytes=16 * GIB)
    for name, mib in (("NODE", 81920), ("CPU", 8192), ("GPU", 81920)):
        kept = {"SLURM_JOB_ID": "4711", f"SLURM_MEM_PER_{name}": str(mib), "SLURM_JOB_GPUS": "3"}
        assert cost((replace(run, environment=kept), summary)).amount == pytest.approx(78)


def test_a_gpu_that_is_not_visible_may_be_of_several_kinds() -> None:
    run, summary = job("mahti", "gpusmall")
    nodes = tuple(replace(node, devices=()) for node in run.nodes)
    assert "several bills" in lack((replace(run, nodes=nodes), replace(summary, nodes=())))


def test_cores_of_the_job_and_not_of_its_step() -> None:
    run, summary = job("puhti", "gpu", cores_asked=4, step_id="0")
    assert "cores" in lack((run, summary))
    known = replace(run, environment={"SLURM_JOB_CPUS_PER_NODE": "10"})
    assert cost((known, summary)).amount == pytest.approx(78)
    uneven = replace(run.nodes[0].allocation, node_list="r01g[00-01]")
    listed = replace(
        run,
        environment={"SLURM_JOB_CPUS_PER_NODE": "4,20"},
        nodes=(replace(run.nodes[0], allocation=uneven),),
    )
    assert cost((listed, summary)).amount == pytest.approx(88)


def test_whether_a_cpu_is_a_core_only_matters_if_the_bill_depends_on_it() -> None:
    many = job("puhti", "small", gpus=0)
    (node,) = many[0].nodes
    threads = replace(node, core_count_node=80)
    assert "how its cores are counted" in lack((replace(many[0], nodes=(threads,)), many[1]))
    only_gpus = job("roihu", "gputest", model="NVIDIA GH200 120GB", gpu_memory_bytes=95 * GIB)
    (node,) = only_gpus[0].nodes
    threads = replace(node, core_count_node=2 * 288)
    assert cost((replace(only_gpus[0], nodes=(threads,)), only_gpus[1])).amount > 0


def test_only_jobs_on_known_clusters_have_a_bill() -> None:
    assert bill_of(*scenario(NodePart(scheduler=None))) is None
    assert bill_of(*job("nowhere", "gpu")) is None
    assert bill_of(*job("arc4", "gpu")) is None, "the scheduler is another one"


def test_the_cluster_is_recognised_by_a_variable_or_a_host() -> None:
    run, summary = job("", "gpubase_bygpu_b1", model="NVIDIA A100-SXM4-40GB")
    run = replace(run, environment={"CC_CLUSTER": "narval"})
    given = (replace(run, nodes=tuple(map(_of_40_gib, run.nodes))), summary)
    assert cost(given).unit == "RGU-hour"
    run, summary = job("", "gpu")
    assert cost((replace(run, host="r01g01.bullx"), summary)).unit == "GPU BU"


def _of_40_gib(node: Node) -> Node:
    return replace(node, devices=tuple(replace(one, memory_bytes=40 * GIB) for one in node.devices))


def test_a_discovered_cluster_is_recognised_by_the_name_of_its_scheduler(tmp_path: Path) -> None:
    shipped = Path(bills.__file__).parents[1] / "clusters" / "files" / "puhti.toml"
    own = shipped.read_text().replace('name = "puhti"', 'name = "mine"', 1)
    own = own.replace("hosts =", 'recognised_by = { SLURM_CLUSTER_NAME = "linux" }\nhosts =', 1)
    (tmp_path / "teho" / "clusters").mkdir(parents=True)
    (tmp_path / "teho" / "clusters" / "mine.toml").write_text(own)
    (tmp_path / "teho" / "clusters" / "damaged.toml").write_text("name = 7")
    assert cost(job("linux", "gpu")).amount == pytest.approx(78)


def test_a_damaged_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "teho" / "clusters").mkdir(parents=True)
    (tmp_path / "teho" / "clusters" / "own.toml").write_text("name = 7")
    assert "own.toml" in lack(job("own", "gpu"))


def test_a_site_that_charges_nothing() -> None:
    run, summary = job("arc4", "", gpus=0, scheduler="grid_engine")
    assert cost((run, summary)).amount == 0
    facts = {
        fact.key: fact for fact in build_report(Analysis(run, RunState.FINISHED, summary)).facts
    }
    assert facts["cost"].value == "free of charge"
    assert "cost_unused" not in facts


def test_the_report_has_the_bill() -> None:
    run, summary = job("puhti", "gpu", busy=25.0)
    report = build_report(Analysis(run, RunState.FINISHED, summary))
    facts = {fact.key: fact for fact in report.facts}
    assert (facts["cost"].value, facts["cost"].unit) == (pytest.approx(78), "GPU BU")
    assert facts["cost"].note.startswith("(1 GPU × 60 + ")
    assert facts["cost_unused"].value == pytest.approx(78 * 0.75)
    assert facts["cost_unused"].note == "the cost of the time in which the GPUs had no work"
    run, summary = job("puhti", "gpu", memory_limit_bytes=None)
    report = build_report(Analysis(run, RunState.FINISHED, summary))
    assert any(note.startswith("The cost of this run on Puhti") for note in report.notes)


def test_a_run_outside_of_a_job_loads_no_catalogue() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests/explain')\n"
        "from scenario_parts import NodePart, scenario\n"
        "from teho.explain.analysis import Analysis\n"
        "from teho.model.run import RunState\n"
        "from teho.show.build.report.document import build_report\n"
        "build_report(Analysis(scenario(NodePart(scheduler=None))[0], RunState.FINISHED, "
        "scenario(NodePart(scheduler=None))[1]))\n"
        "print([n for n in sys.modules if n.startswith(('teho.clusters', 'teho.planner'))])\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("model", "gib", "name", "seen_gib", "is_slice", "same"),
    [
        ("L40", 48, "NVIDIA L40S", 45.0, False, False),
        ("L40S", 48, "NVIDIA L40S", 45.0, False, True),
        ("V100 16 GB", 16, "Tesla V100-SXM2-32GB", 32.0, False, False),
        ("A100 SXM4 40 GB", 40, "NVIDIA A100-SXM4-80GB", 80.0, False, False),
        ("A100 SXM4 40 GB", 40, "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4.75, True, False),
        ("A100 SXM4 40 GB", None, "NVIDIA A100-SXM4-40GB", 40.0, False, True),
        ("rtx_3090", None, "NVIDIA GeForce RTX 3090", 24.0, False, True),
        ("rtx_3090", None, "NVIDIA GeForce RTX 4090", 24.0, False, False),
        ("nvidia_h100_80gb_hbm3_1g.10gb", 10, "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9.5, True, True),
        ("nvidia_h100_80gb_hbm3_1g.10gb", 10, "NVIDIA H100 80GB HBM3 MIG 1g.20gb", 9.5, True,
         False),
        ("nvidia_h100_80gb_hbm3_1g.10gb", 10, "NVIDIA H100 80GB HBM3", 80.0, False, False),
    ],
)  # fmt: skip
def test_a_device_is_compared_with_the_catalogue(
    model: str, gib: float | None, name: str, seen_gib: float, is_slice: bool, same: bool
) -> None:
    known = Gpu(type=model, vendor="nvidia", model=model, memory_gib=gib)
    device = Device(
        id="GPU-1",
        index=0,
        name=name,
        vendor="nvidia",
        memory_bytes=round(seen_gib * GIB),
        parent_id="GPU-0" if is_slice else None,
    )
    assert is_same_model(known, device) is same
    assert not is_same_model(known, replace(device, vendor="amd"))


def test_the_cost_at_the_time_limit_while_the_run_continues() -> None:
    run, summary = job("puhti", "gpu", time_limit_s=7200.0)
    found = bill_of(run, summary)
    assert found is not None
    assert isinstance(found.cost, Cost)
    assert found.at_limit == pytest.approx(found.cost.amount * 7200 / summary.elapsed_s)
    known = {
        fact.key: fact.value
        for fact in build_report(Analysis(run, RunState.RUNNING, summary)).facts
    }
    assert "cost_at_limit" in known
    assert known["cost_left"] == pytest.approx(found.at_limit - found.cost.amount)
    facts = {fact.key for fact in build_report(Analysis(run, RunState.FINISHED, summary)).facts}
    assert not facts & {"cost_at_limit", "cost_left"}
    assert billed(job("puhti", "gpu")).at_limit is None


@pytest.mark.parametrize(
    ("ends_after_s", "time_limit_s", "expected"),
    [
        (1800.0, 7200.0, 1800.0),  # the program began 90 min after its job
        (-60.0, 7200.0, None),  # the limit was extended, and the variables have the old end
        (None, 7200.0, 7200.0),
        (None, None, None),
    ],
)
def test_the_end_of_the_job_counts_from_the_start_of_the_program(
    ends_after_s: float | None, time_limit_s: float | None, expected: float | None
) -> None:
    run, _ = job("puhti", "gpu", time_limit_s=time_limit_s)
    ends_at = None if ends_after_s is None else run.started_at + timedelta(seconds=ends_after_s)
    node = run.nodes[0]
    allocation = replace(node.allocation, ends_at=ends_at)
    assert replace(run, nodes=(replace(node, allocation=allocation),)).limit_s == expected
