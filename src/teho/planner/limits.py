"""Every written limit that a request can break, each with its source."""

from __future__ import annotations

import math
from collections.abc import Iterator

from teho.launchers.registry import launcher_of
from teho.model.cluster import Partition
from teho.model.plan import Refusal
from teho.planner.allocated import kinds_that_may_come
from teho.planner.grid_engine_rules import grid_engine_refusals
from teho.planner.masks import mask_refusals
from teho.planner.node_limits import node_refusals
from teho.planner.resource_limits import LIMITS_SOURCE, resource_refusals
from teho.planner.shape import (
    Case,
    fewest_nodes,
    seconds,
)
from teho.planner.slurm_rules import access_refusals, in_service
from teho.schedulers.registry import scheduler_of
from teho.units import counted, format_duration, plural

__all__ = ["refusals_of"]


def refusals_of(case: Case) -> tuple[Refusal, ...]:
    """Return the limits that a request breaks on one partition; empty if it fits."""
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
    if not scheduler_of(case.cluster.scheduler).has_associations:
        return
    yield from access_refusals(case.request, case.cluster, case.partition, case.kind, case.live)


def _launcher(case: Case) -> Iterator[Refusal]:
    name, scheduler = case.request.launcher, scheduler_of(case.cluster.scheduler)
    launcher = launcher_of(name)
    if not launcher.works_on(scheduler.name):
        owners = " and ".join(scheduler_of(own).title for own in sorted(launcher.schedulers))
        yield Refusal(
            kind="no_such_launcher",
            sentence=f"{name} belongs to {owners}, and {case.cluster.title} uses {scheduler.title}",
            source=case.cluster.dialect.source,
            instead="--launcher torchrun",
        )


def _slurm_alone(case: Case) -> Iterator[Refusal]:
    scheduler = scheduler_of(case.cluster.scheduler)
    asked = [
        name
        for name in ("qos", "reservation", "licenses", "exclusive")
        if getattr(case.request, name) and name not in scheduler.request_options
    ]
    if asked:
        options = ", ".join(f"--{name}" for name in asked)
        yield Refusal(
            kind="slurm_alone",
            sentence=f"only Slurm has {options}, and {case.cluster.title} uses {scheduler.title}",
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
            sentence=f"the job may get {' or '.join(others)} GPUs, because the GPUs of node kind "
            f"{case.kind.name} have no type that a job can request",
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
    """Return the next count of GPUs that the partition takes; empty if there is none."""
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
    """Count the nodes that such a request can be on; None: not documented.

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


_CHECKS = (
    _purpose,
    _access,
    _launcher,
    _slurm_alone,
    _untyped,
    _gpus,
    _nodes,
    _time,
    node_refusals,
    mask_refusals,
    grid_engine_refusals,
)
