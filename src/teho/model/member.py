"""The user's rights at the scheduler, and the present state of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

__all__ = ["Association", "GpuNodes", "Live", "NodeShape", "NodesNow"]


class NodeShape(NamedTuple):
    """A kind of node."""

    cpus: int
    """CPUs as the scheduler counts them."""
    gpus: int


GpuNodes = Mapping[str, tuple[NodeShape, ...]]
"""Partitions in which every node has GPUs -> the kinds of their nodes."""


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """An account of the user with its limits (sacctmgr(1), association)."""

    account: str
    partition: str = ""
    """The only partition in which it applies; empty: all."""
    default_qos: str = ""
    qos: tuple[str, ...] = ()
    """QOS that the user may request."""
    max_of_job: dict[str, int] = {}
    """Limits by trackable resource, in the units of `model.cluster.Qos`."""
    max_of_node: dict[str, int] = {}
    max_of_user: dict[str, int] = {}
    """Limits of all running jobs of the user under this account."""
    max_of_account: dict[str, int] | None = {}
    """Limits of all running jobs of the account or its parents. None: not readable."""
    max_time_s: float | None = None


class NodesNow(msgspec.Struct, frozen=True, kw_only=True):
    """Equal nodes of a partition, and the number of them that accept jobs now."""

    partition: str
    cpus: int
    """CPUs of each node, as the scheduler counts them."""
    gpus: tuple[tuple[str, int], ...] = ()
    """Sorted types with their counts."""
    in_service: int
    """Number of nodes that are not drained, down or failing."""


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """Present state of a scheduler. None: it could not be asked."""

    states: dict[str, str] | None = None
    """State of each partition, such as `UP` or `DRAIN`."""
    nodes: tuple[NodesNow, ...] | None = None
    user: str = ""
    groups: tuple[str, ...] | None = None
    user_lists: tuple[str, ...] | None = None
    """User lists of Grid Engine that have the user."""
    default_account: str = ""
    associations: tuple[Association, ...] | None = None
    """Empty if the accounting does not know the user."""
