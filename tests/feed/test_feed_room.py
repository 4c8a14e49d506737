"""How many cores and how much memory the loaders of `teho.feed` may use in a job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from step_tasks import step_environment
from stubs.proc_tree import plant
from teho.devices.host import cgroup
from teho.feed.room import cores, free_host_bytes

MIB = 1024**2


def of_step(ranks: int, **more: str) -> dict[str, str]:
    """Return the variables of one task of a Slurm step with ranks on one node."""
    step = step_environment(Path("home"), 0, nodes=2, per_node=ranks)
    return {name: value for name, value in step.items() if name.startswith("SLURM_")} | more


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be in no job, and in no container with a quota."""
    for name in list(os.environ):
        if name.startswith(("SLURM_", "OMPI_", "PMI", "LOCAL_", "JOB_ID", "RANK", "WORLD_SIZE")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(cgroup, "cpu_quota", lambda: None)


@pytest.mark.parametrize(
    ("environment", "affinity", "quota", "expected"),
    [
        ({}, 16, None, 16),
        ({}, 64, None, 32),  # the most
        ({}, 16, 2.5, 3),
        ({"LOCAL_WORLD_SIZE": "4"}, 16, None, 4),
        ({"LOCAL_WORLD_SIZE": "4"}, 2, None, 1),
        ({"LOCAL_WORLD_SIZE": "0"}, 2, None, 2),
        ({"LOCAL_WORLD_SIZE": "many"}, 2, None, 2),
        # One task of Slurm, with fewer CPUs than the node: bound to them or not.
        (of_step(1, SLURM_CPUS_ON_NODE="6"), 6, None, 6),
        (of_step(1, SLURM_CPUS_ON_NODE="6"), 64, None, 6),
        # Four tasks: `srun` binds each to its cores, or lets all run on all cores.
        (of_step(4, SLURM_CPUS_ON_NODE="16", SLURM_CPUS_PER_TASK="4"), 4, None, 4),
        (of_step(4, SLURM_CPUS_ON_NODE="16", SLURM_CPUS_PER_TASK="4"), 64, None, 4),
        # torchrun or `teho launch` in the tasks.
        (of_step(1, SLURM_CPUS_ON_NODE="16", LOCAL_WORLD_SIZE="4"), 16, None, 4),
        (of_step(4, SLURM_CPUS_ON_NODE="16", LOCAL_WORLD_SIZE="4"), 4, None, 4),
        # The script of a job is not a task, whatever the tasks of its steps will be.
        ({"SLURM_JOB_ID": "7", "SLURM_CPUS_ON_NODE": "16", "SLURM_TASKS_PER_NODE": "4"}, 16, None,
         16),
        # Contradicting variables.
        (of_step(4, SLURM_CPUS_ON_NODE="16", SLURM_STEP_TASKS_PER_NODE="4"), 16, None, 16),
        ({"OMPI_COMM_WORLD_RANK": "9", "OMPI_COMM_WORLD_SIZE": "12",
          "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, 12, None, 4),
        # One rank on each node, whose launcher does not report how many are here.
        ({"RANK": "1", "WORLD_SIZE": "8"}, 16, None, 16),
    ],
)  # fmt: skip
def test_cores_are_the_share_of_a_rank(
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    affinity: int,
    quota: float | None,
    expected: int,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(affinity)))
    monkeypatch.setattr(cgroup, "cpu_quota", lambda: quota)
    assert cores() == expected


def test_cores_of_this_machine() -> None:
    assert cores() == min(32, len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("limit", "expected_mib"),
    [("max", 900), (str(700 * MIB), 700 - 200), (str(100 * MIB), 0), (str(8192 * MIB), 900)],
)
def test_free_memory_is_within_the_limit_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, expected_mib: int
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    stat = f"anon {150 * MIB}\nfile {500 * MIB}\nshmem {50 * MIB}\n"
    plant(
        tmp_path,
        {
            "proc/meminfo": f"MemTotal: {2000 * 1024} kB\nMemAvailable: {900 * 1024} kB\n",
            "proc/self/cgroup": "0::/job_5\n",
            "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/memory.stat": stat,
            "sys/fs/cgroup/job_5/memory.stat": stat,
            "sys/fs/cgroup/job_5/memory.events": "oom_kill 0\n",
            "sys/fs/cgroup/job_5/memory.max": f"{limit}\n",
        },
    )
    assert free_host_bytes(tmp_path) == expected_mib * MIB


def test_free_memory_of_this_machine() -> None:
    assert 0 < free_host_bytes() < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
