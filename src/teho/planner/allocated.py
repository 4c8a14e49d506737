"""What the scheduler makes of a laid-out request: cores, GPUs and memory that it gives and bills.

Measured with Slurm 22.05 (select/cons_tres): `CR_Core` gives whole cores, `CR_Socket` whole
sockets, `CR_CPU` single threads; whole nodes come with the GPUs of all their types.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from teho.model.cluster import NodeKind
from teho.model.plan import Given
from teho.planner.shape import Case, default_memory_is_too_much, memory_mib
from teho.units import counted

__all__ = [
    "CpusPerCore",
    "cpus_per_core",
    "given_by_kind",
    "given_to",
    "kinds_that_may_come",
    "memory_with_all_gpus",
    "unsure_cores",
]

T = TypeVar("T")


def given_to(case: Case) -> Given:
    """Return what each node of the job is given; None if it depends on the node."""
    found = given_by_kind(case)
    if len(found) == 1:
        return found[0]
    return Given(
        cores=_common(one.cores for one in found),
        cpus=_common(one.cpus for one in found),
        gpus=_common(one.gpus for one in found),
        memory_mib=_common(one.memory_mib for one in found),
    )


def given_by_kind(case: Case) -> list[Given]:
    """Return what a node of each kind that may come would give, the planned kind's first."""
    own = case.cluster.dialect.memory_is_counted is None
    # A site's own page tells what is billed of the nodes that are asked for.
    kinds = [case.kind] if own else kinds_that_may_come(case)
    return [_given(case, kind) for kind in kinds]


class CpusPerCore(NamedTuple):
    """How many CPUs of the scheduler's the script asks for, for each core that is planned."""

    cpus: int
    one_thread: bool
    """Whether it asks for one CPU of each core."""


def cpus_per_core(case: Case) -> CpusPerCore:
    """Return what to ask for where the kinds of node that may come differ in their threads."""
    own, cores = case.kind.threads_per_core, case.shape.cores_per_node
    if case.cluster.dialect.gives_whole == "cpus" and not case.has_whole_nodes:
        most = _most_threads(case)
        if most > 1 and cores * most <= case.kind.cores_for_jobs * own:
            return CpusPerCore(most, one_thread=False)
    # On nodes with more threads, those of fewer cores would do for Slurm.
    threads = {own} | {
        kind.threads_per_core
        for kind in case.cluster.nodes
        if _may_come(case, kind, cores * min(1.0, own / kind.threads_per_core))
    }
    return CpusPerCore(1 if len(threads) > 1 else own, one_thread=len(threads) > 1)


def _most_threads(case: Case) -> int:
    """Return the most threads of a core on nodes where one CPU of each core would be a thread.

    `--threads-per-core=1` keeps a job only from nodes with fewer cores than it asks for, cores
    that are reserved for the system included; with CR_CPU it is still given threads there.
    """
    cores = case.shape.cores_per_node
    may_come = (kind for kind in case.cluster.nodes if kind.cores >= cores)
    found = [kind.threads_per_core for kind in may_come if _may_come(case, kind, 0)]
    return max([case.kind.threads_per_core, *found])


def unsure_cores(case: Case) -> Iterator[str]:
    """Yield in a few words why a node may give fewer cores than planned, if one may."""
    asked, found = case.shape.cores_per_node, given_by_kind(case)
    least = min((one.cores for one in found if one.cores is not None), default=asked)
    if least < asked:
        yield (
            f"whether each node gives {counted(asked, 'core')} or {least}: some nodes have several "
            "CPUs per core, and Slurm counts CPUs there"
        )


def kinds_that_may_come(case: Case) -> list[NodeKind]:
    """Return the kinds of node that Slurm may choose for the job, the planned one first."""
    return [case.kind, *(kind for kind in case.cluster.nodes if _may_come_by_cores(case, kind))]


def _may_come_by_cores(case: Case, kind: NodeKind) -> bool:
    """Return whether the job as it is asked for may come to another kind of node."""
    cores, threads = case.shape.cores_per_node, kind.threads_per_core
    if case.cluster.dialect.gives_whole != "cpus" or case.has_whole_nodes:
        return _may_come(case, kind, cores)
    asked = cpus_per_core(case)
    # Cores that are reserved for the system count, as far as can be seen.
    needed = cores if asked.one_thread else cores * asked.cpus / threads
    return needed <= kind.cores and _may_come(case, kind, 0)


def _may_come(case: Case, kind: NodeKind, cores: float) -> bool:
    """Return whether a job with so many cores may come to another kind of node."""
    shape, own, partition = case.shape, case.kind, case.partition
    if kind.name not in partition.kinds or kind == own:
        return False
    if own.constraint != kind.constraint:
        return False
    most = partition.max_cores_per_node
    if case.has_whole_nodes and most is not None and kind.cores_for_jobs > most:
        return False  # it is never given whole
    memory, disk = memory_mib(kind.memory), case.request.local_disk_gib
    return (
        _gpus_of(case, kind) >= shape.gpus_per_node
        and cores <= kind.cores_for_jobs
        and (memory is None or (shape.memory_mib or 0) <= memory)
        and (disk is None or kind.local_disk_gib is None or disk <= kind.local_disk_gib)
    )


def _gpus_of(case: Case, kind: NodeKind) -> int:
    """Return the GPUs of a kind of node that the request's words mean."""
    own = case.kind.gpu
    if case.request.gpus == 0:
        fits = (own is None and kind.gpu is None) or case.partition.takes_cpu_jobs
        return 0 if fits else -1
    if own is None or kind.gpu is None or (own.typed and kind.gpu.type != own.type):
        return -1
    return case.shape.gpus_per_node if kind.gpu.count is None else kind.gpu.count


def _given(case: Case, kind: NodeKind) -> Given:
    cores = _cores(case, kind)
    return Given(
        cores=cores,
        cpus=None if cores is None else cores * kind.threads_per_core,
        gpus=_gpus(case, kind),
        memory_mib=_memory(case, kind),
    )


def _cores(case: Case, kind: NodeKind) -> int | None:
    usable, asked, dialect = kind.cores_for_jobs, case.shape.cores_per_node, case.cluster.dialect
    if case.has_whole_nodes:
        return usable
    if case.partition.max_memory_per_cpu is not None and default_memory_is_too_much(
        case.cluster, case.partition, kind, case.shape.gpus_per_node
    ):
        return None  # seen: Slurm 22.05 gives cores for the default memory of the GPUs
    if dialect.gives_whole == "cpus":
        return math.ceil(asked * cpus_per_core(case).cpus / kind.threads_per_core)
    if dialect.gives_whole == "sockets":
        sockets = kind.sockets or 1
        each = max(1, kind.cores // sockets)
        needed = math.ceil(asked / each)
        # Of one job in several sockets, or with GPUs, Slurm may give more than are needed.
        sure = needed == sockets or (needed == 1 and not case.shape.gpus_per_node)
        return min(usable, needed * each) if sure else None
    each_mib, memory = memory_mib(case.partition.max_memory_per_cpu), case.shape.memory_mib
    if each_mib and memory and cpus_per_core(case).one_thread:
        cores = math.ceil(memory / each_mib)  # a CPU of each
        return max(asked, cores) if cores <= usable else None
    return asked


def _gpus(case: Case, kind: NodeKind) -> tuple[tuple[str, int], ...]:
    asked = case.shape.gpus_per_node
    if case.has_whole_nodes:
        return tuple(sorted((name, count or asked) for name, count in kind.all_gpus))
    return ((kind.gpu.type if kind.gpu else "", asked),) if asked else ()


def _memory(case: Case, kind: NodeKind) -> int | None:
    shape, share = case.shape, case.share
    if case.cluster.dialect.memory_is_counted is not None:
        return memory_with_all_gpus(case) if case.cluster.dialect.memory_is_counted else 0
    if case.has_whole_nodes:
        return memory_mib(kind.memory)
    if shape.memory_mib is not None:
        return shape.memory_mib
    if share and share.memory and "memory" in case.automatic:
        return (memory_mib(share.memory) or 0) * shape.gpus_per_node
    return case.default_memory_mib


def memory_with_all_gpus(case: Case) -> int | None:
    """Return the memory of each node that a job has: said for each GPU, a whole node's for all."""
    shape, gpu = case.shape, case.kind.gpu
    if shape.memory_mib is None or gpu is None or not gpu.count or not case.has_whole_nodes:
        return shape.memory_mib
    asked = shape.gpus_per_node
    if not default_memory_is_too_much(case.cluster, case.partition, case.kind, asked):
        return shape.memory_mib
    return shape.memory_mib // asked * gpu.count


def _common(values: Iterable[T | None]) -> T | None:
    """Return the value that all have. None: they differ, or one is not known."""
    found = set(values)
    return found.pop() if len(found) == 1 else None
