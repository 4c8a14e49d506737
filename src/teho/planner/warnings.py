"""Warn of requests that the scheduler accepts and that waste time, money or resources."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import msgspec

from teho.launchers.registry import launchers
from teho.model.plan import Advice
from teho.planner.allocated import given_to
from teho.planner.cost import cost_of
from teho.planner.place import Case, Shape, memory_mib, seconds
from teho.planner.shape import fewest_nodes
from teho.units import counted, format_count, format_duration, format_mib, plural

__all__ = ["advice_for"]


def advice_for(case: Case) -> tuple[Advice, ...]:
    """Return the warnings for a request that fits."""
    return tuple(advice for check in _CHECKS for advice in check(case))


def _cluster(case: Case) -> Iterator[Advice]:
    cluster, partition = case.cluster, case.partition
    if cluster.status == "retired":
        yield Advice(
            kind="retired",
            sentence=f"{cluster.title} is out of service: no job can run there, and this plan is "
            "only an example",
            source=f"catalogue, verified on {cluster.verified_on.isoformat()}",
        )
    if partition.needs:
        yield Advice(
            kind="project_needs",
            sentence=f"only projects with {partition.needs} can use {case.where}",
            source=partition.source,
        )
    for place, words in (
        (cluster.dialect.submit_from, "submit the job from {}"),
        (cluster.dialect.never_submit_from, "do not submit the job from {}"),
    ):
        if place:
            yield Advice(
                kind="submit_from", sentence=words.format(place), source=cluster.dialect.source
            )


def _account(case: Case) -> Iterator[Advice]:
    account = case.cluster.account
    if account.required and not case.request.account:
        yield Advice(
            kind="account_missing",
            sentence=f"{case.cluster.title} requires an account, for example `--account "
            f"{account.example}`",
            source=account.source,
        )


def _time(case: Case) -> Iterator[Advice]:
    partition, shape = case.partition, case.shape
    if case.request.time_s is None and case.cluster.dialect.time_required:
        yield Advice(
            kind="time_not_said",
            sentence=f"{case.cluster.title} requires a time limit; without `--time`, the "
            f"job requests {format_duration(shape.time_s)}",
            source=case.cluster.dialect.source,
        )
    advised = partition.advised_min_time
    if advised and shape.time_s < seconds(advised):
        yield Advice(
            kind="short_job",
            sentence=f"{case.cluster.title} recommends jobs that run for "
            f"{format_duration(seconds(advised))} or more, and recommends shorter jobs only for "
            "tests",
            source=partition.source,
        )


def _launcher(case: Case) -> Iterator[Advice]:
    request, nodes = case.request, case.shape.nodes
    starts_tasks = case.scheduler.starts_tasks
    program = request.command[0].rpartition("/")[2] if request.command else ""
    is_one = case.launcher.starts_one(starts_tasks=starts_tasks, nodes=nodes)
    is_mpi = case.has_option_for_nodes and program in {"mpirun", "mpiexec"}
    if is_one and not is_mpi and max(request.gpus, nodes) > 1:
        what = f"{request.gpus} GPUs" if nodes == 1 else f"{nodes} nodes"
        rest = "GPUs" if request.gpus > 1 else "nodes"
        starters = "`--launcher torchrun`" + (" or `--launcher srun`" if starts_tasks else "")
        starters += " starts one process per GPU"
        if case.has_option_for_nodes:
            starters = "`-- mpirun COMMAND` starts one process on each core"
        yield Advice(
            kind="one_process_for_many",
            sentence=f"the job starts only one process for {what}. If the program does not start "
            f"more processes, the other {rest} stay idle. {starters}",
            source="CSC ml-multi.md 2026-08-20: simply reserving more GPUs isn't enough",
        )
    known = launchers().get(program)
    if known is not None and known.own_processes and case.shape.tasks_per_node > 1:
        yield Advice(
            kind="processes_twice",
            sentence=f"`--launcher {request.launcher}` starts {program} once per GPU, and each "
            f"{program} starts one process per GPU: use `--launcher {program} -- train.py`, "
            f"which starts {program} once per node",
            source="CSC ml-multi.md 2026-08-20: --ntasks-per-node=1 with torchrun and accelerate",
        )


def _spread(case: Case) -> Iterator[Advice]:
    request, most = case.request, case.most_per_node
    if request.nodes is not None or not request.gpus or not most:
        return
    fewest, even = math.ceil(request.gpus / most), fewest_nodes(request.gpus, most)
    if case.shape.nodes > even:
        yield Advice(
            kind="gpus_spread",
            sentence=f"this plan uses {case.shape.nodes} nodes for {request.gpus} GPUs and "
            f"{case.shape.cores_per_node * case.shape.nodes} cores, because a job on "
            f"{counted(even, 'node')} would exceed a limit; `--nodes {even}` shows this limit",
            source=case.kind.source,
        )
    elif case.shape.nodes > fewest:
        full = f"{(fewest - 1) * most} or {fewest * most}"
        yield Advice(
            kind="gpus_spread",
            sentence="all nodes of a job have the same number of GPUs, so "
            f"{request.gpus} GPUs need {case.shape.nodes} nodes, with "
            f"{counted(case.shape.gpus_per_node, 'GPU')} on each; a job of {full} GPUs uses {most} "
            "GPUs on each node",
            source="`man sbatch`: --gres and --gpus-per-node set the number of GPUs per node",
        )


def _share(case: Case) -> Iterator[Advice]:
    share, shape = case.share, case.shape
    if share is None or share.enforced or case.has_whole_nodes:
        return
    gpus = shape.gpus_per_node

    def excess(kind: str, requested: str, fair: str, fair_shape: Shape) -> Advice:
        what = kind.partition("_")[0]
        return Advice(
            kind=kind,
            sentence=f"the job requests {requested} for {counted(gpus, 'GPU')}, but this cluster "
            f"intends {fair} for {counted(gpus, 'GPU')}. Other GPUs of the node may stay "
            f"unused, because the job takes their {what}{_dearer(case, fair, fair_shape)}",
            source=share.source,
        )

    if share.cores and shape.cores_per_node > share.cores * gpus:
        cores = max(1, share.cores * gpus // shape.tasks_per_node)
        fair = msgspec.structs.replace(shape, cpus_per_task=cores)
        requested = f"{shape.cores_per_node} cores"
        yield excess("cores_above_share", requested, counted(share.cores * gpus, "core"), fair)
    memory, fair_mib = shape.memory_mib, (memory_mib(share.memory) or 0) * gpus
    if fair_mib and memory and memory > fair_mib:
        fair = msgspec.structs.replace(shape, memory_mib=fair_mib)
        requested = f"{format_mib(memory)} of memory"
        yield excess("memory_above_share", requested, f"{format_mib(fair_mib)} of memory", fair)


def _dearer(case: Case, fair: str, shape: Shape) -> str:
    """Return what the bill would be with the fair share; empty if it would be the same."""
    cost, less = cost_of(case), cost_of(msgspec.structs.replace(case, shape=shape))
    if cost is None or less is None or less.amount >= cost.amount:
        return ""
    return (
        f". With {fair}, the job costs {format_count(less.amount)} "
        f"{plural(less.unit, less.amount)} instead of {format_count(cost.amount)}"
    )


def _memory(case: Case) -> Iterator[Advice]:
    request, nodes = case.request, case.shape.nodes
    requested = request.memory_mib
    relative = request.memory_per_core_mib is not None or request.memory_per_gpu_mib is not None
    if requested is not None and nodes > 1 and not relative:
        yield Advice(
            kind="memory_is_per_node",
            sentence=f"`--mem` is per node: {format_mib(requested)} on each of {nodes} nodes, "
            f"{format_mib(requested * nodes)} in all",
            source="`man sbatch`: --mem is the memory required per node",
        )


def _fair_memory(case: Case) -> Iterator[Advice]:
    """Say where the memory comes from that the user did not request."""
    share, request = case.share, case.request
    if request.memory_mib is not None or not request.gpus or case.shape.memory_mib is None:
        return
    if share is None or share.memory is None or case.has_whole_nodes or "memory" in case.automatic:
        return
    for_each = memory_mib(share.memory) or 0
    is_capped = case.shape.memory_mib < for_each * case.shape.gpus_per_node
    given = (
        f"all {format_mib(case.shape.memory_mib)} of memory of the node"
        if is_capped
        else f"{format_mib(for_each)} of memory for each GPU"
    )
    yield Advice(
        kind="memory_is_share",
        sentence=f"without `--mem`, the job gets {given}; if the program needs less, "
        "request less with `--mem`",
        source=share.source,
    )


def _default_memory(case: Case) -> Iterator[Advice]:
    """Warn of a job that does not request memory, if the default is small or unknown."""
    cluster, partition = case.cluster, case.partition
    default = case.default_memory_mib
    if default is not None:
        yield Advice(
            kind="default_memory",
            sentence=f"without `--mem`, the job gets {format_mib(default)} of memory on each node",
            source=cluster.dialect.source,
        )
    elif case.billed_memory_is_unknown:
        yield Advice(
            kind="default_memory_not_documented",
            sentence=(
                "without `--mem`, the cluster chooses the memory; the cost shown here does "
                "not include the memory"
            ),
            source=cluster.billing[partition.billing].source,
        )


def _given(case: Case) -> Iterator[Advice]:
    """Warn if the job gets more cores than requested, or uses GPU nodes without GPUs."""
    request, partition, shape = case.request, case.partition, case.shape
    cores = given_to(case).cores
    if cores is not None and cores > shape.cores_per_node and not case.has_whole_nodes:
        yield Advice(
            kind="whole_sockets",
            sentence=f"{case.cluster.title} allocates whole sockets: the job requests "
            f"{counted(shape.cores_per_node, 'core')} and gets {cores} on each node",
            source=case.cluster.dialect.source,
        )
    requested = request.cpus_per_gpu and request.cpus_per_gpu * shape.gpus_per_node
    requested = requested or (request.cpus and math.ceil(request.cpus / shape.nodes))
    each = partition.max_memory_per_cpu
    if requested and each and shape.cores_per_node >= requested + shape.tasks_per_node:
        yield Advice(
            kind="cores_for_memory",
            sentence=f"the job gets {shape.cores_per_node} cores instead of {requested}, because "
            f"it requests more than {format_mib(memory_mib(each) or 0)} of memory per CPU",
            source=partition.source,
        )
    if not request.gpus and case.kind.gpu:
        yield Advice(
            kind="gpu_nodes_without_gpus",
            sentence=f"these nodes have {case.kind.gpu.type} GPUs; a job without GPUs uses cores "
            "that GPU jobs need",
            source=case.kind.source,
        )


def _exclusive(case: Case) -> Iterator[Advice]:
    gpu, partition = case.kind.gpu, case.partition
    if case.has_whole_nodes and gpu and gpu.count and case.shape.gpus_per_node < gpu.count:
        cost = cost_of(case)
        is_charged = cost is None or cost.unit != ""
        yield Advice(
            kind="whole_nodes_billed",
            sentence=f"{case.where} gives only whole nodes: the job needs "
            f"{counted(case.shape.gpus_per_node, 'GPU')} per node, but gets "
            f"{'and pays for ' * is_charged}{counted(gpu.count, 'GPU')}",
            source=partition.source,
        )


def _energy(case: Case) -> Iterator[Advice]:
    gpu = case.kind.gpu
    if gpu is None or gpu.per_energy_counter == 1 or not case.shape.gpus_per_node:
        return
    if case.has_whole_nodes or case.shape.gpus_per_node == gpu.count:
        return
    yield Advice(
        kind="energy_is_shared",
        sentence=f"{gpu.per_energy_counter} GPUs share one energy counter, so the measured energy "
        "may include the energy of other jobs; on whole nodes, the measured energy is only the "
        "energy of this job",
        source=case.kind.source,
    )


def _disk(case: Case) -> Iterator[Advice]:
    disk, request = case.cluster.local_disk, case.request
    if disk is None or not _uses((*request.lines, *request.command), disk.variable):
        return
    if disk.in_memory:
        yield Advice(
            kind="local_disk_is_memory",
            sentence=f"on these nodes, ${disk.variable} is in memory: files in this folder count "
            "as memory of the job",
            source=disk.source,
        )
    if disk.only_if_asked and request.local_disk_gib is None:
        yield Advice(
            kind="local_disk_not_asked",
            sentence=f"the job uses ${disk.variable}, which exists only if the job requests local "
            "disk, for example `--local-disk 100GiB`",
            source=disk.source,
        )


def _uses(words: tuple[str, ...], variable: str) -> bool:
    if not words or not variable:
        return False
    return re.search(rf"\$(?:{variable}\b|\{{{variable}\b)", " ".join(words)) is not None


def _not_documented(case: Case) -> Iterator[Advice]:
    cluster, partition, gpu = case.cluster, case.partition, case.kind.gpu
    limits = [name.replace("_", " ") for name in partition.unknown if name != "billing"]
    if limits:
        yield Advice(
            kind="limit_not_documented",
            sentence=f"{cluster.title} does not document all limits of {case.where} (missing: "
            f"{', '.join(limits)}), so the scheduler may still refuse the job",
            source=partition.source,
        )
    if "billing" in partition.unknown:
        yield Advice(
            kind="cost_not_documented",
            sentence=f"{cluster.title} does not document what a job in {case.where} costs",
            source=partition.source,
        )
    wanted = case.request.gpu_memory_gib
    if wanted and gpu and gpu.memory_gib is None:
        yield Advice(
            kind="gpu_memory_not_documented",
            sentence=f"the job needs GPUs with {wanted:g} GiB of memory; the memory of "
            f"{gpu.model} is not documented",
            source=case.kind.source,
        )


_CHECKS = (
    _cluster,
    _account,
    _time,
    _launcher,
    _spread,
    _share,
    _memory,
    _fair_memory,
    _default_memory,
    _given,
    _exclusive,
    _energy,
    _disk,
    _not_documented,
)
