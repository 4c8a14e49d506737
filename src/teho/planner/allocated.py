"""Compute what the scheduler allocates and bills for a laid-out request: cores, GPUs, memory.

Measured with Slurm 22.05 (select/cons_tres): `CR_Core` allocates whole cores, `CR_Socket` whole
sockets, `CR_CPU` single threads. A whole node comes with its GPUs of all types.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from teho.model.cluster import NodeKind
from teho.model.plan import Given
from teho.planner.place import Case, memory_mib
from teho.units import counted

__all__ = [
    "CpusPerCore",
    "cpus_per_core",
    "given_by_kind",
    "given_to",
    "memory_with_all_gpus",
    "possible_kinds",
    "unsure_cores",
]

T = TypeVar("T")


def given_to(case: Case) -> Given:
    """Return the allocation on each node. A figure that depends on the node kind is None."""
    found = given_by_kind(case)
    return Given(
        cores=_common(one.cores for one in found),
        cpus=_common(one.cpus for one in found),
        gpus=_common(one.gpus for one in found),
        memory_mib=_common(one.memory_mib for one in found),
    )


def given_by_kind(case: Case) -> list[Given]:
    """Return the allocation on a node of each possible kind, the planned kind first."""
    # If the facts are from a site's page, the page says what the requested nodes cost.
    documented = case.cluster.dialect.memory_is_counted is None
    kinds = [case.kind] if documented else possible_kinds(case)
    return [_given(case, kind) for kind in kinds]


class CpusPerCore(NamedTuple):
    """Number of the scheduler's CPUs that the script requests for each planned core."""

    cpus: int
    one_thread: bool
    """Whether the script requests one CPU of each core."""


def cpus_per_core(case: Case) -> CpusPerCore:
    """Return the CPUs to request per core. Possible node kinds may differ in their threads."""
    own, cores = case.kind.threads_per_core, case.shape.cores_per_node
    if case.cluster.dialect.gives_whole == "cpus" and not case.has_whole_nodes:
        most = _most_threads(case)
        if most > 1 and cores * most <= case.kind.cores_for_jobs * own:
            return CpusPerCore(most, one_thread=False)
    # On nodes with more threads per core, Slurm would accept fewer cores.
    threads = {own} | {
        kind.threads_per_core
        for kind in case.cluster.nodes
        if _is_possible(case, kind, cores * min(1.0, own / kind.threads_per_core))
    }
    return CpusPerCore(1 if len(threads) > 1 else own, one_thread=len(threads) > 1)


def _most_threads(case: Case) -> int:
    """Return the most threads per core of the nodes on which one CPU per core would be a thread.

    `--threads-per-core=1` keeps a job only from nodes with fewer cores than requested, including
    the cores reserved for the system. With CR_CPU, the job still gets threads on the other nodes.
    """
    cores = case.shape.cores_per_node
    kinds = (kind for kind in case.cluster.nodes if kind.cores >= cores)
    found = [kind.threads_per_core for kind in kinds if _is_possible(case, kind, 0)]
    return max([case.kind.threads_per_core, *found])


def unsure_cores(case: Case) -> Iterator[str]:
    """Yield in a few words why a node may give fewer cores than planned."""
    requested, found = case.shape.cores_per_node, given_by_kind(case)
    fewest = min((one.cores for one in found if one.cores is not None), default=requested)
    if fewest < requested:
        yield (
            f"whether the job gets {counted(requested, 'core')} or only {fewest} on each node: on "
            "nodes with several CPUs per core, Slurm counts CPUs, not cores"
        )


def possible_kinds(case: Case) -> list[NodeKind]:
    """Return the node kinds that Slurm may choose for the job, the planned kind first."""
    return [case.kind, *(kind for kind in case.cluster.nodes if _has_the_cores(case, kind))]


def _has_the_cores(case: Case, kind: NodeKind) -> bool:
    """Return whether Slurm may choose another kind, with the cores as the script requests them."""
    cores, threads = case.shape.cores_per_node, kind.threads_per_core
    if case.cluster.dialect.gives_whole != "cpus" or case.has_whole_nodes:
        return _is_possible(case, kind, cores)
    requested = cpus_per_core(case)
    # As far as measured, cores that are reserved for the system count here.
    needed = cores if requested.one_thread else cores * requested.cpus / threads
    return needed <= kind.cores and _is_possible(case, kind, 0)


def _is_possible(case: Case, kind: NodeKind, cores: float) -> bool:
    """Return whether Slurm may choose another kind for a job with this number of cores."""
    shape, partition = case.shape, case.partition
    if kind.name not in partition.kinds or kind == case.kind:
        return False
    if case.kind.constraint != kind.constraint:
        return False
    most = partition.max_cores_per_node
    if case.has_whole_nodes and most is not None and kind.cores_for_jobs > most:
        return False  # a job never gets the whole node
    memory, disk = memory_mib(kind.memory), case.request.local_disk_gib
    return (
        _matching_gpus(case, kind) >= shape.gpus_per_node
        and cores <= kind.cores_for_jobs
        and (memory is None or (shape.memory_mib or 0) <= memory)
        and (disk is None or kind.local_disk_gib is None or disk <= kind.local_disk_gib)
    )


def _matching_gpus(case: Case, kind: NodeKind) -> int:
    """Return the number of a node's GPUs that match the request; -1: the kind does not match."""
    own = case.kind.gpu
    if case.request.gpus == 0:
        fits = (own is None and kind.gpu is None) or case.partition.takes_cpu_jobs
        return 0 if fits else -1
    if own is None or kind.gpu is None or (own.typed and kind.gpu.type != own.type):
        return -1
    return case.shape.gpus_per_node if kind.gpu.count is None else kind.gpu.count


def _given(case: Case, kind: NodeKind) -> Given:
    cores, requested = _cores(case, kind), case.shape.gpus_per_node
    gpus = [(kind.gpu.type if kind.gpu else "", requested)] if requested else []
    if case.has_whole_nodes:
        gpus = sorted((name, count or requested) for name, count in kind.all_gpus)
    return Given(
        cores=cores,
        cpus=None if cores is None else cores * kind.threads_per_core,
        gpus=tuple(gpus),
        memory_mib=_memory(case, kind),
    )


def _cores(case: Case, kind: NodeKind) -> int | None:
    usable, requested, gpus = (
        kind.cores_for_jobs,
        case.shape.cores_per_node,
        case.shape.gpus_per_node,
    )
    each_mib = memory_mib(case.partition.max_memory_per_cpu)
    if case.has_whole_nodes:
        return usable
    if each_mib is not None and case.default_memory_is_too_much(gpus, kind):
        return None  # measured: Slurm 22.05 adds cores for the default memory of the GPUs
    if case.cluster.dialect.gives_whole == "cpus":
        return math.ceil(requested * cpus_per_core(case).cpus / kind.threads_per_core)
    if case.cluster.dialect.gives_whole == "sockets":
        sockets = kind.sockets or 1
        each = max(1, kind.cores // sockets)
        needed = math.ceil(requested / each)
        # With several sockets, or with GPUs, Slurm may allocate more sockets than needed.
        sure = needed == sockets or (needed == 1 and not gpus)
        return min(usable, needed * each) if sure else None
    memory = case.shape.memory_mib
    if each_mib and memory and cpus_per_core(case).one_thread:
        cores = math.ceil(memory / each_mib)  # one CPU of each core
        return max(requested, cores) if cores <= usable else None
    return requested


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
    """Return the job's memory per node. Memory per GPU counts for all GPUs of a whole node."""
    shape, gpu = case.shape, case.kind.gpu
    if shape.memory_mib is None or gpu is None or not gpu.count or not case.has_whole_nodes:
        return shape.memory_mib
    if not case.default_memory_is_too_much(shape.gpus_per_node):
        return shape.memory_mib
    return shape.memory_mib // shape.gpus_per_node * gpu.count


def _common(values: Iterable[T | None]) -> T | None:
    """Return the value if all are equal. None: they differ, or one is unknown."""
    found = set(values)
    return found.pop() if len(found) == 1 else None
