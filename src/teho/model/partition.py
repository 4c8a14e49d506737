"""The limits of a cluster: partitions, QOS, quotas and parallel environments."""

from __future__ import annotations

from typing import Literal

import msgspec

from teho.model.node import Automatic

__all__ = ["ParallelEnvironment", "Partition", "Qos", "Quota"]


class ParallelEnvironment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A setting that a Grid Engine job needs to have more than one core (manual page sge_pe(5))."""

    name: str
    rule: Literal["one_node", "fill", "spread", "fixed"]
    """Where the cores of a job are. `one_node`: on one node (`$pe_slots`). `fill`: on several
    nodes, which are filled one after another (`$fill_up`). `spread`: on several nodes, which
    get cores in turns (`$round_robin`). `fixed`: `cores_per_node` cores on each node."""
    cores_per_node: int | None = None
    max_cores: int | None = None
    """Largest number of cores of all running jobs in this parallel environment together."""
    kinds: tuple[str, ...] = ()
    """Kinds of node on which this parallel environment exists. Empty: all kinds of the
    partition."""
    user_lists: tuple[str, ...] = ()
    """Only these user lists may use this parallel environment. Empty: all user lists except
    `denied_user_lists`."""
    denied_user_lists: tuple[str, ...] = ()


class Quota(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule of Grid Engine's resource quotas.

    In each set of rules, only the first rule that matches a job applies to the job. The lists of
    names have the form of the manual page sge_resource_quota(5): `!` excludes a name, and `*`
    matches any text. An empty list means all names.
    """

    name: str
    """Name of the set to which the rule belongs."""
    users: tuple[str, ...] = ()
    """Names of users and of user lists. The name of a user list begins with `@`."""
    projects: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    """The partitions that the rule matches."""
    kinds: tuple[str, ...] = ()
    """Kinds of node for which the rule matches all nodes."""
    kinds_in_part: tuple[str, ...] = ()
    """Kinds of node for which the rule matches only some nodes."""
    per_node: bool = False
    """Whether the limits are for each node."""
    limits: dict[str, int] = {}
    """Limits for all running jobs that match the rule, taken together. A limit can be for `cores`,
    for `memory` (MiB), or for a type of GPU, such as `gpu:v100`."""
    unread: tuple[str, ...] = ()
    """Resources that the rule limits, but that are not in `limits`."""
    source: str


class Partition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A partition (Slurm) or a queue (Grid Engine).

    If a limit is missing, the site does not document this limit.
    """

    name: str
    """Empty if jobs of this site do not name the partition."""
    label: str = ""
    """If `name` is empty: Teho's name for the partition, such as `GPU nodes`. Otherwise: an
    addition to the name."""
    kinds: tuple[str, ...]
    """Names of the node kinds in this partition."""
    node_counts: dict[str, int] = {}
    """Number of nodes of a kind, if the partition does not have all nodes of this kind."""
    takes_cpu_jobs: bool = False
    """Whether jobs without GPUs may use nodes with GPUs."""
    max_time: str | None = None
    """Longest time of a job, such as `36h` or `3d`."""
    min_time: str | None = None
    """Shortest time of a job. Shorter jobs are refused."""
    advised_min_time: str | None = None
    """Jobs shorter than this time are accepted, but the site asks users to avoid such jobs."""
    min_nodes: int = 1
    max_nodes: int | None = None
    max_nodes_with_allocation: int | None = None
    """Largest number of nodes for an account that begins with one of `account.allocations`."""
    whole_nodes_if_several: bool = False
    """Whether a job on several nodes must request whole nodes."""
    min_gpus_per_node: int | None = None
    max_gpus_per_node: int | None = None
    min_gpus: int | None = None
    """Smallest number of GPUs of the whole job."""
    max_gpus: int | None = None
    gpu_counts: tuple[int, ...] = ()
    """Numbers of GPUs that a whole job may have. Multiples of `gpu_multiple` are also allowed."""
    gpu_multiple: int | None = None
    max_cores: int | None = None
    """Largest number of cores of the whole job."""
    max_cores_per_node: int | None = None
    max_cpus_per_node: int | None = None
    """Largest number of CPUs on each node. The scheduler may count threads as CPUs."""
    default_cpus_per_gpu: int | None = None
    """CPUs that a job gets with each GPU if the job requests no CPUs. The scheduler may count
    threads as CPUs."""
    default_memory_per_gpu: str | None = None
    default_memory_per_cpu: str | None = None
    default_memory_per_node: str | None = None
    """Memory that a job gets on each node if the job requests no memory, and if there is no default
    per GPU or per CPU."""
    max_memory_per_cpu: str | None = None
    """Largest memory per CPU. A job that requests more memory gets more CPUs."""
    max_memory: str | None = None
    """Largest memory on each node, if this is less than the memory of the node."""
    max_local_disk_gib: float | None = None
    """Largest local disk on each node, if this is less than the disk of the node."""
    automatic: tuple[Automatic, ...] = ()
    """Resources that a job gets automatically with cores or nodes. A request must not contain
    them."""
    exclusive: bool = False
    """Whether jobs always get whole nodes, and are billed for them."""
    max_jobs: int | None = None
    """Largest number of waiting and running jobs of one user together."""
    max_running_jobs: int | None = None
    purpose: Literal["production", "test", "interactive", "restricted"] = "production"
    """`restricted`: jobs may use the partition only by invitation."""
    needs: str = ""
    """What a project must have before it may use the partition, such as `an accepted scalability
    test`."""
    needs_reservation: bool = False
    """Whether jobs must name a reservation."""
    accounts: tuple[str, ...] = ()
    """Only these accounts may use the partition. Empty: all accounts except `denied_accounts`."""
    denied_accounts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Only these Unix groups may use the partition. Empty: all groups."""
    user_lists: tuple[str, ...] = ()
    """Only these Grid Engine user lists may use the partition. Empty: all user lists except
    `denied_user_lists`."""
    denied_user_lists: tuple[str, ...] = ()
    parallel_environments: tuple[ParallelEnvironment, ...] = ()
    only_parallel: bool = False
    """Whether each job needs a parallel environment (Grid Engine's `qtype` is not `BATCH`)."""
    allowed_qos: tuple[str, ...] = ()
    """Jobs may have only these QOS. Empty: all QOS except `denied_qos`."""
    denied_qos: tuple[str, ...] = ()
    qos: str = ""
    """The partition's QOS. Its limits apply to all jobs in the partition."""
    billing: str = ""
    """Name of one of the file's `billing` tables. Empty: jobs are not charged. If `unknown`
    contains `billing`, the cost of a job is not documented."""
    source: str
    notes: str = ""
    unknown: tuple[str, ...] = ()
    """Fields of this table that are not documented: limits, or `billing`."""

    @property
    def title(self) -> str:
        """Name on screen: `name`, `label`, or `name (label)` if it has both."""
        both = self.name and self.label
        return f"{self.name} ({self.label})" if both else self.name or self.label


class Qos(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a Slurm quality of service (QOS), by trackable resource (TRES).

    The resources are `cpu` (CPUs as Slurm counts them), `mem` (memory in MiB), `node` (nodes) and
    `billing` (Slurm's billing units). `gres/gpu` is GPUs of all types. `gres/gpu:a100` is GPUs of
    one type.
    """

    max_of_job: dict[str, int] = {}
    max_of_node: dict[str, int] = {}
    min_of_job: dict[str, int] = {}
    max_of_user: dict[str, int] = {}
    """Limits for all running jobs of a user together."""
    max_of_all: dict[str, int] = {}
    """Limits for all running jobs together."""
    max_time: str | None = None
    flags: tuple[str, ...] = ()
    source: str
