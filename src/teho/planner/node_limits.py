"""What a job may have of one node: cores, memory, and local disk."""

from __future__ import annotations

import math
from collections.abc import Iterator

from teho.model.plan import Refusal
from teho.planner.allocated import cpus_per_core, memory_with_all_gpus
from teho.planner.shape import (
    Case,
    memory_mib,
    most_cpus_of_a_whole_node,
    most_cpus_with_memory_per_gpu,
)
from teho.units import counted, format_mib, mib_text

__all__ = ["node_refusals"]


def node_refusals(case: Case) -> Iterator[Refusal]:
    """Yield the limits on what a job has of each node that a request breaks."""
    yield from _cores(case)
    yield from _memory(case)
    yield from _disk(case)


def _cores(case: Case) -> Iterator[Refusal]:
    request, partition, kind, shape = case.request, case.partition, case.kind, case.shape
    share, usable, cores = case.share, case.usable_cores, shape.cores_per_node
    fair = usable // shape.gpus_per_node if shape.gpus_per_node else 0
    if "cores" in case.automatic and (request.cpus_per_gpu or request.cpus) is not None:
        yield Refusal(
            kind="cores_are_automatic",
            sentence=f"{case.cluster.title} sets the number of cores itself, so a job must not "
            "request it",
            source=share.source if share else partition.source,
            instead=f"leave {'--cpus' if request.cpus_per_gpu is None else '--cpus-per-gpu'} out",
        )
    elif cores > usable:
        kept = f" of {kind.cores}" if usable < kind.cores else ""
        yield Refusal(
            kind="too_many_cores_per_node",
            sentence=f"{_cores_asked(case)}, more than the {usable}{kept} that jobs can have",
            source=kind.source,
            instead=f"--cpus-per-gpu {fair}" if fair else "",
        )
    elif partition.max_cores_per_node is not None and cores > partition.max_cores_per_node:
        yield Refusal(
            kind="too_many_cores_per_node",
            sentence=f"{_cores_asked(case)}, more than the limit of {partition.max_cores_per_node}",
            source=partition.source,
        )
    elif _is_less_than_a_node(case):
        yield Refusal(
            kind="too_many_cores_per_node",
            sentence=f"a whole node has {usable} cores, more than the limit of "
            f"{partition.max_cores_per_node} per node",
            source=partition.source,
            instead="" if partition.exclusive else "leave --exclusive out",
        )
    per_core = cpus_per_core(case).cpus
    cpus = cores * per_core
    most = most_cpus_with_memory_per_gpu(case.cluster, partition, kind, shape.gpus_per_node)
    if most is not None and cpus > most:
        fair = max(1, most // per_core // shape.gpus_per_node)
        yield Refusal(
            kind="default_memory",
            sentence=f"the job requests {_cpus(case, cpus)} on a node; Slurm counts "
            f"{format_mib(memory_mib(partition.default_memory_per_cpu) or 0)} of memory for each "
            f"CPU there, whatever `--mem` says, and the node has enough for {most} CPUs",
            source=partition.source,
            instead=f"--cpus-per-gpu {fair}",
        )
    most = most_cpus_of_a_whole_node(partition, kind) if case.has_whole_nodes else None
    if most is not None and cpus > most:
        yield Refusal(
            kind="memory_of_whole_node",
            sentence=f"the job requests {_cpus(case, cpus)} on a node; for a whole node Slurm "
            f"counts {format_mib(memory_mib(partition.max_memory_per_cpu) or 0)} of memory for "
            f"each CPU, whatever `--mem` says, and the node has enough for {most} CPUs",
            source=partition.source,
            instead=f"--cpus {max(1, most // per_core) * shape.nodes}",
        )
    if partition.max_cpus_per_node is not None and cpus > partition.max_cpus_per_node:
        yield Refusal(
            kind="too_many_cores_per_node",
            sentence=f"the job requests {_cpus(case, cpus)} on a node, more than the limit "
            f"of {partition.max_cpus_per_node}",
            source=partition.source,
        )
    if partition.max_cores is not None and cores * shape.nodes > partition.max_cores:
        yield Refusal(
            kind="too_many_cores",
            sentence=f"the job requests {cores * shape.nodes} cores, more than the limit of "
            f"{partition.max_cores} per job",
            source=partition.source,
        )
    if share and share.enforced and share.cores and cores > share.cores * shape.gpus_per_node:
        yield Refusal(
            kind="cores_above_share",
            sentence=f"the job requests {counted(cores, 'core')} for "
            f"{counted(shape.gpus_per_node, 'GPU')}, more than the limit of "
            f"{share.cores} per GPU",
            source=share.source,
            instead=f"--cpus-per-gpu {share.cores}",
        )


def _is_less_than_a_node(case: Case) -> bool:
    """Return whether Slurm may give no node whole: MaxCPUsPerNode is less than one has."""
    most, is_slurms = case.partition.max_cores_per_node, case.cluster.dialect.memory_is_counted
    return (
        case.has_whole_nodes
        and is_slurms is not None
        and most is not None
        and most < case.usable_cores
    )


def _cores_asked(case: Case) -> str:
    cores = counted(case.shape.cores_per_node, "core")
    return f"the job requests {cores} on a node{_why_so_many(case)}"


def _why_so_many(case: Case) -> str:
    """Say where so many cores come from: the memory, or tasks that all have as many."""
    shape, wanted = case.shape, case.request.cpus
    many = shape.tasks_per_node > 1
    if many and wanted is not None and shape.cores_per_node > math.ceil(wanted / shape.nodes):
        tasks = f" ({shape.cpus_per_task} for each of {shape.tasks_per_node} tasks)"
    else:
        tasks = ""
    each, memory = memory_mib(case.partition.max_memory_per_cpu), case.request.memory_mib
    if each is None or memory is None or case.has_whole_nodes:
        return tasks
    needed = math.ceil(memory / each / case.kind.threads_per_core)
    if needed < shape.cores_per_node - shape.tasks_per_node:
        return tasks
    return f" ({format_mib(memory)} of memory at {format_mib(each)} per CPU)"


def _cpus(case: Case, cpus: int) -> str:
    """Write CPUs as the scheduler counts them."""
    threads = case.kind.threads_per_core
    return counted(cpus, "CPU") + (f" ({threads} per core)" if threads > 1 else "")


def _memory(case: Case) -> Iterator[Refusal]:
    partition, kind, shape, share = case.partition, case.kind, case.shape, case.share
    if "memory" in case.automatic:
        if case.request.memory_mib is not None:
            yield Refusal(
                kind="memory_is_automatic",
                sentence=f"{case.cluster.title} sets the memory itself, so a job must not request "
                "it",
                source=_memory_source(case),
                instead="leave --mem out",
            )
        return
    memory = memory_with_all_gpus(case)
    if memory is None:
        return
    limits = ((partition.max_memory, partition.source), (kind.memory, kind.source))
    for text, source in limits:
        most = memory_mib(text)
        if most is not None and memory > most:
            yield Refusal(
                kind="too_much_memory",
                sentence=f"the job requests {format_mib(memory)} of memory on a node, more "
                f"than the {format_mib(most)} that jobs can have",
                source=source,
                instead=f"--mem {mib_text(most)}",
            )
            break
    each = memory_mib(share.memory) if share and share.enforced else None
    if share and each and memory > each * shape.gpus_per_node:
        yield Refusal(
            kind="memory_above_share",
            sentence=f"the job requests {format_mib(memory)} of memory for "
            f"{counted(shape.gpus_per_node, 'GPU')}, more than the limit of "
            f"{format_mib(each)} per GPU",
            source=share.source,
            instead=f"--mem {mib_text(each * shape.gpus_per_node)}",
        )


def _memory_source(case: Case) -> str:
    if case.share and "memory" in case.share.automatic:
        return case.share.source
    if "memory" in case.partition.automatic:
        return case.partition.source
    return case.cluster.dialect.source


def _disk(case: Case) -> Iterator[Refusal]:
    wanted, disk, partition = case.request.local_disk_gib, case.cluster.local_disk, case.partition
    kind = case.kind
    if wanted is None:
        return
    if disk is None or kind.local_disk_gib == 0:
        memory = "; their /tmp is in memory, and files there count as memory of the job"
        memory = memory if disk and disk.in_memory else ""
        yield Refusal(
            kind="no_local_disk",
            sentence=f"the job requests local disk, and {case.cluster.title}'s nodes of kind "
            f"{kind.name} have none{memory}",
            source=disk.source if disk and disk.in_memory else kind.source,
            instead="leave --local-disk out",
        )
        return
    limits = (
        (partition.max_local_disk_gib, partition.source),
        (kind.local_disk_gib, kind.source),
        (disk.max_gib, disk.source),
    )
    # Options take whole GiB, and the script rounds up.
    written = wanted if disk.per_core else math.ceil(wanted)
    for most, source in limits:
        if most is not None and written > most:
            yield Refusal(
                kind="too_much_local_disk",
                sentence=f"the job requests {wanted:.4g} GiB of local disk, more than "
                f"the {most:.4g} GiB that jobs can have on a node",
                source=source,
            )
            return
    if disk.min_gib is not None and wanted < disk.min_gib:
        yield Refusal(
            kind="too_little_local_disk",
            sentence=f"the job requests {wanted:.4g} GiB of local disk, less than the minimum of "
            f"{disk.min_gib:.4g} GiB",
            source=disk.source,
            instead=f"--local-disk {disk.min_gib:g}GiB",
        )
