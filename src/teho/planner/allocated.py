"""What the scheduler makes of a laid-out request: cores, GPUs and memory that it gives and bills.

Measured with Slurm 22.05 (select/cons_tres): `CR_Core` gives whole cores, `CR_Socket` whole
sockets, `CR_CPU` single threads; whole nodes come with the GPUs of all their types.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

from teho.model.cluster import NodeKind
from teho.model.plan import Given
from teho.planner.shape import Case, memory_mib

__all__ = ["given_to", "kinds_that_may_come"]

T = TypeVar("T")


def given_to(case: Case) -> Given:
    """Return what each node of the job is given."""
    own = case.cluster.dialect.memory_is_counted is None
    # A site's own page tells what is billed of the nodes that are asked for.
    kinds = [case.kind] if own else kinds_that_may_come(case)
    found = [_given(case, kind) for kind in kinds]
    if len(found) == 1:
        return found[0]
    return Given(
        cores=_common(one.cores for one in found),
        cpus=_common(one.cpus for one in found),
        gpus=_common(one.gpus for one in found),
        memory_mib=_common(one.memory_mib for one in found),
    )


def kinds_that_may_come(case: Case) -> list[NodeKind]:
    """Return the kinds of node that Slurm may choose for the job, the planned one first."""
    return [case.kind, *(kind for kind in case.cluster.nodes if _may_come(case, kind))]


def _may_come(case: Case, kind: NodeKind) -> bool:
    shape, own, partition = case.shape, case.kind, case.partition
    if kind.name not in partition.kinds or kind == own:
        return False
    if own.constraint != kind.constraint:
        return False
    memory, disk = memory_mib(kind.memory), case.request.local_disk_gib
    return (
        _gpus_of(case, kind) >= shape.gpus_per_node
        and shape.cores_per_node <= kind.cores_for_jobs
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
    shape, dialect = case.shape, case.cluster.dialect
    usable = kind.cores_for_jobs
    gpu_type = kind.gpu.type if kind.gpu else ""
    gpus: tuple[tuple[str, int], ...] = ()
    if case.has_whole_nodes:
        cores: int | None = usable
        if kind.gpu:
            gpus = tuple((name, count or shape.gpus_per_node) for name, count in kind.all_gpus)
    else:
        cores = shape.cores_per_node
        if shape.gpus_per_node:
            gpus = ((gpu_type, shape.gpus_per_node),)
        if dialect.gives_whole == "sockets":
            sockets = kind.sockets or 1
            each = max(1, kind.cores // sockets)
            needed = math.ceil(shape.cores_per_node / each)
            # Of one job in several sockets, or with GPUs, Slurm may give more than are needed.
            sure = needed == sockets or (needed == 1 and not gpus)
            cores = min(usable, needed * each) if sure else None
    return Given(
        cores=cores,
        cpus=None if cores is None else cores * kind.threads_per_core,
        gpus=tuple(sorted(gpus)),
        memory_mib=_memory(case, kind),
    )


def _memory(case: Case, kind: NodeKind) -> int | None:
    shape, share = case.shape, case.share
    if case.cluster.dialect.memory_is_counted is not None:
        return shape.memory_mib if case.cluster.dialect.memory_is_counted else 0
    if case.has_whole_nodes:
        return memory_mib(kind.memory)
    if shape.memory_mib is not None:
        return shape.memory_mib
    if share and share.memory and "memory" in case.automatic:
        return (memory_mib(share.memory) or 0) * shape.gpus_per_node
    return case.default_memory_mib


def _common(values: Iterable[T | None]) -> T | None:
    """Return the value that all have. None: they differ, or one is not known."""
    found = set(values)
    return found.pop() if len(found) == 1 else None
