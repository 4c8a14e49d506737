"""Opens the sources of a node's readings, and describes the node."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from teho.devices.host.cgroup import cpu_quota
from teho.devices.host.proctree import ProcessTree
from teho.devices.host.source import HostSource, describe_host
from teho.devices.sources import open_gpus
from teho.model.device import DeviceSource
from teho.model.run import Node
from teho.observe.plan import RecordingPlan
from teho.schedulers.allocation import read_allocation
from teho.schedulers.registry import scheduler_or_none

__all__ = ["NodeSources", "open_sources"]


class NodeSources(NamedTuple):
    """The sources of one node."""

    host: HostSource
    every: list[DeviceSource]
    """The host and its GPUs."""
    node: Node

    def close(self) -> None:
        """Close all sources."""
        for source in self.every:
            source.close()


def open_sources(
    plan: RecordingPlan,
    pids: Sequence[int],
    tree: ProcessTree,
    cores: tuple[int, ...],
    environment: Mapping[str, str],
) -> NodeSources:
    """Open the host and all GPUs that can be read, and describe the node."""
    host = HostSource(tree, cores, environment)
    facts = describe_host()
    allocation = read_allocation(
        environment, frozenset(cores), host.cgroup_limit_bytes, facts.memory_bytes, cpu_quota()
    )
    gpus, refusals = open_gpus(environment)
    sources: list[DeviceSource] = [host, *gpus]
    notes = [note for source in sources for note in source.notes]
    nodes = allocation.node_count or 1
    if nodes > plan.node_count:
        scheduler = scheduler_or_none(allocation.scheduler)
        why = scheduler.only_this_node(plan.node, nodes, allocation.node_list or "")
        notes += [why] if why else []
    if not gpus:
        # If one vendor's GPUs are found, the absence of the other's is not worth a note.
        notes.append("No GPU: " + "; ".join(error.found for error in refusals))
    node = Node(
        name=plan.node,
        started_at=plan.started_at,
        started_s=plan.started_s,
        period_s=plan.period_s,
        cores=cores,
        core_count_node=facts.core_count,
        memory_node_bytes=facts.memory_bytes,
        cpu_model=facts.cpu_model,
        allocation=allocation,
        devices=tuple(device for source in sources for device in source.devices),
        notes=tuple(notes),
        program_pid=pids[0] if pids else None,
        recorder_pid=os.getpid(),
    )
    return NodeSources(host, sources, node)
