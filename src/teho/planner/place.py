"""A request on one kind of node of one partition: the object that all limits and bills read."""

from __future__ import annotations

from functools import cache, cached_property

import msgspec

from teho.launchers.launcher import Launcher
from teho.launchers.registry import launcher_of
from teho.model.cluster import Automatic, Cluster, NodeKind, Partition, Share
from teho.model.member import Live
from teho.model.request import Request
from teho.planner.slurm_limits import Limits, limits_for
from teho.schedulers.registry import scheduler_of
from teho.schedulers.scheduler import Scheduler
from teho.units import least, parse_duration, parse_mib

__all__ = ["Case", "Place", "Shape", "in_words", "memory_mib", "seconds"]

seconds = cache(parse_duration)
"""`parse_duration` with a cache: a catalogue has few different limits and many plans."""
_mib = cache(parse_mib)


def memory_mib(text: str | None) -> int | None:
    """Return a catalogue's amount of memory in MiB. None: it has no amount."""
    return None if text is None else _mib(text)


def in_words(cluster: Cluster, partition: Partition) -> str:
    """Return how a sentence names a partition: `partition gpu`, `queue all.q`, or its label."""
    noun = scheduler_of(cluster.scheduler).partition_word
    return f"{noun} {partition.name}" if partition.name else partition.title


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A request laid out on one kind of node."""

    nodes: int
    gpus_per_node: int
    tasks_per_node: int
    cpus_per_task: int
    memory_mib: int | None
    """Per node. None: the job does not request memory."""
    time_s: float

    @property
    def cores_per_node(self) -> int:
        """Cores per node."""
        return self.tasks_per_node * self.cpus_per_task


class Place(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One request on one kind of node of one partition, before it is laid out."""

    request: Request
    cluster: Cluster
    partition: Partition
    kind: NodeKind
    live: Live | None = None
    """Present state of the scheduler. None: it was not asked."""

    @property
    def where(self) -> str:
        """The partition as `in_words` writes it."""
        return in_words(self.cluster, self.partition)

    @property
    def scheduler(self) -> Scheduler:
        """The cluster's scheduler."""
        return scheduler_of(self.cluster.scheduler)

    @property
    def launcher(self) -> Launcher:
        """The request's launcher."""
        return launcher_of(self.request.launcher)

    @property
    def state(self) -> str:
        """State of the partition now, such as `DRAIN`; `UP` if it is not known."""
        return (self.live.states or {}).get(self.partition.name, "UP") if self.live else "UP"

    @cached_property
    def share(self) -> Share | None:
        """The documented fair share for one GPU of this kind."""
        gpu = self.kind.gpu
        return next((s for s in self.cluster.shares if gpu and s.gpu == gpu.type), None)

    @cached_property
    def automatic(self) -> tuple[Automatic, ...]:
        """Resources that the site sets itself; the script must not request them."""
        found = {*self.partition.automatic, *(self.share.automatic if self.share else ())}
        none_named = self.cluster.dialect.memory == "none" or not self.kind.memory_is_named
        if none_named or self.has_option_for_nodes:
            found.add("memory")
        return tuple(sorted(found))

    @cached_property
    def limits(self) -> Limits:
        """Limits of QOS and associations."""
        return limits_for(self.request, self.cluster, self.partition, self.live)

    @property
    def most_per_node(self) -> int | None:
        """Maximum GPUs of a job on one node. None: not documented."""
        gpu, most = self.kind.gpu, self.partition.max_gpus_per_node
        return least(most, gpu.count, gpu.max_per_job) if gpu else least(most, 0)

    @property
    def node_count(self) -> int | None:
        """Nodes of this kind in the partition. None: not documented."""
        return self.partition.node_counts.get(self.kind.name, self.kind.count)

    @property
    def node_memory_mib(self) -> int | None:
        """Memory of a node. None: not documented."""
        return memory_mib(self.kind.memory)

    @property
    def job_nodes(self) -> int:
        """Number of nodes of the job."""
        return self.request.nodes or 1

    @property
    def has_option_for_nodes(self) -> bool:
        """Whether the site has an option for a job on this number of nodes, without GPUs."""
        option = self.cluster.dialect.several_nodes
        return bool(option) and self.job_nodes > 1 and not self.request.gpus

    @property
    def has_whole_nodes(self) -> bool:
        """Whether the job gets and pays for whole nodes, without other jobs on them."""
        return self.partition.exclusive or self.request.exclusive or self.has_option_for_nodes

    @property
    def most_cpus_of_whole_node(self) -> int | None:
        """Maximum CPUs per node that a job on whole nodes may request. None: no maximum.

        Slurm 22.05 counts the maximum memory of a CPU (MaxMemPerCPU) for each requested CPU,
        whatever `--mem` says, and refuses more than the node has.
        """
        each, whole = memory_mib(self.partition.max_memory_per_cpu), self.node_memory_mib
        return whole // each if each and whole else None

    def default_memory_is_too_much(self, gpus: int, kind: NodeKind | None = None) -> bool:
        """Return whether the default memory of these GPUs is more than a node has.

        If Slurm 22.05 allocates memory to jobs, it refuses such a job even if `--mem` requests
        less. It accepts `--mem-per-gpu`.

        Args:
            gpus: of one node.
            kind: of the node; None: the kind of this place.
        """
        default = memory_mib(self.partition.default_memory_per_gpu)
        whole, counted = memory_mib((kind or self.kind).memory), self.cluster.dialect
        return bool(
            counted.memory_is_counted and gpus and default and whole and default * gpus > whole
        )

    def most_cpus_with_memory_per_gpu(self, gpus: int) -> int | None:
        """Return the maximum CPUs per node if memory is requested per GPU. None: no maximum.

        Slurm 22.05 still compares the default memory of these CPUs with the node's memory.
        """
        each = memory_mib(self.partition.default_memory_per_cpu)
        whole = least(self.node_memory_mib, memory_mib(self.partition.max_memory))
        if not each or not whole or not self.default_memory_is_too_much(gpus):
            return None
        return whole // each


class Case(Place, frozen=True, kw_only=True, dict=True):
    """One request, laid out on one kind of node of one partition."""

    shape: Shape

    @property
    def job_nodes(self) -> int:
        """Number of nodes of the job."""
        return self.shape.nodes

    @property
    def memory_is_left_to_the_site(self) -> bool:
        """Whether the job requests no memory and no rule of the site gives a known amount."""
        named = self.shape.memory_mib is not None or "memory" in self.automatic
        return not named and not self.has_whole_nodes

    @property
    def default_memory_mib(self) -> int | None:
        """Memory per node if the site chooses it. None: the job requests it, or not documented."""
        each = memory_mib(self.cluster.dialect.default_memory_per_core)
        if not self.memory_is_left_to_the_site or each is None:
            return None
        return each * self.shape.cores_per_node

    @property
    def billed_memory_is_unknown(self) -> bool:
        """Whether the site bills memory and the job's amount is unknown."""
        billing = self.cluster.billing.get(self.partition.billing)
        counted = self.cluster.dialect.memory_is_counted
        if billing is None or counted is not None or not self.memory_is_left_to_the_site:
            return False
        terms = (*billing.sum, *billing.largest)
        return self.default_memory_mib is None and any(
            term.quantity == "memory_gib" for term in terms
        )
