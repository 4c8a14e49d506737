"""Every written limit that a request can break, each with its source."""

from __future__ import annotations

import math
from collections.abc import Iterator

from teho.model.cluster import Partition
from teho.model.plan import Refusal
from teho.planner.allocated import cpus_per_core, kinds_that_may_come, memory_with_all_gpus
from teho.planner.grid_engine_rules import grid_engine_refusals
from teho.planner.masks import mask_refusals
from teho.planner.resource_limits import LIMITS_SOURCE, resource_refusals
from teho.planner.shape import (
    Case,
    fewest_nodes,
    memory_mib,
    most_cpus_with_memory_per_gpu,
    seconds,
)
from teho.planner.slurm_rules import access_refusals, in_service
from teho.units import counted, format_duration, format_mib, mib_text, plural

__all__ = ["refusals_of"]


def refusals_of(case: Case) -> tuple[Refusal, ...]:
    """Return the limits that a request breaks on one partition; empty where it fits."""
    refusals: list[Refusal] = []
    for check in _CHECKS:
        refusals += check(case)
    if not refusals:  # what breaks a partition's own limit is told by that
        refusals += resource_refusals(case)
    if not refusals or all(refusal.kind != "too_many_gpus" for refusal in refusals):
        return tuple(refusals)
    # Too many GPUs lead to too many nodes and cores: told only to those who asked for them.
    request, follow = case.request, set[str]()
    if request.nodes is None:
        follow.add("too_many_nodes")
    if request.cpus is None and request.cpus_per_gpu is None:
        follow.add("too_many_cores")
    return tuple(refusal for refusal in refusals if refusal.kind not in follow)


def _most_nodes(case: Case) -> int | None:
    """Return the most nodes of one job under the request's account; None: not documented."""
    partition, account = case.partition, case.request.account
    prefixes = case.cluster.account.allocations
    if (
        partition.max_nodes_with_allocation
        and account
        and prefixes
        and account.startswith(prefixes)
    ):
        return partition.max_nodes_with_allocation
    return partition.max_nodes


def _purpose(case: Case) -> Iterator[Refusal]:
    if case.partition.purpose == "restricted":
        yield Refusal(
            kind="restricted",
            sentence=f"only invited users can use {case.where}",
            source=case.partition.source,
        )


def _access(case: Case) -> Iterator[Refusal]:
    if case.cluster.scheduler != "slurm":
        return
    yield from access_refusals(case.request, case.cluster, case.partition, case.kind, case.live)


def _launcher(case: Case) -> Iterator[Refusal]:
    if case.request.launcher == "srun" and case.cluster.scheduler != "slurm":
        yield Refusal(
            kind="no_such_launcher",
            sentence=f"srun belongs to Slurm, and {case.cluster.title} uses Grid Engine",
            source=case.cluster.dialect.source,
            instead="--launcher torchrun",
        )


def _slurm_alone(case: Case) -> Iterator[Refusal]:
    request = case.request
    asked = [name for name in ("qos", "reservation", "licenses") if getattr(request, name)]
    asked += ["exclusive"] if request.exclusive else []
    if asked and case.cluster.scheduler != "slurm":
        options = ", ".join(f"--{name}" for name in asked)
        yield Refusal(
            kind="slurm_alone",
            sentence=f"only Slurm has {options}, and {case.cluster.title} uses Grid Engine",
            source=case.cluster.dialect.source,
            instead=f"leave {options} out",
        )


def _gpus(case: Case) -> Iterator[Refusal]:
    request, partition, kind, shape = case.request, case.partition, case.kind, case.shape
    gpu, source = kind.gpu, partition.source
    if gpu is None or request.gpus == 0:
        return
    wanted = request.gpu_memory_gib
    if wanted is not None and gpu.memory_gib is not None and gpu.memory_gib < wanted:
        yield Refusal(
            kind="gpu_memory",
            sentence=f"the job needs GPUs with {wanted:g} GiB of memory, and {gpu.model} has "
            f"{gpu.memory_gib:g} GiB",
            source=kind.source,
        )
    if request.gpus % shape.nodes:
        yield Refusal(
            kind="uneven_gpus",
            sentence=f"{request.gpus} GPUs cannot be divided evenly over {shape.nodes} nodes",
            source=case.cluster.dialect.source,
            instead=f"{shape.gpus_per_node * shape.nodes} GPUs",
        )
    yield from _gpus_per_node(case)
    most = min(
        (count for count in (partition.max_gpus, gpu.max_per_job) if count is not None),
        default=request.gpus,
    )
    if request.gpus > most:
        yield Refusal(
            kind="too_many_gpus",
            sentence=f"the job requests {counted(request.gpus, 'GPU')}, more than the limit of "
            f"{most} per job",
            source=source,
        )
    if partition.min_gpus is not None and request.gpus < partition.min_gpus:
        yield Refusal(
            kind="too_few_gpus",
            sentence=f"the job requests {counted(request.gpus, 'GPU')}, less than the minimum of "
            f"{partition.min_gpus}",
            source=source,
        )
    yield from _gpu_counts(case)


def _untyped(case: Case) -> Iterator[Refusal]:
    """Refuse GPUs without a type where the same words may give others that have one."""
    gpu = case.kind.gpu
    if gpu is None or gpu.typed or case.request.gpus == 0 or case.kind.constraint:
        return
    others = sorted(
        {kind.gpu.type for kind in kinds_that_may_come(case) if kind.gpu and kind.gpu.typed}
    )
    if others:
        yield Refusal(
            kind="untyped_gpus",
            sentence=f"the GPUs of node kind {case.kind.name} have no type in the scheduler; if "
            f"the job names no type, {case.where} may give it {' or '.join(others)}",
            source=case.kind.source,
            instead=f"--gpu-type {others[0]}",
        )


def _gpus_per_node(case: Case) -> Iterator[Refusal]:
    partition, kind, shape = case.partition, case.kind, case.shape
    count, most = shape.gpus_per_node, case.most_per_node
    asked = f"the job requests {counted(count, 'GPU')} on each of {counted(shape.nodes, 'node')}"
    asked = asked if shape.nodes > 1 else f"the job requests {counted(count, 'GPU')} on one node"
    if most is not None and count > most:
        needed, allowed = fewest_nodes(case.request.gpus, most), _most_nodes(case)
        yield Refusal(
            kind="too_many_gpus_per_node",
            sentence=f"{asked}, more than the limit of {most} per node",
            source=partition.source if most == partition.max_gpus_per_node else kind.source,
            instead=f"--nodes {needed}" if allowed is None or needed <= allowed else "",
        )
    least = partition.min_gpus_per_node
    if least is not None and count < least:
        yield Refusal(
            kind="too_few_gpus_per_node",
            sentence=f"{asked}, less than the minimum of {least} per node",
            source=partition.source,
        )
    whole = kind.gpu.count if kind.gpu else None
    if partition.whole_nodes_if_several and shape.nodes > 1 and whole and count < whole:
        yield Refusal(
            kind="not_whole_nodes",
            sentence=f"{asked}; a job on several nodes in {case.where} must use whole nodes, with "
            f"{whole} GPUs each",
            source=partition.source,
            instead=f"--nodes {fewest_nodes(case.request.gpus, whole)}",
        )


def _gpu_counts(case: Case) -> Iterator[Refusal]:
    gpus, partition = case.request.gpus, case.partition
    counts, multiple = partition.gpu_counts, partition.gpu_multiple
    if not counts and multiple is None:
        return
    if gpus in counts or (multiple is not None and gpus % multiple == 0):
        return
    allowed = [str(count) for count in counts]
    allowed += [f"a multiple of {multiple}"] if multiple is not None else []
    yield Refusal(
        kind="gpu_count",
        sentence=f"the job requests {counted(gpus, 'GPU')}; jobs can only have "
        f"{' or '.join(allowed)}",
        source=partition.source,
        instead=_next_count(case, multiple) if multiple else "",
    )


def _next_count(case: Case, multiple: int) -> str:
    """Return the next count of GPUs that the partition takes; empty where there is none."""
    count = math.ceil(case.request.gpus / multiple) * multiple
    nodes, most = _most_nodes(case), case.partition.max_gpus
    if nodes is not None and case.most_per_node is not None:
        most = min(nodes * case.most_per_node, most or nodes * case.most_per_node)
    return f"{count} GPUs" if most is None or count <= most else ""


def _nodes(case: Case) -> Iterator[Refusal]:
    partition, kind, nodes = case.partition, case.kind, case.shape.nodes
    there = partition.node_counts.get(kind.name, kind.count)
    if there is not None and nodes > there:
        there = _nodes_there(case)
    limits = ((_most_nodes(case), partition.source), (there, kind.source))
    for most, source in limits:
        if most is not None and nodes > most:
            more = partition.max_nodes_with_allocation
            prefixes = " or ".join(case.cluster.account.allocations)
            yield Refusal(
                kind="too_many_nodes",
                sentence=f"the job requests {counted(nodes, 'node')}, more than the limit of "
                f"{most}",
                source=source,
                instead=f"an account {prefixes}…, which may have {more}"
                if more is not None and most < nodes <= more
                else "",
            )
            return
    working = _nodes_in_service(case)
    if working is not None and nodes > working:
        yield Refusal(
            kind="nodes_out_of_service",
            sentence=f"the job requests {counted(nodes, 'node')}; only {working} such "
            f"{plural('node', working)} in {case.where} {'is' if working == 1 else 'are'} in "
            "service now",
            source="Slurm sinfo, asked now",
        )
        return
    if nodes < partition.min_nodes:
        yield Refusal(
            kind="too_few_nodes",
            sentence=f"the job requests {counted(nodes, 'node')}, less than the minimum of "
            f"{partition.min_nodes}",
            source=partition.source,
        )


def _nodes_there(case: Case) -> int | None:
    """Count the nodes that such a request can lie on; None: not documented.

    Kinds that are asked for in the same words are one to the scheduler.
    """
    total = 0
    for kind in kinds_that_may_come(case):
        if not case.request.gpus and not kind.stands_for_node:
            continue
        count = case.partition.node_counts.get(kind.name, kind.count)
        if count is None:
            return None
        total += count
    return total


def _nodes_in_service(case: Case) -> int | None:
    """Count the nodes that take such a job now; None: it is not known."""
    if case.live is None or not case.live.nodes:
        return None
    # Kinds that have the same CPUs and GPUs are counted together.
    found: dict[tuple[int, tuple[str, ...]], int] = {}
    for kind in kinds_that_may_come(case):
        count = in_service(case.partition, kind, case.live)
        if count is None:
            return None
        types = tuple(sorted(name for name, _ in kind.all_gpus))
        found[kind.cores * kind.threads_per_core, types] = count
    return sum(found.values())


def _time(case: Case) -> Iterator[Refusal]:
    partition, asked_s, limits = case.partition, case.shape.time_s, case.limits
    if limits.time_s is not None and asked_s > limits.time_s:
        yield Refusal(
            kind="too_long",
            sentence=f"the job requests {format_duration(asked_s)}, more than the limit of "
            f"{format_duration(limits.time_s)} ({limits.time_setter})",
            source=LIMITS_SOURCE,
        )
    most = partition.max_time if limits.partition_time_holds else None
    if most and asked_s > seconds(most):
        yield _time_refusal("too_long", asked_s, partition, "more than the limit", most)
    if partition.min_time and asked_s < seconds(partition.min_time):
        yield _time_refusal(
            "too_short", asked_s, partition, "less than the minimum", partition.min_time
        )


def _time_refusal(
    kind: str, asked_s: float, partition: Partition, than: str, limit: str
) -> Refusal:
    allowed = format_duration(seconds(limit))
    return Refusal(
        kind=kind,
        sentence=f"the job requests {format_duration(asked_s)}, {than} of {allowed}",
        source=partition.source,
        instead=f"--time {limit}" if kind == "too_short" else "",
    )


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
    """Tell whether Slurm may give no node whole: MaxCPUsPerNode is less than one has."""
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
    if wanted is not None and shape.cores_per_node > math.ceil(wanted / shape.nodes):
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
            sentence=f"{case.cluster.title}'s nodes of kind {kind.name} have no local disk{memory}",
            source=disk.source if disk and disk.in_memory else kind.source,
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


_CHECKS = (
    _purpose,
    _access,
    _launcher,
    _slurm_alone,
    _untyped,
    _gpus,
    _nodes,
    _time,
    _cores,
    _memory,
    _disk,
    mask_refusals,
    grid_engine_refusals,
)
