"""Check a request against every documented limit, each with its source."""

from __future__ import annotations

import math
from collections.abc import Iterator

from teho.model.plan import Refusal
from teho.planner.allocated import possible_kinds
from teho.planner.grid_engine_rules import grid_engine_refusals
from teho.planner.masks import mask_refusals
from teho.planner.node_limits import node_refusals
from teho.planner.place import Case, seconds
from teho.planner.refusal import above, below
from teho.planner.resource_limits import LIMITS_SOURCE, resource_refusals
from teho.planner.shape import fewest_nodes
from teho.planner.slurm_access import in_service, slurm_access
from teho.schedulers.registry import scheduler_of
from teho.units import counted, format_duration, least

__all__ = ["refusals_of"]


def refusals_of(case: Case) -> tuple[Refusal, ...]:
    """Return the limits that a request exceeds on one partition; empty if it fits."""
    refusals = [refusal for check in _CHECKS for refusal in check(case)]
    # A partition's limit explains more than the limits of QOS and associations.
    refusals = refusals or list(resource_refusals(case))
    if all(refusal.kind != "too_many_gpus" for refusal in refusals):
        return tuple(refusals)
    # Too many GPUs need too many nodes and cores. Report these only if the user set them.
    request, follow = case.request, set[str]()
    if request.nodes is None:
        follow |= {"too_many_nodes", "one_node"}
    if request.cpus is None and request.cpus_per_gpu is None:
        follow.add("too_many_cores")
    return tuple(refusal for refusal in refusals if refusal.kind not in follow)


def _most_nodes(case: Case) -> int | None:
    """Return the maximum nodes of a job under the request's account. None: not documented."""
    partition, account = case.partition, case.request.account
    prefixes, more = case.cluster.account.allocations, partition.max_nodes_with_allocation
    if more and account and prefixes and account.startswith(prefixes):
        return more
    return partition.max_nodes


def _purpose(case: Case) -> Iterator[Refusal]:
    if case.partition.purpose == "restricted":
        yield Refusal(
            kind="restricted",
            sentence=f"only invited users can use {case.where}",
            source=case.partition.source,
        )


def _launcher(case: Case) -> Iterator[Refusal]:
    launcher, scheduler = case.launcher, case.scheduler
    if not launcher.works_on(scheduler.name):
        owners = " and ".join(scheduler_of(own).title for own in sorted(launcher.schedulers))
        yield Refusal(
            kind="no_such_launcher",
            sentence=f"{launcher.name} works only with {owners}, but {case.cluster.title} uses "
            f"{scheduler.title}",
            source=case.cluster.dialect.source,
            instead=f"--launcher {'launch' if case.has_option_for_nodes else 'torchrun'}",
        )
    elif case.has_option_for_nodes and launcher.template("mpirun") is None:
        yield Refusal(
            kind="no_such_launcher",
            sentence=f"{launcher.name} cannot start on several nodes of {case.cluster.title}, "
            f"because {scheduler.title} starts the job's script on only one node",
            source=case.cluster.dialect.source,
            instead="--launcher launch",
        )


def _options_of_slurm(case: Case) -> Iterator[Refusal]:
    names = ("qos", "reservation", "licenses", "exclusive")
    known = case.scheduler.request_options
    requested = [name for name in names if getattr(case.request, name) and name not in known]
    if requested:
        options = ", ".join(f"--{name}" for name in requested)
        yield Refusal(
            kind="slurm_alone",
            sentence=f"only Slurm has {options}, but {case.cluster.title} uses "
            f"{case.scheduler.title}",
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
            sentence=f"the job needs GPUs with {wanted:g} GiB of memory, but {gpu.model} has "
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
    requested = counted(request.gpus, "GPU")
    most, minimum = least(partition.max_gpus, gpu.max_per_job), partition.min_gpus
    if most is not None and request.gpus > most:
        yield above("too_many_gpus", requested, f"{most} per job", source)
    if minimum is not None and request.gpus < minimum:
        yield below("too_few_gpus", requested, minimum, source)
    yield from _gpu_counts(case)


def _untyped(case: Case) -> Iterator[Refusal]:
    """Refuse GPUs without a type if the same request may get GPUs that have a type."""
    gpu = case.kind.gpu
    if gpu is None or gpu.typed or case.request.gpus == 0 or case.kind.constraint:
        return
    others = sorted({kind.gpu.type for kind in possible_kinds(case) if kind.gpu and kind.gpu.typed})
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
    nodes = f"each of {counted(shape.nodes, 'node')}" if shape.nodes > 1 else "one node"
    requested = f"{counted(count, 'GPU')} on {nodes}"
    if most is not None and count > most:
        needed, allowed = fewest_nodes(case.request.gpus, most), _most_nodes(case)
        source = partition.source if most == partition.max_gpus_per_node else kind.source
        instead = f"--nodes {needed}" if allowed is None or needed <= allowed else ""
        yield above("too_many_gpus_per_node", requested, f"{most} per node", source, instead)
    fewest = partition.min_gpus_per_node
    if fewest is not None and count < fewest:
        yield below("too_few_gpus_per_node", requested, f"{fewest} per node", partition.source)
    whole = kind.gpu.count if kind.gpu else None
    if partition.whole_nodes_if_several and shape.nodes > 1 and whole and count < whole:
        yield Refusal(
            kind="not_whole_nodes",
            sentence=f"the job requests {requested}; a job on several nodes in {case.where} must "
            f"use whole nodes, with {whole} GPUs each",
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
        sentence=f"the job requests {counted(gpus, 'GPU')}; jobs can have only "
        f"{' or '.join(allowed)}",
        source=partition.source,
        instead=_next_count(case, multiple) if multiple else "",
    )


def _next_count(case: Case, multiple: int) -> str:
    """Return the next number of GPUs that the partition accepts; empty if there is none."""
    count = math.ceil(case.request.gpus / multiple) * multiple
    nodes, most = _most_nodes(case), case.partition.max_gpus
    if nodes is not None and case.most_per_node is not None:
        most = min(nodes * case.most_per_node, most or nodes * case.most_per_node)
    return f"{count} GPUs" if most is None or count <= most else ""


def _nodes(case: Case) -> Iterator[Refusal]:
    partition, kind, nodes = case.partition, case.kind, case.shape.nodes
    requested, existing = counted(nodes, "node"), case.node_count
    if existing is not None and nodes > existing:
        existing = _nodes_of_possible_kinds(case)
    for most, source in ((_most_nodes(case), partition.source), (existing, kind.source)):
        if most is not None and nodes > most:
            more = partition.max_nodes_with_allocation
            prefixes = " or ".join(case.cluster.account.allocations)
            helps = more is not None and most < nodes <= more
            other = f"an account that begins with {prefixes} may have {more} nodes"
            instead = other if helps else ""
            yield above("too_many_nodes", requested, most, source, instead)
            return
    working = _nodes_in_service(case)
    if working is not None and nodes > working:
        yield Refusal(
            kind="nodes_out_of_service",
            sentence=f"the job requests {requested}; only {counted(working, 'such node')} in "
            f"{case.where} {'is' if working == 1 else 'are'} in service now",
            source="`sinfo`, read just now",
        )
    elif nodes < partition.min_nodes:
        yield below("too_few_nodes", requested, partition.min_nodes, partition.source)


def _nodes_of_possible_kinds(case: Case) -> int | None:
    """Return the number of nodes on which the scheduler may put the job. None: not documented.

    Node kinds with the same request are one kind to the scheduler.
    """
    total = 0
    for kind in possible_kinds(case):
        if not case.request.gpus and not kind.counts_nodes:
            continue
        count = case.partition.node_counts.get(kind.name, kind.count)
        if count is None:
            return None
        total += count
    return total


def _nodes_in_service(case: Case) -> int | None:
    """Return the number of nodes that accept such a job now. None: unknown."""
    if case.live is None or not case.live.nodes:
        return None
    # Node kinds with the same CPUs and GPUs are counted together.
    found: dict[tuple[int, tuple[str, ...]], int] = {}
    for kind in possible_kinds(case):
        count = in_service(case.partition, kind, case.live)
        if count is None:
            return None
        types = tuple(sorted(name for name, _ in kind.all_gpus))
        found[kind.cores * kind.threads_per_core, types] = count
    return sum(found.values())


def _time(case: Case) -> Iterator[Refusal]:
    partition, limits, requested_s = case.partition, case.limits, case.shape.time_s
    requested, source = f"a time of {format_duration(requested_s)}", partition.source
    if limits.time_s is not None and requested_s > limits.time_s:
        limit = f"{format_duration(limits.time_s)} ({limits.time_setter})"
        yield above("too_long", requested, limit, LIMITS_SOURCE)
    most = partition.max_time if limits.partition_time_applies else None
    if most and requested_s > seconds(most):
        yield above("too_long", requested, format_duration(seconds(most)), source)
    least_time = partition.min_time
    if least_time and requested_s < seconds(least_time):
        minimum = format_duration(seconds(least_time))
        yield below("too_short", requested, minimum, source, f"--time {least_time}")


_CHECKS = (
    _purpose,
    slurm_access,
    _launcher,
    _options_of_slurm,
    _untyped,
    _gpus,
    _nodes,
    _time,
    node_refusals,
    mask_refusals,
    grid_engine_refusals,
)
