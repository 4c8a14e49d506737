from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stubs.proc_tree import FakeProc, plant
from teho.devices.host.proctree import ProcessTree
from teho.devices.host.source import HostFacts, HostSource, describe_host
from teho.model.device import DeviceSource
from teho.model.metric import METRICS_BY_NAME, metrics_of
from teho.model.missing import Missing, Reason

RATES = {"cpu_busy_percent", "core_busy_percent", "cpu_iowait_percent"}
NOW_AND_THEN = {"job_open_files", "job_runnable_threads"}
OF_OPENMP = {"job_busiest_thread_percent", "job_mean_thread_percent"}
NODE = {metric.name for metric in metrics_of("node")}
MEMINFO = (
    "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n"
    "Buffers:          10 kB\nCached:          250 kB\nHugePages_Total: 0\nShmem: 50 kB\n"
)
CPUINFO = "processor\t: 0\nmodel name\t: A Processor 9000\n\nprocessor\t: 1\nmodel name\t: A\n"
STAT = "cpu  1 1\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\nctxt 5\nprocs_running 2\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {"meminfo": MEMINFO, "cpuinfo": CPUINFO, "stat": STAT, "loadavg": "1.25 1 1 2/99 7\n"}
    return plant(tmp_path, {f"proc/{name}": text for name, text in files.items()})


def test_facts(root: Path):
    expected = HostFacts(cpu_model="A Processor 9000", core_count=2, memory_bytes=1000 * 1024)
    assert describe_host(root) == expected


def test_facts_that_cannot_be_found_out(tmp_path: Path):
    assert describe_host(tmp_path) == HostFacts(cpu_model="", core_count=None, memory_bytes=None)


def test_facts_of_this_machine():
    facts = describe_host()
    assert facts.core_count == os.cpu_count()
    assert facts.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_node_memory_and_load(root: Path):
    readings = HostSource(None, (0, 1), {}, root).read()["node"]
    assert readings["node_memory_used_bytes"] == 600 * 1024
    assert readings["node_cache_bytes"] == 210 * 1024
    assert readings["load_1min"] == 1.25


def test_every_metric_of_the_node_is_there_or_missing(root: Path, tmp_path: Path):
    for where in (root, tmp_path / "nothing"):
        source = HostSource(None, (0, 1), {}, where)
        assert source.read()["node"].keys() | RATES == NODE
        source.close()


def test_an_old_kernel_without_available_memory(root: Path):
    plant(root, {"proc/meminfo": "MemTotal: 1 kB\n"})
    readings = HostSource(None, (0,), {}, root).read()["node"]
    assert readings["node_memory_used_bytes"].reason is Reason.UNSUPPORTED
    assert "MemAvailable" in readings["node_memory_used_bytes"].detail


def test_only_a_file_in_another_form_fails(root: Path):
    plant(root, {"proc/loadavg": "high\n"})
    readings = HostSource(None, (0,), {}, root).read()["node"]
    assert readings["load_1min"].reason is Reason.FAILED
    assert readings["context_switches"] == 5


def test_no_program_is_absent_and_not_zero(root: Path):
    source = HostSource(None, (0,), {}, root)
    assert source.read()["node"]["job_cpu_s"] == Missing(Reason.ABSENT, "no program is recorded")
    assert source.pids == frozenset()


def with_cgroup(root: Path, path: str) -> Path:
    return plant(
        root,
        {
            "proc/self/cgroup": f"0::/{path}\n",
            "proc/self/mountinfo": "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n",
            f"cg/{path}/memory.stat": "anon 7000\nfile 500\nshmem 100\n",
            f"cg/{path}/memory.max": "900000\n",
            f"cg/{path}/memory.events": "oom_kill 2\n",
        },
    )


def source_in_cgroup(root: Path, environment: dict[str, str]) -> HostSource:
    """Return the source of a node with one program, whose cgroup is that of job 77."""
    fake = FakeProc(root / "proc")
    with_cgroup(root, "some/77")
    plant(root, {"proc/meminfo": "MemTotal: 800 kB\n"})
    tree = ProcessTree(proc=str(fake.path))
    tree.add(20, 10)
    return HostSource(tree, (0,), environment, root)


@pytest.mark.parametrize("variable", ["SLURM_JOB_ID", "JOB_ID"])
def test_the_jobs_own_cgroup_has_its_memory(root: Path, variable: str):
    source = source_in_cgroup(root, {variable: "77"})
    readings = source.read()["node"]
    assert readings["job_memory_bytes"] == 7100
    assert readings["oom_kills"] == 2
    assert readings["job_resident_bytes"] > 0
    assert source.cgroup_limit_bytes == 900000


def test_without_a_cgroup_of_its_own_the_processes_are_added_up(root: Path):
    source = source_in_cgroup(root, {})
    readings = source.read()["node"]
    assert readings["job_memory_bytes"] == 10 * os.sysconf("SC_PAGE_SIZE")
    assert readings["job_cache_bytes"].reason is Reason.ABSENT
    assert source.pids == {20}


def test_notes_of_the_network_are_the_sources(root: Path):
    base = "sys/class/infiniband/mlx5_0/ports/1/counters"
    plant(root, {f"{base}/port_rcv_data": "N/A", f"{base}/port_xmit_data": "N/A"})
    assert "mlx5_0" in HostSource(None, (0,), {}, root).notes[0]


def test_on_this_machine_with_a_real_child():
    cores = tuple(sorted(os.sched_getaffinity(0)))
    child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    tree = ProcessTree()
    # This process may have other children, which a supervisor's would count.
    tree.add(child.pid, child.pid)
    source: DeviceSource = HostSource(tree, cores, {})
    try:
        first = source.read(frozenset())["node"]
        assert not RATES & first.keys()
        assert source.pids == {child.pid}
        second = source.read(frozenset())["node"]
    finally:
        child.communicate()
    third = source.read(frozenset())["node"]
    source.close()
    source.close()
    for readings in (first, second, third):
        assert readings.keys() <= NODE
        assert NODE - readings.keys() <= RATES | NOW_AND_THEN | OF_OPENMP
        for name, value in readings.items():
            assert isinstance(value, (int, float, list, Missing)), name
    counters = [name for name in NODE if METRICS_BY_NAME[name].kind == "counter"]
    for name in counters:
        if not isinstance(first[name], Missing):
            assert first[name] <= second[name] <= third[name], name
    assert third["job_processes"] == 0
