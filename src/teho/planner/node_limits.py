"""Check the limits of one node: cores, memory, and local disk."""

from __future__ import annotations

import math
from collections.abc import Iterator

from teho.model.plan import Refusal
from teho.planner.allocated import cpus_per_core, memory_with_all_gpus
from teho.planner.place import Case, memory_mib
from teho.planner.refusal import above, below
from teho.units import counted, format_mib, mib_text

__all__ = ["node_refusals"]


def node_refusals(case: Case) -> Iterator[Refusal]:
    """Yield the limits per node that a request exceeds."""
    yield from _cores(case)
    yield from _cpus(case)
    yield from _memory(case)
    yield from _disk(case)


def _cores(case: Case) -> Iterator[Refusal]:
    request, partition, kind, shape = case.request, case.partition, case.kind, case.shape
    usable, cores, most = kind.cores_for_jobs, shape.cores_per_node, partition.max_cores_per_node
    requested = f"{counted(cores, 'core')} on a node{_why_so_many(case)}"
    if "cores" in case.automatic and (request.cpus_per_gpu or request.cpus) is not None:
        yield Refusal(
            kind="cores_are_automatic",
            sentence=f"{case.cluster.title} sets the number of cores itself, so a job must not "
            "request cores",
            source=case.share.source if case.share else partition.source,
            instead=f"leave {'--cpus' if request.cpus_per_gpu is None else '--cpus-per-gpu'} out",
        )
    elif cores > usable:
        kept = f" of the {kind.cores}" if usable < kind.cores else ""
        fair = usable // shape.gpus_per_node if shape.gpus_per_node else 0
        yield Refusal(
            kind="too_many_cores_per_node",
            sentence=f"the job requests {requested}, but jobs can have at most {usable}{kept} "
            "cores",
            source=kind.source,
            instead=f"--cpus-per-gpu {fair}" if fair else "",
        )
    elif most is not None and cores > most:
        yield above("too_many_cores_per_node", requested, most, partition.source)
    elif most is not None and most < usable and case.has_whole_nodes and _is_slurms(case):
        # Slurm allocates no node whole if MaxCPUsPerNode is less than the node has.
        yield Refusal(
            kind="too_many_cores_per_node",
            sentence=f"a whole node has {usable} cores, more than the limit of {most} per node",
            source=partition.source,
            instead="" if partition.exclusive else "leave --exclusive out",
        )


def _is_slurms(case: Case) -> bool:
    """Return whether the limits are Slurm's settings, not from a site's page."""
    return case.cluster.dialect.memory_is_counted is not None


def _cpus(case: Case) -> Iterator[Refusal]:
    """Yield the limits on CPUs as the scheduler counts them, and on the cores of the job."""
    partition, shape, share = case.partition, case.shape, case.share
    gpus, cores, source = shape.gpus_per_node, shape.cores_per_node, partition.source
    threads, per_core = case.kind.threads_per_core, cpus_per_core(case).cpus
    cpus = cores * per_core
    requested = f"{counted(cpus, 'CPU')}{f' ({threads} per core)' if threads > 1 else ''} on a node"

    def too_many_for_memory(kind: str, counts: str, most: int, instead: str) -> Refusal:
        return Refusal(
            kind=kind,
            sentence=f"the job requests {requested}, but the memory of the node is enough for only "
            f"{counted(most, 'CPU')}: {counts}, and ignores `--mem`",
            source=source,
            instead=instead,
        )

    most = case.most_cpus_with_memory_per_gpu(gpus)
    if most is not None and cpus > most:
        each = format_mib(memory_mib(partition.default_memory_per_cpu) or 0)
        counts = f"Slurm counts {each} of memory for each CPU of this job"
        instead = f"--cpus-per-gpu {max(1, most // per_core // gpus)}"
        yield too_many_for_memory("default_memory", counts, most, instead)
    most = case.most_cpus_of_whole_node if case.has_whole_nodes else None
    if most is not None and cpus > most:
        each = format_mib(memory_mib(partition.max_memory_per_cpu) or 0)
        counts = f"if a job takes whole nodes, Slurm reserves {each} of memory for each CPU"
        instead = f"--cpus {max(1, most // per_core) * shape.nodes}"
        yield too_many_for_memory("memory_of_whole_node", counts, most, instead)
    most = partition.max_cpus_per_node
    if most is not None and cpus > most:
        yield above("too_many_cores_per_node", requested, most, source)
    most, of_job = partition.max_cores, cores * shape.nodes
    if most is not None and of_job > most:
        yield above("too_many_cores", f"{of_job} cores", f"{most} per job", source)
    if share and share.enforced and share.cores and cores > share.cores * gpus:
        requested, fair = f"{counted(cores, 'core')} for {counted(gpus, 'GPU')}", share.cores
        instead = f"--cpus-per-gpu {fair}"
        yield above("cores_above_share", requested, f"{fair} per GPU", share.source, instead)


def _why_so_many(case: Case) -> str:
    """Return why the job requests more cores: for its memory, or the same number for each task."""
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


def _memory(case: Case) -> Iterator[Refusal]:
    partition, kind, gpus, share = case.partition, case.kind, case.shape.gpus_per_node, case.share
    if "memory" in case.automatic:
        if case.request.memory_mib is not None:
            title = case.cluster.title
            why = f"{title} sets the memory itself, so a job must not request memory"
            if case.has_option_for_nodes:
                why = (
                    f"a job on several nodes of {title} has all memory of its nodes, so it must "
                    "not request memory"
                )
            yield Refusal(
                kind="memory_is_automatic",
                sentence=why,
                source=_memory_source(case),
                instead="leave out the option that requests memory",
            )
        return
    memory = memory_with_all_gpus(case)
    if memory is None:
        return
    requested = f"{format_mib(memory)} of memory"
    for text, source in ((partition.max_memory, partition.source), (kind.memory, kind.source)):
        most = memory_mib(text)
        if most is not None and memory > most:
            yield Refusal(
                kind="too_much_memory",
                sentence=f"the job requests {requested} on a node, more "
                f"than the {format_mib(most)} that jobs can have",
                source=source,
                instead=f"--mem {mib_text(most)}",
            )
            break
    each = memory_mib(share.memory) if share and share.enforced else None
    if share and each and memory > each * gpus:
        limit, instead = f"{format_mib(each)} per GPU", f"--mem {mib_text(each * gpus)}"
        requested = f"{requested} for {counted(gpus, 'GPU')}"
        yield above("memory_above_share", requested, limit, share.source, instead)


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
        in_memory = disk if disk and disk.in_memory else None
        memory = "; on these nodes, /tmp is in memory: files in /tmp count as memory of the job"
        yield Refusal(
            kind="no_local_disk",
            sentence=f"the job requests local disk, but {case.cluster.title}'s nodes of kind "
            f"{kind.name} have none{memory if in_memory else ''}",
            source=in_memory.source if in_memory else kind.source,
            instead="leave --local-disk out",
        )
        return
    limits = (
        (partition.max_local_disk_gib, partition.source),
        (kind.local_disk_gib, kind.source),
        (disk.max_gib, disk.source),
    )
    # The script's options take whole GiB, so it rounds up.
    written, requested = (
        wanted if disk.per_core else math.ceil(wanted),
        f"{wanted:.4g} GiB of local disk",
    )
    for most, source in limits:
        if most is not None and written > most:
            yield Refusal(
                kind="too_much_local_disk",
                sentence=f"the job requests {requested}, more than "
                f"the {most:.4g} GiB that jobs can have on a node",
                source=source,
            )
            return
    if disk.min_gib is not None and wanted < disk.min_gib:
        minimum, instead = f"{disk.min_gib:.4g} GiB", f"--local-disk {disk.min_gib:g}GiB"
        yield below("too_little_local_disk", requested, minimum, disk.source, instead)
