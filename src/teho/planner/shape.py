"""Lay a request out on nodes: GPUs per node, tasks, cores, memory, time."""

from __future__ import annotations

import math

from msgspec.structs import asdict, replace

from teho.model.request import DEFAULT_TIME_S
from teho.planner.place import Case, Place, Shape, memory_mib, seconds
from teho.planner.slots import least_memory_of_hosts, slot_rules
from teho.units import least

__all__ = ["fewest_nodes", "lay_out", "node_counts"]

_MOST_LAYOUTS = 4
_SMALL_MIB = 4096
"""A fair share above this amount is rounded down to whole GiB."""


def lay_out(place: Place, nodes: int | None = None) -> Case:
    """Lay a request out on a kind of node. The fair share fills what the request does not say.

    Limits apply only to the values that are filled in, so the result may exceed them.

    Args:
        place: the request and the kind of node.
        nodes: number of nodes; None: the fewest that share the GPUs evenly.
    """
    request = place.request
    nodes = nodes or request.nodes or fewest_nodes(request.gpus, place.most_per_node)
    gpus = math.ceil(request.gpus / nodes)
    place = _with_memory_of_node(place, nodes, gpus)
    fields = asdict(place)
    return Case(**fields, shape=_Layout(**fields, nodes=nodes, gpus=gpus).shape())


def _with_memory_of_node(place: Place, nodes: int, gpus: int) -> Place:
    """Return the place with a memory for each core or GPU as the memory of the node."""
    request = place.request
    if request.memory_per_gpu_mib is not None:
        memory = request.memory_per_gpu_mib * gpus
    elif request.memory_per_core_mib is not None:
        layout = _Layout(**asdict(place), nodes=nodes, gpus=gpus)
        memory = request.memory_per_core_mib * layout.shape().cores_per_node
    else:
        return place
    return replace(place, request=replace(request, memory_mib=memory))


def node_counts(place: Place) -> tuple[int, ...]:
    """Return the numbers of nodes to try for a request, the fewest first."""
    request, fewest = place.request, place.partition.min_nodes
    if request.nodes is not None:
        return (request.nodes,)
    if request.gpus == 0:
        if place.launcher.one_process:
            return (1,)
        needed = math.ceil((request.cpus or 1) / place.kind.cores_for_jobs)
        return tuple(sorted({1, max(fewest, needed)}))
    first = fewest_nodes(request.gpus, place.most_per_node)
    more = [count for count in _divisors(request.gpus) if count > first]
    return (first, *(count for count in more[:_MOST_LAYOUTS] if count >= fewest))


def fewest_nodes(gpus: int, per_node_most: int | None) -> int:
    """Return the fewest nodes that share the GPUs evenly; 1 if the limit per node is unknown."""
    if gpus == 0 or not per_node_most:
        return 1
    return next(count for count in _divisors(gpus) if count * per_node_most >= gpus)


def _divisors(number: int) -> list[int]:
    """Return the divisors in rising order. They come in pairs, so large numbers are fast too."""
    small = [count for count in range(1, math.isqrt(number) + 1) if number % count == 0]
    return sorted({n for count in small for n in (count, number // count)})


class _Layout(Place, frozen=True, kw_only=True, dict=True):
    """A request on a number of nodes, while its shape is computed."""

    nodes: int
    gpus: int
    """Per node."""

    @property
    def job_nodes(self) -> int:
        """Number of nodes of the job."""
        return self.nodes

    def shape(self) -> Shape:
        """Return the complete shape."""
        starts_tasks = self.scheduler.starts_tasks
        tasks = self.launcher.tasks_per_node(self.gpus, starts_tasks=starts_tasks)
        cores = self.cores()
        # A number from the user is a minimum and is rounded up; a number of Teho's is a maximum.
        named = self.request.cpus is not None or self.request.cpus_per_gpu is not None
        cpus_per_task = max(1, math.ceil(cores / tasks) if named else cores // tasks)
        memory = None if "memory" in self.automatic else self.memory(tasks * cpus_per_task)
        each = memory_mib(self.partition.max_memory_per_cpu)
        if memory and each and not self.has_whole_nodes:
            # If a job requests more memory than its CPUs may have, Slurm adds CPUs.
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

    def cores(self) -> int:
        """Return the cores per node: the request, or the fair share within the limits."""
        request = self.request
        if request.gpus and request.cpus_per_gpu is not None:
            return request.cpus_per_gpu * self.gpus
        if request.cpus is not None:
            return math.ceil(request.cpus / self.nodes)
        most = max(1, min(self.fair_cores(), self.most_cores()))
        return next((count for count in range(most, 1, -1) if self.is_possible(count)), 1)

    def is_possible(self, cores: int) -> bool:
        """Return whether a job can request this number of cores per node."""
        gpu = self.kind.gpu
        if gpu and gpu.per_slot and self.gpus % cores:
            return False
        rules = slot_rules(self, cores, self.gpus)
        if rules.needs_environment and rules.environment is None:
            return False
        return rules.allows(cores, gpu.type if gpu else "", self.gpus) and rules.on_one_node

    def fair_cores(self) -> int:
        """Return the fair share of cores per node, without limits."""
        kind, share, gpus = self.kind, self.share, self.gpus
        if self.has_whole_nodes:
            return kind.cores_for_jobs
        if kind.gpu is None or gpus == 0:
            return 1
        if share is not None and share.cores is not None:
            return share.cores * gpus
        if self.partition.default_cpus_per_gpu is not None:
            cpus = self.partition.default_cpus_per_gpu * gpus
            return min(kind.cores_for_jobs, max(1, cpus // kind.threads_per_core))
        # A slice's part of the node is unknown. No site refuses one core.
        return max(1, kind.cores_for_jobs * gpus // kind.gpu.count) if kind.gpu.count else 1

    def most_cores(self) -> int:
        """Return the largest number of cores per node that is filled in."""
        partition, threads, nodes = self.partition, self.kind.threads_per_core, self.nodes
        job = self.limits.job_most("cpu")
        cpus = least(
            partition.max_cpus_per_node,
            self.limits.node_most("cpu"),
            None if job is None else job // nodes,
            self.most_cpus_with_memory_per_gpu(self.gpus),
            self.most_cpus_of_whole_node if self.has_whole_nodes else None,
        )
        cores = self.kind.cores_for_jobs
        known = least(
            partition.max_cores_per_node,
            partition.max_cores // nodes if partition.max_cores else None,
            None if cpus is None else cpus // threads,
        )
        return cores if known is None else min(cores, known)

    def memory(self, cores: int) -> int | None:
        """Return the memory per node that the job requests. None: it does not request memory."""
        amount = self.wanted_memory(cores)
        if amount is None or not self.default_memory_is_too_much(self.gpus):
            return amount
        # The script then requests memory per GPU; on a whole node, for all GPUs of the node.
        if self.request.memory_mib is not None:
            return math.ceil(amount / self.gpus) * self.gpus
        gpu = self.kind.gpu if self.has_whole_nodes else None
        return max(1, amount // ((gpu.count if gpu else None) or self.gpus)) * self.gpus

    def wanted_memory(self, cores: int) -> int | None:
        """Return the memory per node, exact to the MiB."""
        share, whole = self.share, self.node_memory_mib
        if self.request.memory_mib is not None:
            return self.request.memory_mib
        if self.has_whole_nodes:
            return least(whole, self.most_memory(self.kind.cores_for_jobs))
        if share is not None and share.memory is not None:
            return least((memory_mib(share.memory) or 0) * self.gpus, whole)
        if self.cluster.dialect.memory_is_counted is None:
            return None
        return least(self.fair_memory(cores), whole, self.most_memory(cores))

    def fair_memory(self, cores: int) -> int | None:
        """Return the partition's default memory, or else the cores' share of the node.

        The default of Slurm itself would be all memory of the node.
        """
        partition, whole = self.partition, self.node_memory_mib
        per_gpu = memory_mib(partition.default_memory_per_gpu)
        if self.gpus and per_gpu is not None:
            return per_gpu * self.gpus
        per_cpu = memory_mib(partition.default_memory_per_cpu)
        if per_cpu is not None:
            return per_cpu * cores * self.kind.threads_per_core
        per_node = memory_mib(partition.default_memory_per_node)
        if per_node is not None or whole is None:
            return per_node
        fair = max(1, whole * cores // self.kind.cores_for_jobs)
        return fair - fair % 1024 if fair > _SMALL_MIB else fair

    def most_memory(self, cores: int) -> int | None:
        """Return the limit on the memory per node that is filled in. None: no limit."""
        partition, limits = self.partition, self.limits
        each, job = memory_mib(partition.max_memory_per_cpu), limits.job_most("mem")
        return least(
            memory_mib(partition.max_memory),
            None if each is None else each * cores * self.kind.threads_per_core,
            limits.node_most("mem"),
            slot_rules(self, cores, self.gpus).most("memory"),
            least_memory_of_hosts(self, cores),
            None if job is None else job // self.nodes,
        )

    def time_s(self) -> float:
        """Return the requested time, or the default time within the limits."""
        if self.request.time_s is not None:
            return self.request.time_s
        limits, most = self.limits, [DEFAULT_TIME_S]
        if self.partition.max_time is not None and limits.partition_time_applies:
            most.append(seconds(self.partition.max_time))
        if limits.time_s is not None:
            most.append(limits.time_s)
        return min(most)
