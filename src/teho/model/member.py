"""Who plans, as the scheduler knows her, and which partitions take jobs now."""

from __future__ import annotations

import msgspec

__all__ = ["Association", "Live", "NodesNow"]


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """An account that the user may charge, with her limits there (sacctmgr(1), association)."""

    account: str
    partition: str = ""
    """It holds in this partition alone; empty: in all."""
    default_qos: str = ""
    qos: tuple[str, ...] = ()
    """Those that she may name."""
    max_of_job: dict[str, int] = {}
    """By trackable resource, in the units of `model.cluster.Qos`."""
    max_of_node: dict[str, int] = {}
    max_of_user: dict[str, int] = {}
    """Of all of her running jobs under this account."""
    max_of_account: dict[str, int] | None = {}
    """Of all running jobs of the account, or of one above it. None: she may not read them."""
    max_time_s: float | None = None


class NodesNow(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a partition that are alike, and how many of them take jobs now."""

    partition: str
    cpus: int
    """Of each, as the scheduler counts them."""
    gpus: tuple[tuple[str, int], ...] = ()
    """Types, each with its count, sorted."""
    in_service: int
    """Those that are not drained, down or failing."""


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """What only the running scheduler knows. None: it could not be asked."""

    states: dict[str, str] | None = None
    """Each partition's state, such as `UP` or `DRAIN`."""
    nodes: tuple[NodesNow, ...] | None = None
    user: str = ""
    groups: tuple[str, ...] | None = None
    user_lists: tuple[str, ...] | None = None
    """Of Grid Engine's, those that she is on."""
    default_account: str = ""
    associations: tuple[Association, ...] | None = None
    """None of a user whom the accounting does not know is an empty tuple."""
