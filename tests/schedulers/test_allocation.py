from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.model.allocation import Allocation
from teho.schedulers.allocation import read_allocation

MIB = 1024**2
NODE = 256 * 1024 * MIB
CORES = frozenset({4, 5, 2, 3})

SLURM = {
    "SLURM_JOB_ID": "123",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_NAME": "train",
    "SLURM_CLUSTER_NAME": "puhti",
    "SLURM_JOB_PARTITION": "gpu",
    "SLURM_JOB_ACCOUNT": "project_1",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_JOB_NODELIST": "r01g[01-02]",
    "SLURM_CPUS_ON_NODE": "4",
    "SLURM_MEM_PER_NODE": "65536",
    "SLURM_JOB_GPUS": "0,2",
    "SLURM_GPUS_ON_NODE": "2",
    "SLURM_JOB_START_TIME": "1700000000",
    "SLURM_JOB_END_TIME": "1700003600",
}
GRID_ENGINE = {
    "JOB_ID": "77",
    "SGE_TASK_ID": "3",
    "JOB_NAME": "train",
    "NSLOTS": "4",
    "QUEUE": "gpu.q",
    "SGE_ACCOUNT": "sge",
    "SGE_CLUSTER_NAME": "p6444",
    "NHOSTS": "1",
}


def read(environment: dict[str, str], cores=CORES, cgroup=None, node=NODE) -> Allocation:
    return read_allocation(environment, cores, cgroup, node)


def slurm(**changes: str | None) -> Allocation:
    changed = {**SLURM, **changes}
    return read({name: value for name, value in changed.items() if value is not None})


def test_outside_of_a_job():
    assert read({"HOME": "/root"}) == Allocation(
        cores=(2, 3, 4, 5), memory_limit_bytes=NODE, memory_limit_source="node"
    )


def test_nothing_known():
    assert read_allocation({}, frozenset(), None, None) == Allocation()


def test_a_slurm_job():
    assert slurm() == Allocation(
        scheduler="slurm",
        job_id="123",
        step_id="0",
        job_name="train",
        cluster="puhti",
        partition="gpu",
        account="project_1",
        node_count=2,
        node_list="r01g[01-02]",
        cores=(2, 3, 4, 5),
        cores_asked=4,
        memory_limit_bytes=65536 * MIB,
        memory_limit_source="scheduler",
        gpus_held=2,
        time_limit_s=3600.0,
        ends_at=datetime.fromtimestamp(1700003600, timezone.utc),
    )


@pytest.mark.parametrize(
    ("cgroup", "node", "limit", "source"),
    [
        (10 * MIB, NODE, 10 * MIB, "cgroup"),
        (65536 * MIB, NODE, 65536 * MIB, "cgroup"),
        (None, 5 * MIB, 5 * MIB, "node"),
        (NODE * 2, NODE, 65536 * MIB, "scheduler"),
    ],
)
def test_the_smallest_memory_limit_counts(cgroup, node, limit, source):
    allocation = read(SLURM, cgroup=cgroup, node=node)
    assert (allocation.memory_limit_bytes, allocation.memory_limit_source) == (limit, source)


@pytest.mark.parametrize(
    ("variables", "limit_mib"),
    [
        ({"SLURM_MEM_PER_CPU": "2000"}, 8000),
        ({"SLURM_MEM_PER_GPU": "3000"}, 6000),
        ({"SLURM_MEM_PER_NODE": "4G"}, 4096),
        ({"SLURM_MEM_PER_NODE": "0"}, NODE // MIB),
        ({"SLURM_MEM_PER_CPU": "2000", "SLURM_CPUS_ON_NODE": None}, NODE // MIB),
        ({"SLURM_MEM_PER_NODE": "999999999999999"}, NODE // MIB),
        ({}, NODE // MIB),
    ],
)
def test_ways_to_ask_slurm_for_memory(variables, limit_mib):
    allocation = slurm(**{"SLURM_MEM_PER_NODE": None, **variables})
    assert allocation.memory_limit_bytes == limit_mib * MIB


@pytest.mark.parametrize(
    ("variables", "gpus"),
    [
        ({"SLURM_JOB_GPUS": "0-3,7"}, 5),
        ({"SLURM_JOB_GPUS": None, "SLURM_GPUS_ON_NODE": "3"}, 3),
        ({"SLURM_JOB_GPUS": None, "SLURM_GPUS_ON_NODE": None, "SLURM_STEP_GPUS": "1"}, 1),
        ({"SLURM_JOB_GPUS": None, "SLURM_GPUS_ON_NODE": None}, None),
        ({"SLURM_JOB_GPUS": None, "SLURM_GPUS_ON_NODE": "0"}, 0),
    ],
)
def test_allocated_gpus_of_a_slurm_job(variables, gpus):
    assert slurm(**variables).gpus_held == gpus


@pytest.mark.parametrize(("number", "step"), [("4294967291", "batch"), ("12", "12"), (None, None)])
def test_slurm_steps(number, step):
    assert slurm(SLURM_STEP_ID=number).step_id == step


@pytest.mark.parametrize("end", ["1699999999", "1700000000"])
def test_an_end_before_the_start_is_a_note(end):
    allocation = slurm(SLURM_JOB_END_TIME=end)
    assert allocation.time_limit_s is None
    assert "SLURM_JOB_END_TIME" in allocation.notes[0]


def test_a_year_is_no_time_limit():
    assert slurm(SLURM_JOB_END_TIME=str(1700000000 + 365 * 86400)).time_limit_s is None
    assert slurm(SLURM_JOB_END_TIME=None).time_limit_s is None


@pytest.mark.parametrize(("quota", "asked"), [(None, 4), (8.0, 4), (1.5, 2)])
def test_a_quota_below_what_was_asked_for_counts(quota: float | None, asked: int):
    allocation = read_allocation(SLURM, CORES, None, NODE, quota)
    assert allocation.cores_asked == asked
    assert any("of 1.5 CPUs" in note for note in allocation.notes) == (asked == 2)


def test_more_cores_than_requested_are_reported():
    allocation = slurm(SLURM_CPUS_ON_NODE="2")
    assert (len(allocation.cores), allocation.cores_asked) == (4, 2)
    assert "requested 2 CPUs on this node but may run on 4" in allocation.notes[0]
    assert slurm(SLURM_CPUS_ON_NODE="8").notes == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLURM_CPUS_ON_NODE", "four"),
        ("SLURM_CPUS_ON_NODE", "-4"),
        ("SLURM_CPUS_ON_NODE", "9" * 50),
        ("SLURM_MEM_PER_NODE", "lots"),
        ("SLURM_JOB_GPUS", "3-1"),
        ("SLURM_JOB_GPUS", "a b"),
        ("SLURM_JOB_NUM_NODES", "٢"),
    ],
)
def test_what_is_not_as_documented_is_a_note(name, value):
    allocation = slurm(**{name: value})
    assert name in allocation.notes[0]
    assert value[:60] in allocation.notes[0]
    assert allocation.job_id == "123"


def test_a_grid_engine_job():
    allocation = read(GRID_ENGINE)
    assert allocation == Allocation(
        scheduler="grid_engine",
        job_id="77.3",
        job_name="train",
        cluster="p6444",
        partition="gpu.q",
        account="sge",
        node_count=1,
        cores=(2, 3, 4, 5),
        cores_asked=4,
        memory_limit_bytes=NODE,
        memory_limit_source="node",
    )
    assert read({**GRID_ENGINE, "SGE_TASK_ID": "undefined"}).job_id == "77"


ARC4 = {**GRID_ENGINE, "NSLOTS": "1", "TEHO_CLUSTER": "arc4", "CUDA_VISIBLE_DEVICES": "1,3"}


def test_cores_and_memory_come_with_the_gpus_of_arc4():
    found = read(ARC4)
    assert (found.cores_asked, found.gpus_held) == (20, 2)
    assert found.with_gpus == ("cores", "memory")
    assert found.memory_limit_bytes == 2 * 48 * 1024 * MIB
    assert (found.memory_limit_source, found.notes) == ("gpus", ())
    smaller = read(ARC4, cgroup=1024 * MIB)
    assert (smaller.memory_limit_bytes, smaller.memory_limit_source) == (1024 * MIB, "cgroup")
    unbound = read(ARC4, cores=frozenset(range(40)))
    assert "The job has 20 CPUs on this node but may run on 40" in unbound.notes[0]


@pytest.mark.parametrize(
    ("changes", "cores", "with_gpus"),
    [
        ({"TEHO_CLUSTER": "oak"}, 1, ()),
        ({"CUDA_VISIBLE_DEVICES": ""}, 1, ()),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles", "NSLOTS": "6"}, 6, ()),
        # Slots that were requested beside the GPUs count if they are more.
        ({"NSLOTS": "24"}, 24, ("memory",)),
        ({"NSLOTS": "many"}, 20, ("cores", "memory")),
    ],
)
def test_slots_are_the_cores_of_other_jobs(changes, cores, with_gpus):
    found = read({**ARC4, **changes})
    assert (found.cores_asked, found.with_gpus) == (cores, with_gpus)


def test_a_site_that_does_not_read_is_a_note():
    found = read({**ARC4, "TEHO_SITE": "{"})
    assert found.cores_asked == 1
    assert "TEHO_SITE cannot be read" in found.notes[0]


def test_only_a_job_id_is_no_grid_engine():
    assert read({"JOB_ID": "77"}).scheduler is None


def test_slots_on_this_host(tmp_path: Path):
    hosts = tmp_path / "host file"
    here = os.uname().nodename.split(".")[0]
    full = f"{here}.site.example"
    hosts.write_text(f"{full} 2 gpu.q@x UNDEFINED\nother 8 gpu.q@o 0,1\n{full} 1 b.q@x\n")
    environment = {**GRID_ENGINE, "PE_HOSTFILE": str(hosts), "NSLOTS": "11"}
    environment.pop("HOSTNAME", None)
    allocation = read(environment)
    assert (allocation.cores_asked, allocation.node_count) == (3, 2)
    assert allocation.node_list == f"{full},other"
    allocation = read({**environment, "HOSTNAME": "other"})
    assert allocation.cores_asked == 8
    allocation = read({**environment, "HOSTNAME": "third"})
    assert allocation.cores_asked is None
    assert "'third'" in allocation.notes[0]
    hosts.write_text("elsewhere 6 q\n\nbad line\n")
    allocation = read({**environment, "HOSTNAME": "third"})
    assert allocation.cores_asked == 6
    assert "bad line" in allocation.notes[0]


@pytest.mark.parametrize("name", ["", "missing"])
def test_a_host_file_that_does_not_read_is_a_note(tmp_path: Path, name: str):
    allocation = read({**GRID_ENGINE, "PE_HOSTFILE": str(tmp_path / name)})
    assert allocation.cores_asked == 4
    assert "PE_HOSTFILE" in allocation.notes[0]


def test_on_another_node_than_the_jobs_first(tmp_path: Path):
    inherited = {
        **GRID_ENGINE, "JOB_NAME": "petask", "PE_HOSTFILE": str(tmp_path / "elsewhere"),
        "QRSH_PORT": "node01.oak.example:45963",
    }  # fmt: skip
    allocation = read(inherited)
    assert (allocation.cores_asked, allocation.notes) == (4, ())
    assert (allocation.job_id, allocation.job_name) == ("77.3", None)
    assert (allocation.node_count, allocation.node_list) == (None, None)


def test_a_forbidden_host_file_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    hosts = tmp_path / "hosts"
    hosts.write_text("a 1 q\n")
    monkeypatch.setattr(Path, "open", refuse)
    allocation = read({**GRID_ENGINE, "PE_HOSTFILE": str(hosts)})
    assert "Permission denied" in allocation.notes[0]


@pytest.mark.parametrize(
    ("variables", "gpus"),
    [
        ({"SGE_HGR_gpu": "0 1 3"}, 3),
        ({"SGE_HGR_m_mem_free": "4G", "CUDA_VISIBLE_DEVICES": "1,2"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8a,MIG-1b"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, 0),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, 0),
        ({"SGE_HGR_gpu": " "}, None),
        ({}, None),
    ],
)
def test_allocated_gpus_of_a_grid_engine_job(variables, gpus):
    assert read({**GRID_ENGINE, **variables}).gpus_held == gpus


NAMES = [*SLURM, *GRID_ENGINE, "SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU", "PE_HOSTFILE"]
NAMES += ["SGE_HGR_gpu", "CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "HOSTNAME"]
VALUES = st.one_of(
    st.text(max_size=30),
    st.from_regex(r"\A[0-9]{1,30}[kKmMgGtTpP]?\Z"),
    st.from_regex(r"\A[0-9]{1,8}-[0-9]{1,8}(,[a-z0-9:-]{0,9})*\Z"),
)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES), st.sampled_from([{}, SLURM, GRID_ENGINE]))
def test_any_text_in_any_variable_is_survived(changes, base):
    allocation = read({**base, **changes})
    if not any(0xD800 <= ord(char) < 0xE000 for value in changes.values() for char in value):
        assert msgspec.json.decode(msgspec.json.encode(allocation), type=Allocation) == allocation
    assert allocation.memory_limit_bytes is None or allocation.memory_limit_bytes <= NODE


def test_a_task_of_an_array_has_the_id_that_squeue_shows() -> None:
    array = SLURM | {"SLURM_ARRAY_JOB_ID": "120", "SLURM_ARRAY_TASK_ID": "4"}
    assert read_allocation(array, CORES, None, NODE).job_id == "120_4"


def test_a_job_on_this_machine_is_one() -> None:
    found = read_allocation({"TEHO_LOCAL_JOB": "2_1"}, CORES, None, NODE)
    assert (found.scheduler, found.job_id) == ("local", "2_1")
    assert found.memory_limit_bytes == NODE
