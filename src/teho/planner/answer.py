"""Compare a request with the catalogue: what fits, cheapest first, and why the rest does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from teho.config.toml import did_you_mean
from teho.errors import InputError
from teho.model.cluster import Cluster, Gpu, NodeKind, Partition
from teho.model.member import Live
from teho.model.plan import Answer, Option, Refusal, Unfit
from teho.model.request import Request
from teho.planner.allocated import cpus_per_core, given_to, unsure_cores
from teho.planner.cost import cost_of
from teho.planner.grid_engine_rules import environment_of, unknown_to_grid_engine
from teho.planner.limits import refusals_of
from teho.planner.place import Case, Place, in_words, memory_mib, seconds
from teho.planner.resource_limits import unsure_limits
from teho.planner.shape import lay_out, node_counts
from teho.planner.slurm_access import unknown_to_slurm
from teho.planner.warnings import advice_for

__all__ = ["answer", "kinds_for", "option_of"]

_NOTHING_LIVE: Mapping[str, Live] = {}


class _Planned(msgspec.Struct, frozen=True):
    """The result for one partition."""

    partition: Partition
    options: tuple[Option, ...]
    refusals: tuple[Refusal, ...]


def answer(
    request: Request,
    clusters: Iterable[Cluster],
    *,
    even_if_retired: bool = False,
    live: Mapping[str, Live] = _NOTHING_LIVE,
    preferred: Sequence[str] = (),
) -> Answer:
    """Return every option that fits and, for everything else, the limits that it breaks.

    Clusters bill in different units, so the options are grouped by cluster. In a group, the
    cheapest come first, test and interactive partitions last. The preferred clusters come first,
    then the others: the cluster whose first option has the GPU with the least memory comes first.
    Retired clusters come last.

    Args:
        request: what the program needs.
        clusters: the clusters to consider.
        even_if_retired: plan for retired clusters too, as an example.
        live: present state of schedulers, by cluster.
        preferred: names of the clusters to put first, in this order.

    Raises:
        InputError: a number of the request is impossible, such as 0 nodes.
    """
    _check(request)
    groups: list[list[Option]] = []
    unfit: list[Unfit] = []
    retired: set[str] = set()
    for cluster in clusters:
        if cluster.status == "retired":
            retired.add(cluster.name)
            if not even_if_retired:
                unfit.append(_retired(cluster))
                continue
        fitting, failing = _of_cluster(request, cluster, live.get(cluster.name))
        groups += [fitting] if fitting else []
        unfit += failing

    def order(group: list[Option]) -> tuple[bool, int, float, str]:
        first = group[0]
        name = first.cluster
        preference = preferred.index(name) if name in preferred else len(preferred)
        return name in retired, preference, _or_last(first.gpu_memory_gib), name

    groups.sort(key=order)
    options = tuple(option for group in groups for option in group)
    return Answer(options=options, unfit=tuple(unfit))


def _check(request: Request) -> None:
    for name, least in (("gpus", 0), ("nodes", 1), ("cpus_per_gpu", 1), ("cpus", 1)):
        number = getattr(request, name)
        if number is not None and number < least:
            raise InputError(f"{name.replace('_', ' ')}: {number}", f"{least} or more")
    for name in ("gpu_memory_gib", "memory_mib", "time_s", "local_disk_gib"):
        amount = getattr(request, name)
        if amount is not None and not 0 < amount < math.inf:
            raise InputError(
                f"{name.rsplit('_', 1)[0].replace('_', ' ')}: {amount:g}", "more than 0"
            )


def _or_last(value: float | None) -> float:
    return math.inf if value is None else value


def _retired(cluster: Cluster) -> Unfit:
    when = f" on {cluster.retired_on.isoformat()}" if cluster.retired_on else ""
    refusal = Refusal(
        kind="retired",
        sentence=f"{cluster.title} was retired{when}",
        source=f"catalogue, verified on {cluster.verified_on.isoformat()}",
        instead=f"--cluster {cluster.successor}" if cluster.successor else "",
    )
    return Unfit(cluster=cluster.name, partition="", refusals=(refusal,))


def _of_cluster(
    request: Request, cluster: Cluster, live: Live | None
) -> tuple[list[Option], list[Unfit]]:
    misnamed = _misnamed(request.partition, cluster)
    if misnamed is not None:
        named = request.partition or ""
        return [], [Unfit(cluster=cluster.name, partition=named, label=named, refusals=(misnamed,))]
    # All partitions are planned, not only the requested one: a refusal names one that fits.
    planned = [_plan(request, cluster, partition, live) for partition in cluster.partitions]
    kinds = {kind.name: kind for kind in cluster.nodes}
    ranks = [
        (_rank(one.partition, kinds[option.node_kind], option), option)
        for one in planned
        for option in one.options
    ]
    ranked = [option for _, option in sorted(ranks, key=lambda pair: pair[0])]
    requested = [one for one in planned if request.partition in {None, one.partition.name}]
    unfit = [
        Unfit(
            cluster=cluster.name,
            partition=one.partition.name,
            label=one.partition.title,
            refusals=tuple(_elsewhere(one, ranked, request, cluster)),
        )
        for one in requested
        if not one.options
    ]
    return [option for option in ranked if request.partition in {None, option.partition}], unfit


def _misnamed(named: str | None, cluster: Cluster) -> Refusal | None:
    """Return why a job must not name this partition; None if it may."""
    names = [partition.name for partition in cluster.partitions if partition.name]
    if named is None or (cluster.dialect.partition != "never" and named in names):
        return None
    labels = {partition.label for partition in cluster.partitions if not partition.name}
    if cluster.dialect.partition == "never" or named in labels:
        return Refusal(
            kind="partition_named",
            sentence=f"the job names partition {named!r}, but {cluster.title} chooses the "
            "partition itself",
            source=cluster.dialect.source,
            instead="leave --partition out",
        )
    return Refusal(
        kind="no_such_partition",
        sentence=f"{cluster.title} has no partition {named!r}{did_you_mean(named, names)}",
        source=cluster.dialect.source,
    )


def _rank(partition: Partition, kind: NodeKind, option: Option) -> tuple[Any, ...]:
    """Return the sort key of an option of a cluster: the cheapest first, then the smallest.

    Large nodes, and partitions for many nodes or long jobs, come last: other jobs need them.
    """
    limit = partition.max_time
    return (
        partition.purpose != "production",
        partition.needs != "",
        kind.gpu is not None and not option.gpu_type,
        _or_last(option.cost.amount if option.cost else None),
        _or_last(option.gpu_memory_gib),
        option.constraint != "",
        _or_last(memory_mib(kind.memory)),
        _or_last(seconds(limit) if limit else None),
        _or_last(partition.max_nodes),
        option.label,
        option.node_kind,
    )


def _elsewhere(
    planned: _Planned, ranked: list[Option], request: Request, cluster: Cluster
) -> Iterator[Refusal]:
    """Yield the refusals, each with a partition that fits, if there is one."""
    others = (option.partition for option in ranked if option.partition != planned.partition.name)
    other = next(others, None)
    if other:
        instead = f"--partition {other}"
    else:
        drop = other == "" and request.partition and cluster.dialect.partition == "optional"
        instead = "leave --partition out" if drop else ""
    yield from (_with_instead(refusal, instead) for refusal in planned.refusals)


def _with_instead(refusal: Refusal, instead: str) -> Refusal:
    """Return a refusal with a proposal, if it has none yet."""
    return msgspec.structs.replace(refusal, instead=refusal.instead or instead)


def _plan(request: Request, cluster: Cluster, partition: Partition, live: Live | None) -> _Planned:
    options: dict[Option, Option] = {}
    refused: dict[Refusal, None] = {}
    cases = list(_cases(request, cluster, partition, live))
    for case, refusals in cases:
        if refusals:
            refused.update(dict.fromkeys(refusals))
        else:
            option = option_of(case)
            # Node kinds with the same request are one option.
            alike = msgspec.structs.replace(option, node_kind="") if len(cases) > 1 else option
            options.setdefault(alike, option)
    if not cases:
        refused[_no_such_nodes(request, cluster, partition)] = None
    elif refused and not options:
        instead = _under_another_name(request, cluster, partition, live)
        refused = {_with_instead(refusal, instead): None for refusal in refused}
    return _Planned(partition, tuple(options.values()), tuple(refused))


def _under_another_name(
    request: Request, cluster: Cluster, partition: Partition, live: Live | None
) -> str:
    """Return the option for another account or QOS of the user that fits; empty: none."""
    if live is None or not live.associations:
        return ""
    accounts = {one.account: None for one in live.associations}
    qos = {name: None for one in live.associations for name in one.qos}
    for key, names in (("qos", qos), ("account", accounts)):
        for name in names:
            other = msgspec.structs.replace(request, **{key: name})
            if not all(refusals for _, refusals in _cases(other, cluster, partition, live)):
                return f"--{key} {name}"
    return ""


def _cases(
    request: Request, cluster: Cluster, partition: Partition, live: Live | None
) -> Iterator[tuple[Case, tuple[Refusal, ...]]]:
    """Yield the request on each kind of node that it may use, with its refusals there."""
    for kind in kinds_for(request, cluster, partition):
        yield _fit(
            Place(request=request, cluster=cluster, partition=partition, kind=kind, live=live)
        )


def _fit(place: Place) -> tuple[Case, tuple[Refusal, ...]]:
    """Lay a request out on the fewest nodes on which it fits; if it fits on none, on the fewest."""
    cases: list[tuple[Case, tuple[Refusal, ...]]] = []
    for nodes in node_counts(place):
        case = lay_out(place, nodes)
        cases.append((case, refusals_of(case)))
        if not cases[-1][1]:
            return cases[-1]
        if case.has_whole_nodes and place.request.gpus:
            break  # the job would pay for more whole nodes; fewer cores per GPU are cheaper
    return cases[0]


def kinds_for(request: Request, cluster: Cluster, partition: Partition) -> Iterator[NodeKind]:
    """Yield the node kinds of a partition that have the requested GPUs, or no GPUs."""
    for kind in cluster.nodes:
        if kind.name not in partition.kinds:
            continue
        gpu, wanted = kind.gpu, request.gpu_type
        if request.gpus == 0 or gpu is None:
            takes = gpu is None or partition.takes_cpu_jobs
            fits = request.gpus == 0 and kind.counts_nodes and takes
        elif wanted is None:
            fits = _is_meant(request, gpu)
        else:
            fits = wanted.lower() in {gpu.type.lower(), gpu.model.lower()}
        if fits:
            yield kind


def _is_meant(request: Request, gpu: Gpu) -> bool:
    """Return whether a request without a GPU type may get these GPUs.

    A slice is for one process, so the request must be for one GPU with a given memory. A GPU that
    may be a slice must be requested by its type.
    """
    if gpu.part_of:
        return request.gpus == 1 and request.gpu_memory_gib is not None
    return not gpu.may_be_slice


def _no_such_nodes(request: Request, cluster: Cluster, partition: Partition) -> Refusal:
    instead, where = "", in_words(cluster, partition)
    if request.gpus == 0:
        sentence = f"the job requests no GPU, and {where} accepts only GPU jobs"
    else:
        gpus = [kind.gpu for kind in cluster.nodes if kind.name in partition.kinds and kind.gpu]
        types = sorted({gpu.type for gpu in gpus})
        have = f"has only {', '.join(types)}" if types else "has none"
        what = f"GPUs of type {request.gpu_type}" if request.gpu_type else "whole GPUs"
        sentence = f"the job requests {what}, and {where} {have}"
        unsure = sorted({gpu.type for gpu in gpus if gpu.may_be_slice})
        if unsure and not request.gpu_type:
            sentence += "; the type's name does not show whether these are whole GPUs or slices"
            instead = f"--gpu-type {unsure[0]}"
    return Refusal(
        kind="no_such_nodes", sentence=sentence, source=partition.source, instead=instead
    )


def option_of(case: Case) -> Option:
    """Return the request as an option, even if it does not fit (see `refusals_of`)."""
    request, kind, shape = case.request, case.kind, case.shape
    gpu = kind.gpu if request.gpus else None
    requested = cpus_per_core(case)
    return Option(
        cluster=case.cluster.name,
        scheduler=case.cluster.scheduler,
        partition=case.partition.name,
        label=case.partition.title,
        node_kind=kind.name,
        constraint=kind.constraint,
        nodes=shape.nodes,
        gpus_per_node=shape.gpus_per_node,
        gpu_type=gpu.type if gpu else "",
        gpu_is_typed=gpu.typed if gpu else True,
        gpu_memory_gib=gpu.memory_gib if gpu else None,
        tasks_per_node=shape.tasks_per_node,
        cpus_per_task=shape.cpus_per_task,
        parallel_environment=environment_of(case),
        gpus_named=shape.gpus_per_node // shape.cores_per_node if gpu and gpu.per_slot else None,
        cpus_per_core=requested.cpus,
        one_thread=requested.one_thread,
        memory_mib=shape.memory_mib,
        memory_per_gpu=case.default_memory_is_too_much(shape.gpus_per_node),
        given=given_to(case),
        automatic=case.automatic,
        local_disk_gib=request.local_disk_gib,
        time_s=shape.time_s,
        account=request.account or "",
        cost=cost_of(case),
        advice=advice_for(case),
        unknown=(
            *unknown_to_slurm(case),
            *unsure_cores(case),
            *unsure_limits(case),
            *unknown_to_grid_engine(case),
        ),
        request=request,
    )
