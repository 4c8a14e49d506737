"""Compute what a recorded job cost in the units of its cluster, and the part that was not used.

A recording does not have everything that a site bills. If a figure is missing, there is no bill,
but a sentence that says what is missing.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path

import msgspec

from teho.clusters.billing import BilledUse, bill
from teho.clusters.catalogue import cluster_files, read_cluster
from teho.clusters.current import current_cluster
from teho.clusters.gpu_model import is_same_model
from teho.errors import InputError
from teho.explain.totals import cores_used, mean_of
from teho.model.allocation import Allocation
from teho.model.cluster import Cluster, NodeKind, Partition
from teho.model.missing import Missing, Reason
from teho.model.plan import Cost
from teho.model.run import Node, Run
from teho.model.summary import Figure, PartlyKnown, Stat, Summary
from teho.planner.place import in_words, memory_mib
from teho.schedulers.hostlist import expand_counts, expand_hosts
from teho.schedulers.registry import scheduler_or_none
from teho.schedulers.variables import Variables
from teho.units import GIB, counted

__all__ = ["RunBill", "bill_of", "cluster_of"]

_COVERED_MIN = 0.9
"""Part of the run for which each GPU must be recorded: the rest is not judged."""
_BUSY = "gpu_busy_percent"


class RunBill(msgspec.Struct, frozen=True, kw_only=True):
    """What a run cost on its cluster."""

    cluster: str
    """Title of the cluster."""
    cost: Cost | Missing
    """For the time of the run. Missing: `detail` says what is not known."""
    unused: Figure
    """Units for the time in which the GPUs, or else the cores, were not used."""
    unused_is_of: str = ""
    """`GPUs` or `cores`."""
    at_limit: Figure | None = None
    """Units if the run continues until the time limit of its job; None: no limit is known."""
    notes: tuple[str, ...] = ()


class _NotKnownError(Exception):
    """A figure that the site bills is not in the recording; the text says which."""


def bill_of(run: Run, summary: Summary) -> RunBill | None:
    """Compute the bill of a run; None: it was not a job, or its cluster is not known."""
    allocation = _allocation_of_job(run)
    if allocation is None:
        return None
    try:
        cluster = cluster_of(run)
    except InputError as error:
        return _unknown(allocation.cluster or "", error.found)
    if cluster is None or cluster.scheduler != allocation.scheduler:
        return None
    used: _Used | None = None
    costs: dict[tuple[float, str], Cost] = {}
    try:
        for used in _possible(run, cluster, allocation):
            cost = used.cost(summary.elapsed_s)
            costs.setdefault((round(cost.amount, 9), cost.unit), cost)
    except _NotKnownError as error:
        return _unknown(cluster.title, str(error))
    if used is None:
        where = f"partition {allocation.partition}" if allocation.partition else "a partition"
        return _unknown(
            cluster.title,
            f"Teho's catalogue does not have {where} with nodes like the nodes of this run",
        )
    if len(costs) > 1:
        return _unknown(
            cluster.title,
            "several bills are possible, because the recording does not show on which kind of "
            "node the job ran, or how its cores are counted",
        )
    (cost,) = costs.values()
    unused, resource = _unused(run, summary, used, cost)
    return RunBill(
        cluster=cluster.title,
        cost=cost,
        unused=unused,
        unused_is_of=resource,
        at_limit=used.cost(run.limit_s).amount if run.limit_s else None,
        notes=tuple(used.notes()),
    )


def _unknown(title: str, why: str) -> RunBill:
    missing = Missing(Reason.UNRECORDED, why)
    note = f"The cost of this run on {title} is not known: {why}."
    return RunBill(cluster=title, cost=missing, unused=missing, notes=(note,))


def _allocation_of_job(run: Run) -> Allocation | None:
    return next((node.allocation for node in run.nodes if node.allocation.job_id), None)


def cluster_of(run: Run) -> Cluster | None:
    """Return the cluster on which a job ran; None: no job, or the catalogue does not have it.

    Raises:
        InputError: the file of the cluster has a mistake.
    """
    allocation = _allocation_of_job(run)
    if allocation is None:
        return None
    files = cluster_files()
    if allocation.cluster in files:
        return _read(files[allocation.cluster])
    known = []
    for path in files.values():
        with contextlib.suppress(InputError):  # `teho clusters check` names the mistake
            known.append(_read(path))
    # A cluster that Teho discovered is recognised by the name that its scheduler gives it.
    named = [one for one in known if set(one.recognised_by.values()) == {allocation.cluster}]
    if len(named) == 1:
        return named[0]
    return current_cluster(run.environment, run.host, known)


@cache
def _read(path: Path) -> Cluster:
    """Read a file of the catalogue once, also for the reports of many runs."""
    return read_cluster(path)


class _Used(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a job on one kind of node of one partition."""

    run: Run
    cluster: Cluster
    partition: Partition
    kind: NodeKind
    threads: int
    """CPUs that the scheduler counts for each core."""

    @property
    def has_gpus(self) -> bool:
        """Whether the job is billed as one with GPUs."""
        allocated = [node.allocation.gpus_held for node in self.run.nodes]
        return self.kind.gpu is not None and (self.partition.exclusive or any(allocated))

    def cost(self, elapsed_s: float) -> Cost:
        """Return the bill. Raises `_NotKnownError` if a figure is missing."""
        partition = self.partition
        if not partition.billing:
            if "billing" in partition.unknown:
                raise _NotKnownError(
                    f"it is not documented how {self.cluster.title} bills "
                    f"{in_words(self.cluster, partition)}"
                )
            return Cost(amount=0.0, unit="", sum="", source=partition.source)
        billing = self.cluster.billing[partition.billing]
        needed = {term.quantity for term in (*billing.sum, *billing.largest)}
        self._check_nodes(needed)
        use = BilledUse(
            nodes=self.node_count,
            gpus=self.gpus() if needed & {"gpus", "weighted_gpus"} else (),
            gpu_weight=self.kind.gpu.weight if self.kind.gpu else 1.0,
            cores=self.cores() if "cores" in needed else 0,
            cpus=self.cores() * self.threads if "cpus" in needed else 0,
            memory_gib=self.memory_gib() if "memory_gib" in needed else 0.0,
            hours=elapsed_s / 3600,
        )
        return bill(billing, use)

    def _check_nodes(self, needed: AbstractSet[str]) -> None:
        absent = self.node_count - len(self.run.nodes)
        if absent > 0 and not self.partition.exclusive and needed != {"nodes"}:
            raise _NotKnownError(f"{counted(absent, 'node')} of the job left no recording")

    @property
    def node_count(self) -> int:
        """Nodes of the job."""
        known = (node.allocation.node_count or 0 for node in self.run.nodes)
        return max(len(self.run.nodes), *known)

    def gpus(self) -> tuple[tuple[str, int], ...]:
        """Return the GPUs of the job on all its nodes, each type with its count."""
        if self.partition.exclusive:
            found = []
            for name, count in self.kind.all_gpus:
                if count is None:
                    raise _NotKnownError(
                        f"the number of GPUs of a node ({self.kind.name}) is not documented"
                    )
                found.append((name, count * self.node_count))
            return tuple(sorted(found))
        total = sum(_gpus_of(node) for node in self.run.nodes)
        return ((self.kind.gpu.type, total),) if self.kind.gpu and total else ()

    def cores(self) -> int:
        """Return the cores of the job on all its nodes."""
        if self.partition.exclusive:
            return self.kind.cores_for_jobs * self.node_count
        return sum(math.ceil(_cpus_of(self.run, node) / self.threads) for node in self.run.nodes)

    def memory_gib(self) -> float:
        """Return the memory of the job on all its nodes."""
        counts = self.cluster.dialect.memory_is_counted
        if counts is False:
            return 0.0
        if counts is None and self.partition.exclusive:
            each = memory_mib(self.kind.memory)
            if each is None:
                raise _NotKnownError(f"the memory of a node ({self.kind.name}) is not documented")
            return each / 1024 * self.node_count
        if self.node_count > len(self.run.nodes):
            raise _NotKnownError("some nodes of the job left no recording")
        return math.fsum(self._memory_of(node) for node in self.run.nodes)

    def _memory_of(self, node: Node) -> float:
        allocation = node.allocation
        amount = _requested_bytes(self.run, node)
        if amount is None and allocation.memory_limit_source != "node":
            amount = allocation.memory_limit_bytes
        if amount is not None:
            return amount / GIB
        gpu_type = self.kind.gpu.type if self.kind.gpu else ""
        share = next((one for one in self.cluster.shares if one.gpu == gpu_type), None)
        if share and share.memory and "memory" in {*share.automatic, *self.partition.automatic}:
            return (memory_mib(share.memory) or 0) / 1024 * _gpus_of(node)
        each = memory_mib(self.cluster.dialect.default_memory_per_core)
        if each is not None and allocation.memory_limit_source != "node":
            return each / 1024 * math.ceil(_cpus_of(self.run, node) / self.threads)
        raise _NotKnownError("the recording does not say how much memory the job requested")

    def notes(self) -> Iterator[str]:
        """Yield what the bill does not include."""
        billing = self.cluster.billing.get(self.partition.billing)
        terms = (*billing.sum, *billing.largest) if billing else ()
        if any(term.quantity == "local_disk_gib" for term in terms):
            yield (
                "The cost does not include local disk: a recording does not say how much local "
                "disk the job requested."
            )


def _gpus_of(node: Node) -> int:
    allocated = node.allocation.gpus_held
    if allocated is None and node.devices:
        raise _NotKnownError(f"the recording does not say how many GPUs the job had on {node.name}")
    return allocated or 0


def _cpus_of(run: Run, node: Node) -> int:
    """Return the CPUs of the job on a node, as the scheduler counts them.

    A step can have fewer CPUs than its job, which is billed.
    """
    with contextlib.suppress(InputError, ValueError, IndexError):
        counts = expand_counts(run.environment.get("SLURM_JOB_CPUS_PER_NODE", ""))
        if len(set(counts)) == 1:
            return counts[0]
        hosts = expand_hosts(node.allocation.node_list or "")
        return counts[hosts.index(node.name.partition(".")[0])]
    if node.allocation.cores_asked is None or (node.allocation.step_id or "").isdecimal():
        raise _NotKnownError(
            f"the recording does not say how many cores the job had on {node.name}"
        )
    return node.allocation.cores_asked


def _requested_bytes(run: Run, node: Node) -> int | None:
    """Return the memory that the job requested on a node; None: not known, or all of the node.

    The limit of the recording may be smaller: it is the smallest of several limits.
    """
    with contextlib.suppress(_NotKnownError):
        given = {**run.environment, "SLURM_CPUS_ON_NODE": str(_cpus_of(run, node))}
        scheduler = scheduler_or_none(node.allocation.scheduler)
        found = scheduler.allocation(Variables(given))
        return found[1] if found else None
    return None


def _possible(run: Run, cluster: Cluster, allocation: Allocation) -> Iterator[_Used]:
    """Yield every kind of node of the job's partition that fits the recording."""
    kinds = {kind.name: kind for kind in cluster.nodes}
    named = [one for one in cluster.partitions if one.name and one.name == allocation.partition]
    # On some sites, jobs do not name the partition, and the catalogue has labels of its own.
    for partition in named or [one for one in cluster.partitions if not one.name]:
        for kind in map(kinds.__getitem__, partition.kinds):
            if _fits(run, partition, kind):
                for threads in _threads(run, kind):
                    yield _Used(
                        run=run, cluster=cluster, partition=partition, kind=kind, threads=threads
                    )


def _fits(run: Run, partition: Partition, kind: NodeKind) -> bool:
    allocated = max((node.allocation.gpus_held or 0 for node in run.nodes), default=0)
    devices = [device for node in run.nodes for device in node.devices]
    gpu = kind.gpu
    if gpu is None:
        return allocated == 0 and not devices
    if allocated == 0 and not devices:
        return partition.takes_cpu_jobs or partition.exclusive
    if gpu.count is not None and allocated > gpu.count:
        return False
    if allocated and gpu.max_per_job is not None and allocated > gpu.max_per_job:
        return False
    return all(is_same_model(gpu, device) for device in devices)


def _threads(run: Run, kind: NodeKind) -> tuple[int, ...]:
    """Return the numbers of CPUs that the scheduler may count for a core.

    If the catalogue has one, but the node has twice as many CPUs as cores, two are possible too.
    """
    if kind.threads_per_core > 1:
        return (kind.threads_per_core,)
    for node in run.nodes:
        asked, recorded = node.allocation.cores_asked, len(node.cores)
        if node.core_count_node == 2 * kind.cores or (recorded and asked == 2 * recorded):
            return (1, 2)
    return (1,)


def _unused(run: Run, summary: Summary, used: _Used, cost: Cost) -> tuple[Figure, str]:
    """Return the units for what was not used, and whether they are of GPUs or of cores."""
    if used.has_gpus:
        return _times(cost, _gpu_share(summary, used)), "GPUs"
    busy, cores = cores_used(run, summary), sum(node.cores for node in summary.nodes)
    if isinstance(busy, Missing) or not cores:
        busy = busy if isinstance(busy, Missing) else Missing(Reason.UNRECORDED)
        return busy, "cores"
    return _times(cost, busy / cores), "cores"


def _times(cost: Cost, share: Figure) -> Figure:
    if isinstance(share, Missing):
        return share
    return cost.amount * max(0.0, 1.0 - share)


def _gpu_share(summary: Summary, used: _Used) -> Figure:
    """Return the mean utilisation of all GPUs of the job, from 0 to 1."""
    try:
        count = sum(number for _, number in used.gpus())
    except _NotKnownError as error:
        return Missing(Reason.UNRECORDED, str(error))
    stats = [gpu.stats.get(_BUSY) for gpu in summary.gpus]
    seen = [
        stat
        for stat in stats
        if isinstance(stat, (Stat, PartlyKnown))
        and stat.covered_s >= _COVERED_MIN * summary.elapsed_s
    ]
    if not len(seen) == len(stats) == count:
        unseen = f"the utilisation was recorded for {len(seen)} of {counted(count, 'GPU')}"
        return Missing(Reason.UNRECORDED, unseen)
    busy = mean_of(summary.gpus, _BUSY)
    return busy if isinstance(busy, Missing) else busy / 100
