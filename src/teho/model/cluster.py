"""A cluster as the catalogue's files describe it: hardware, limits, rules and bills.

There is one TOML file for each cluster. Every table has a `source`: the key of one of the file's
`sources`, and a page in it. Facts that are not documented are left out or named in `unknown`.
A file never contains guesses.
"""

from __future__ import annotations

from datetime import date
from typing import Literal

import msgspec

from teho.model.billing import Billing, Term
from teho.model.environment import Container, EnvironmentKind, Environments, Software
from teho.model.node import (
    Automatic,
    Binding,
    Gpu,
    GpuDriver,
    LocalDisk,
    NodeKind,
    OtherGpus,
    Share,
)
from teho.model.partition import ParallelEnvironment, Partition, Qos, Quota

__all__ = [
    "UNKNOWN_SITE",
    "Account",
    "Automatic",
    "Billing",
    "Binding",
    "Cluster",
    "Container",
    "Dialect",
    "EnvironmentKind",
    "Environments",
    "Gpu",
    "GpuDriver",
    "Links",
    "LocalDisk",
    "NodeKind",
    "OtherGpus",
    "ParallelEnvironment",
    "Partition",
    "Qos",
    "Quota",
    "Share",
    "Software",
    "Source",
    "Term",
    "Totals",
]

UNKNOWN_SITE = "not known"
"""`site` of a cluster whose scheduler does not name one."""


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document with facts about a cluster."""

    document: str
    """Repository or website."""
    commit: str = ""
    read_on: date | None = None
    """Date of the version that was read."""


class Totals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers of cores and GPUs of the whole cluster, as a document about it states them."""

    cores: int
    """Cores of the nodes without GPUs."""
    gpus: int
    source: str
    notes: str = ""


class Links(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pages about a cluster, and other information for its users."""

    documentation: str
    portal: str = ""
    """Page with the user's jobs and their use of GPUs, memory and files."""
    more_modules: str = ""
    """Command that makes modules visible that the site hides by default."""
    acknowledgement: str = ""
    """Page or sentence that says how to acknowledge the cluster in a publication."""
    support: str = ""
    """Page that says how to ask the site's support team."""
    source: str
    notes: str = ""


class Account(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The accounts that jobs are charged to."""

    required: bool
    option: str = "--account"
    example: str
    allocations: tuple[str, ...] = ()
    """Prefixes of the accounts that have an allocation, such as `rrg-`."""
    source: str
    notes: str = ""


class Dialect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a request is written on this cluster."""

    gpus: str
    """Option that requests GPUs. Teho replaces `{type}` by the GPU type, and `{count}` by the
    number of GPUs per node."""
    gpu_type_optional: bool = False
    partition: Literal["required", "never", "optional"] = "required"
    cores: str = ""
    """Option for the cores of a job, such as `-pe smp {cores}`. Teho replaces `{cores}` by the
    number of cores. Empty: the usual option of the scheduler."""
    several_nodes: str = ""
    """Grid Engine's option for a job without GPUs on several whole nodes, such as
    `-l nodes={nodes},ppn={cores},tpp=1`. Teho replaces `{nodes}` by the number of nodes, and
    `{cores}` by the number of cores of one node. The option replaces the options for cores, memory
    and local disk. Empty: the site does not document such an option."""
    constraint: str = "--constraint={constraint}"
    """Option that selects a kind of node. Teho replaces `{constraint}` by the value for this kind
    of node."""
    memory: Literal["node", "none", "core"] = "node"
    """How a job requests memory: per node (`node`), per core (`core`), or not at all (`none`).
    With `none`, a job gets memory with its GPUs, cores or nodes."""
    memory_option: str = ""
    """Grid Engine's option for memory. Teho replaces `{memory}` by the amount of memory. Empty:
    `-l h_vmem={memory}`."""
    memory_is_counted: bool | None = None
    """Whether the scheduler reserves memory for jobs. If this key is set, each job requests memory,
    because the site's default may be more than a node has. Without this key, it is not documented
    whether the scheduler reserves memory. A job then requests memory only if the user requests
    memory."""
    gives_whole: Literal["cores", "sockets", "cpus"] | None = None
    """The smallest unit that a job gets. `cpus`: a job may get single threads of a core."""
    default_memory_per_core: str | None = None
    """Memory that a job gets with each core if the job requests no memory. Without this key, this
    memory is not documented."""
    time_required: bool = True
    """Whether a job without a time limit is refused."""
    submit_from: str = ""
    """Directory from which jobs must be submitted, such as `$SCRATCH`."""
    never_submit_from: str = ""
    source: str
    notes: str = ""


class Cluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cluster."""

    name: str
    title: str
    site: str
    scheduler: str
    """Name of the scheduler."""
    status: Literal["active", "retired"]
    retired_on: date | None = None
    successor: str = ""
    """Name of the cluster that replaces this cluster."""
    verified_on: date
    """Date on which the facts were last compared with their sources."""
    hosts: tuple[str, ...] = ()
    """Patterns of host names. Teho recognises the cluster by these patterns."""
    recognised_by: dict[str, str] = {}
    """Environment variables with the values that they have on this cluster. Teho recognises the
    cluster by these values."""
    internet_on_compute_nodes: bool | None = None
    monitoring: str = ""
    """Address of the site's Prometheus or VictoriaMetrics, from which users may read values."""
    totals: Totals | None = None
    """The cores and GPUs of the whole cluster. Without this key, Teho adds the cores and GPUs of
    all nodes."""
    links: Links | None = None
    sources: dict[str, Source]
    nodes: tuple[NodeKind, ...]
    partitions: tuple[Partition, ...]
    shares: tuple[Share, ...] = ()
    dialect: Dialect
    account: Account
    local_disk: LocalDisk | None = None
    billing: dict[str, Billing] = {}
    qos: dict[str, Qos] = {}
    enforced: tuple[str, ...] = ()
    """Rules that the accounting of Slurm enforces (AccountingStorageEnforce): `associations`,
    `limits`, `qos`, `safe`."""
    counted_gpus: tuple[str, ...] = ()
    """GPU types that Slurm counts separately in limits and bills (AccountingStorageTRES)."""
    quotas: tuple[Quota, ...] = ()
    """Grid Engine's resource quotas, in the order in which Grid Engine prints them."""
    binding: Binding | None = None
    driver: GpuDriver | None = None
    """Without this key, the driver is not documented."""
    environments: Environments | None = None
    """Without this key, the site does not document environments."""
    software: tuple[Software, ...] = ()
    environment: tuple[Container, ...] = ()
    script_lines: tuple[str, ...] = ()
    """Lines that every job script of this cluster needs, for example to unset a bad default."""
    conflicts: tuple[str, ...] = ()
    """Contradictions between sources. Each text says which source the file follows, and why."""
    notes: tuple[str, ...] = ()
