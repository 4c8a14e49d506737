"""Nodes as `teho launch` reads them: cores, hyper-threads, and GPUs with what lies near."""

from __future__ import annotations

from pathlib import Path

from amd_tree import build_mi250x
from proc_tree import plant

from teho.schedulers.sites import SITES
from teho.schedulers.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teho.schedulers.site_types import Site

LUMI_NUMA = (3, 3, 1, 1, 0, 0, 2, 2)
"""NUMA node of each GCD (clusters.md, section 7)."""
LUMI_CORES = frozenset(range(64)) - {*range(0, 64, 8)}
"""What a job on a whole node of LUMI-G has."""
_V100S = ("0000:15:00.0", "0000:3a:00.0", "0000:89:00.0", "0000:b2:00.0")


def lumi() -> Site:
    return next(site for site in SITES if site["name"] == "lumi")


def task(local_rank: int = 0, local_size: int = 8, started_by: str = "Slurm") -> Task:
    return Task(
        started_by=started_by,
        rank=local_rank,
        size=local_size,
        local_rank=local_rank,
        local_size=local_size,
        hosts=("n1",),
        tasks_per_node=(local_size,),
        distribution="block",
    )


def with_threads(root: Path, cores: int) -> Path:
    """Give a node hyper-threads: core i has the threads i and i + cores."""
    folder = "sys/devices/system/cpu"
    files = {f"{folder}/smt/active": "1\n"}
    for number in range(2 * cores):
        siblings = f"{number % cores},{number % cores + cores}\n"
        files[f"{folder}/cpu{number}/topology/thread_siblings_list"] = siblings
    return plant(root, files)


def puhti(root: Path, models: tuple[str, ...] = ("Tesla V100-SXM2-32GB",)) -> Path:
    """A node of four V100s, two on each of two processors of 20 cores."""
    for place, address in enumerate(_V100S):
        information = (
            f"Model: \t\t {models[place % len(models)]}\nIRQ:   \t\t 2{place}\n"
            f"GPU UUID: \t GPU-{place}{'0' * 7}-aaaa-bbbb-cccc-{'d' * 12}\n"
            f"Bus Location: \t {address}\nDevice Minor: \t {place}\n"
        )
        device = f"sys/bus/pci/devices/{address}"
        plant(
            root,
            {
                f"proc/driver/nvidia/gpus/{address}/information": information,
                f"{device}/numa_node": f"{place // 2}\n",
                f"{device}/local_cpulist": "0-19\n" if place < 2 else "20-39\n",
            },
        )
    return root


def lumi_g(root: Path) -> Path:
    """A node of LUMI-G: eight GCDs in KFD's order."""
    tree = build_mi250x(root)
    for gpu, numa in zip(tree.gpus, LUMI_NUMA, strict=True):
        first = 16 * numa
        cores = f"{first}-{first + 15},{first + 64}-{first + 79}\n"
        plant(
            root,
            {
                f"sys/bus/pci/devices/{gpu.address}/numa_node": f"{numa}\n",
                f"sys/bus/pci/devices/{gpu.address}/local_cpulist": cores,
            },
        )
    return root
