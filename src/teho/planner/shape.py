"""How a request is spread over nodes: GPUs a node, tasks, cores, memory, time."""

from __future__ import annotations

import math
from functools import cache

import msgspec

from teho.launchers.registry import launcher_of
from teho.model.cluster import Automatic, Cluster, NodeKind, Partition, Share
from teho.model.member import Live
from teho.model.request import DEFAULT_TIME_S, Request
from teho.planner.quotas import Holds, holding, least_memory_of_hosts
from teho.planner.slurm_rules import Limits, limits_for
from teho.schedulers.registry import scheduler_of
from teho.units import parse_duration, parse_mib

__all__ = [
    "Case",
    "Shape",
    "case_of",
    "default_memory_is_too_much",
    "fewest_nodes",
    "in_words",
    "memory_mib",
    "most_cpus_of_a_whole_node",
    "most_cpus_with_memory_per_gpu",
    "node_counts",
    "seconds",
]

_MOST_LAYOUTS = 4
_SMALL_MIB = 4096
"""Of more memory a fair share is whole GiB."""

seconds = cache(parse_duration)
"""`parse_duration`, remembered: a catalogue has few different limits and many plans."""
_mib = cache(parse_mib)


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A request laid out on one kind of node."""

    nodes: int
    gpus_per_node: int
    tasks_per_node: int
    cpus_per_task: int
    memory_mib: int | None
    """Of each node; None: the request does not name it."""
    time_s: float

    @property
    def cores_per_node(self) -> int:
        """Cores of each node."""
        return self.tasks_per_node * self.cpus_per_task


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One request on one kind of node of one partition: what limits, traps and bills look at."""

    request: Request
    cluster: Cluster
    partition: Partition
    kind: NodeKind
    share: Share | None
    """The documented fair share for one GPU of this kind."""
    automatic: tuple[Automatic, ...]
    """What comes by itself and must not be named."""
    most_per_node: int | None
    """GPUs that a job can have on one node. None: not documented."""
    limits: Limits
    live: Live | None
    shape: Shape

    @property
    def where(self) -> str:
        """The partition as `in_words` writes it."""
        return in_words(self.cluster, self.partition)

    @property
    def memory_is_left_to_the_site(self) -> bool:
        """Whether the request names no memory, and nothing else brings a known amount."""
        named = self.shape.memory_mib is not None or "memory" in self.automatic
        return not named and not self.has_whole_nodes

    @property
    def has_whole_nodes(self) -> bool:
        """Whether no other job can run on the nodes, so that they are given and billed whole."""
        return self.partition.exclusive or self.request.exclusive

    @property
    def default_memory_mib(self) -> int | None:
        """Memory of each node where it is left to the site. None: not so, or not documented."""
        each = self.cluster.dialect.default_memory_per_core
        if not self.memory_is_left_to_the_site or each is None:
            return None
        return _mib(each) * self.shape.cores_per_node

    @property
    def billed_memory_is_unknown(self) -> bool:
        """Whether the site bills memory, and nobody knows how much this job will have."""
        billing = self.cluster.billing.get(self.partition.billing)
        counted = self.cluster.dialect.memory_is_counted
        if billing is None or counted is not None or not self.memory_is_left_to_the_site:
            return False
        terms = (*billing.sum, *billing.largest)
        return self.default_memory_mib is None and any(term.of == "memory_gib" for term in terms)

    @property
    def usable_cores(self) -> int:
        """Cores of a node that jobs can have."""
        return self.kind.cores_for_jobs


def case_of(
    request: Request,
    cluster: Cluster,
    partition: Partition,
    kind: NodeKind,
    live: Live | None = None,
    nodes: int | None = None,
) -> Case:
    """Lay a request out on a kind of node, filling what it does not say with the fair share.

    Limits are not looked at, but for what is filled in: what comes out may be too large for the
    partition.

    Args:
        request: what the program needs.
        cluster: where.
        partition: of that cluster.
        kind: one of the partition's.
        live: what the running scheduler says. None: it was not asked.
        nodes: how many; None: the fewest that the GPUs are spread over evenly.
    """
    share = _share_of(cluster, kind)
    most = _most_per_node(partition, kind)
    nodes = nodes or request.nodes or fewest_nodes(request.gpus, most)
    limits = limits_for(request, cluster, partition, live)
    laid = _Layout(
        request=request,
        cluster=cluster,
        partition=partition,
        kind=kind,
        share=share,
        automatic=_automatic(cluster, partition, kind, share),
        limits=limits,
        live=live,
        nodes=nodes,
        gpus=math.ceil(request.gpus / nodes),
    )
    return Case(
        request=request,
        cluster=cluster,
        partition=partition,
        kind=kind,
        share=share,
        automatic=laid.automatic,
        most_per_node=most,
        limits=limits,
        live=live,
        shape=laid.shape(),
    )


def node_counts(request: Request, partition: Partition, kind: NodeKind) -> tuple[int, ...]:
    """Return on how many nodes a request may be laid out, the fewest first."""
    if request.nodes is not None:
        return (request.nodes,)
    least = partition.min_nodes
    if request.gpus == 0:
        if launcher_of(request.launcher).one_process:
            return (1,)
        usable = kind.cores_for_jobs
        return tuple(sorted({1, max(least, math.ceil((request.cpus or 1) / usable))}))
    fewest = fewest_nodes(request.gpus, _most_per_node(partition, kind))
    small = [count for count in range(1, math.isqrt(request.gpus) + 1) if request.gpus % count == 0]
    even = sorted({n for count in small for n in (count, request.gpus // count) if n > fewest})
    return (fewest, *(n for n in even[:_MOST_LAYOUTS] if n >= least))


def memory_mib(text: str | None) -> int | None:
    """Return a catalogue's amount of memory in MiB; None if it has none."""
    return None if text is None else _mib(text)


def fewest_nodes(gpus: int, per_node_most: int | None) -> int:
    """Return the fewest nodes on which the GPUs lie evenly; 1 where a node's most is not known."""
    if gpus == 0 or not per_node_most:
        return 1
    fewest = math.ceil(gpus / per_node_most)
    # Divisors come in pairs, so that even an absurd number is soon laid out.
    small = [count for count in range(1, math.isqrt(gpus) + 1) if gpus % count == 0]
    return min(n for count in small for n in (count, gpus // count) if n >= fewest)


def default_memory_is_too_much(
    cluster: Cluster, partition: Partition, kind: NodeKind, gpus: int
) -> bool:
    """Return whether the default memory of so many GPUs is more than a node has.

    Slurm 22.05 refuses such a job even if `--mem` asks for less, if it sets memory aside for jobs;
    `--mem-per-gpu` is taken.
    """
    default, whole = memory_mib(partition.default_memory_per_gpu), memory_mib(kind.memory)
    counted = cluster.dialect.memory_is_counted
    return bool(counted and gpus and default and whole and default * gpus > whole)


def most_cpus_with_memory_per_gpu(
    cluster: Cluster, partition: Partition, kind: NodeKind, gpus: int
) -> int | None:
    """Return how many CPUs of a node a job may have whose memory is said for each GPU.

    Slurm 22.05 still holds the node against the default memory of its CPUs. None: any number, or
    the memory is not said so.
    """
    each = memory_mib(partition.default_memory_per_cpu)
    whole = _least(memory_mib(kind.memory), memory_mib(partition.max_memory))
    if not each or not whole or not default_memory_is_too_much(cluster, partition, kind, gpus):
        return None
    return whole // each


def most_cpus_of_a_whole_node(partition: Partition, kind: NodeKind) -> int | None:
    """Return how many CPUs of a node a job may ask for that is given the node whole.

    Slurm 22.05 counts the most memory of a CPU (MaxMemPerCPU) for each of them, whatever `--mem`
    says, and refuses more than the node has. None: any number.
    """
    each, whole = memory_mib(partition.max_memory_per_cpu), memory_mib(kind.memory)
    return whole // each if each and whole else None


def in_words(cluster: Cluster, partition: Partition) -> str:
    """Write a partition in a sentence: `partition gpu`, `queue all.q`, or a label: `GPU nodes`."""
    what = scheduler_of(cluster.scheduler).partition_word
    return f"{what} {partition.name}" if partition.name else partition.title


class _Layout(msgspec.Struct, frozen=True, kw_only=True):
    """A request on some nodes of a kind, while it is laid out."""

    request: Request
    cluster: Cluster
    partition: Partition
    kind: NodeKind
    share: Share | None
    automatic: tuple[Automatic, ...]
    limits: Limits
    live: Live | None
    nodes: int
    gpus: int
    """Of each node."""

    @property
    def whole(self) -> bool:
        return self.partition.exclusive or self.request.exclusive

    @property
    def usable(self) -> int:
        return self.kind.cores_for_jobs

    def shape(self) -> Shape:
        tasks, cores = self.tasks(), self.cores()
        # What the user says is the least that she gets; what is filled in, the most.
        named = self.request.cpus is not None or self.request.cpus_per_gpu is not None
        cpus_per_task = max(1, math.ceil(cores / tasks) if named else cores // tasks)
        memory = None if "memory" in self.automatic else self.memory(tasks * cpus_per_task)
        each = memory_mib(self.partition.max_memory_per_cpu)
        if memory and each and not self.whole:
            # Slurm gives a job that asks for more memory than its CPUs may have more CPUs.
            cpus = math.ceil(memory / each)
            cores = math.ceil(cpus / self.kind.threads_per_core)
            cpus_per_task = max(cpus_per_task, math.ceil(cores / tasks))
        return Shape(
            nodes=self.nodes,
            gpus_per_node=self.gpus,
            tasks_per_node=tasks,
            cpus_per_task=cpus_per_task,
            memory_mib=memory,
            time_s=self.time_s(),
        )

    def tasks(self) -> int:
        starts_tasks = scheduler_of(self.cluster.scheduler).starts_tasks
        launcher = launcher_of(self.request.launcher)
        return launcher.tasks_per_node(self.gpus, starts_tasks=starts_tasks)

    def cores(self) -> int:
        """Return the cores of each node: what is asked for, or the fair share within limits."""
        request = self.request
        if request.gpus and request.cpus_per_gpu is not None:
            return request.cpus_per_gpu * self.gpus
        if request.cpus is not None:
            return math.ceil(request.cpus / self.nodes)
        most = max(1, min(self.fair_cores(), self.most_cores()))
        return next((count for count in range(most, 1, -1) if self.can_be_had(count)), 1)

    def can_be_had(self, cores: int) -> bool:
        """Return whether the scheduler has words for so many cores of each node."""
        gpu = self.kind.gpu
        if gpu and gpu.per_slot and self.gpus % cores:
            return False
        held = self.holding(cores)
        if held.needs_environment and held.environment is None:
            return False
        return held.allows(cores, gpu.type if gpu else "", self.gpus) and held.on_one_node

    def holding(self, cores: int) -> Holds:
        return holding(
            self.request, self.cluster, self.partition, self.kind, self.live, cores, self.gpus
        )

    def fair_cores(self) -> int:
        kind, share, gpus = self.kind, self.share, self.gpus
        if self.whole:
            return self.usable
        if kind.gpu is None or gpus == 0:
            return 1
        if share is not None and share.cores is not None:
            return share.cores * gpus
        if self.partition.default_cpus_per_gpu is not None:
            cpus = self.partition.default_cpus_per_gpu * gpus
            return min(self.usable, max(1, cpus // kind.threads_per_core))
        # A slice's part of a node is not known: one core is what no site refuses.
        return max(1, self.usable * gpus // kind.gpu.count) if kind.gpu.count else 1

    def most_cores(self) -> int:
        """Return the most cores of each node that are filled in."""
        partition, threads, limits = self.partition, self.kind.threads_per_core, self.limits
        in_cpus = [partition.max_cpus_per_node, limits.node_most("cpu")]
        job = limits.job_most("cpu")
        in_cpus.append(None if job is None else job // self.nodes)
        in_cpus.append(most_cpus_with_memory_per_gpu(self.cluster, partition, self.kind, self.gpus))
        in_cpus.append(most_cpus_of_a_whole_node(partition, self.kind) if self.whole else None)
        in_cores = [self.usable, partition.max_cores_per_node]
        in_cores.append(partition.max_cores // self.nodes if partition.max_cores else None)
        known = [number for number in in_cores if number is not None]
        known += [number // threads for number in in_cpus if number is not None]
        return min(known)

    def memory(self, cores: int) -> int | None:
        """Return the memory of each node that the job asks for. None: it asks for none."""
        amount = self.wanted_memory(cores)
        if amount is None or not default_memory_is_too_much(
            self.cluster, self.partition, self.kind, self.gpus
        ):
            return amount
        # It must then be said for each GPU, of a whole node for all that it has.
        if self.request.memory_mib is not None:
            return math.ceil(amount / self.gpus) * self.gpus
        given = (self.kind.gpu.count if self.whole and self.kind.gpu else None) or self.gpus
        return max(1, amount // given) * self.gpus

    def wanted_memory(self, cores: int) -> int | None:
        """Return the memory of each node to the MiB."""
        share = self.share
        if self.request.memory_mib is not None:
            return self.request.memory_mib
        if self.whole:
            return _least(memory_mib(self.kind.memory), *self.most_memory(self.usable))
        if share is not None and share.memory is not None:
            return _least(_mib(share.memory) * self.gpus, memory_mib(self.kind.memory))
        if self.cluster.dialect.memory_is_counted is None:
            return None
        fair = self.fair_memory(cores)
        return _least(fair, memory_mib(self.kind.memory), *self.most_memory(cores))

    def fair_memory(self, cores: int) -> int | None:
        """Return what the partition gives a job that names no memory, or its share of the node.

        Slurm's own default where a partition has none is all of the node's memory.
        """
        partition, whole = self.partition, memory_mib(self.kind.memory)
        if self.gpus and partition.default_memory_per_gpu is not None:
            return _mib(partition.default_memory_per_gpu) * self.gpus
        if partition.default_memory_per_cpu is not None:
            return _mib(partition.default_memory_per_cpu) * cores * self.kind.threads_per_core
        if partition.default_memory_per_node is not None:
            return _mib(partition.default_memory_per_node)
        fair = max(1, (whole or 0) * cores // self.usable)
        return None if whole is None else fair - fair % 1024 if fair > _SMALL_MIB else fair

    def most_memory(self, cores: int) -> tuple[int | None, ...]:
        """Return limits on the memory of each node that is filled in."""
        partition, limits = self.partition, self.limits
        each, job = memory_mib(partition.max_memory_per_cpu), limits.job_most("mem")
        return (
            memory_mib(partition.max_memory),
            None if each is None else each * cores * self.kind.threads_per_core,
            limits.node_most("mem"),
            self.holding(cores).most("memory"),
            least_memory_of_hosts(self.cluster, self.partition, cores),
            None if job is None else job // self.nodes,
        )

    def time_s(self) -> float:
        """Return the time to plan: what is asked for, or an hour where the limits allow it."""
        if self.request.time_s is not None:
            return self.request.time_s
        limits, most = self.limits, [DEFAULT_TIME_S]
        if self.partition.max_time is not None and limits.partition_time_holds:
            most.append(seconds(self.partition.max_time))
        if limits.time_s is not None:
            most.append(limits.time_s)
        return min(most)


def _least(*numbers: int | None) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def _share_of(cluster: Cluster, kind: NodeKind) -> Share | None:
    if kind.gpu is None:
        return None
    for share in cluster.shares:
        if share.gpu == kind.gpu.type:
            return share
    return None


def _automatic(
    cluster: Cluster, partition: Partition, kind: NodeKind, share: Share | None
) -> tuple[Automatic, ...]:
    found = {*partition.automatic, *(share.automatic if share else ())}
    if cluster.dialect.memory == "none" or not kind.memory_is_named:
        found.add("memory")
    return tuple(sorted(found))


def _most_per_node(partition: Partition, kind: NodeKind) -> int | None:
    known = [
        count
        for count in (
            partition.max_gpus_per_node,
            kind.gpu.count if kind.gpu else 0,
            kind.gpu.max_per_job if kind.gpu else None,
        )
        if count is not None
    ]
    return min(known, default=None)
