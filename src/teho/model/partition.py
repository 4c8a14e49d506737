"""The limits of a cluster: partitions, QOS, quotas and parallel environments."""

from __future__ import annotations

from typing import Literal

import msgspec

from teho.model.node import Automatic

__all__ = ["ParallelEnvironment", "Partition", "Qos", "Quota"]


class ParallelEnvironment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a Grid Engine job needs to have more than one core (sge_pe(5))."""

    name: str
    rule: Literal["one_node", "fill", "spread", "fixed"]
    """Places of the cores: on one node (`$pe_slots`), node after node (`$fill_up`), one node after
    the other in turns (`$round_robin`), or `cores_per_node` on each node."""
    cores_per_node: int | None = None
    max_cores: int | None = None
    """Of all its running jobs."""
    kinds: tuple[str, ...] = ()
    """The only kinds of node that it is on; none: all kinds of the partition."""
    user_lists: tuple[str, ...] = ()
    """The only user lists that may use it; none: all but `denied_user_lists`."""
    denied_user_lists: tuple[str, ...] = ()


class Quota(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule of Grid Engine's resource quotas. In each set, the first rule that matches counts.

    Lists of names are as in sge_resource_quota(5), with `!` and `*`; none: all.
    """

    name: str
    """Name of its set."""
    users: tuple[str, ...] = ()
    """User lists begin with `@`."""
    projects: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    """The partitions that it matches."""
    kinds: tuple[str, ...] = ()
    """Kinds of node of which it matches all nodes."""
    kinds_in_part: tuple[str, ...] = ()
    """Kinds of node of which it matches some nodes."""
    per_node: bool = False
    """Whether it limits what is used on each node."""
    limits: dict[str, int] = {}
    """Of all running jobs that match: `cores`, `memory` (MiB), `gpu:v100`."""
    unread: tuple[str, ...] = ()
    """Other resources that it limits."""
    source: str


class Partition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A partition (Slurm) or a queue (Grid Engine) and its limits. None: not documented."""

    name: str
    """Empty if jobs of this site do not name it."""
    label: str = ""
    """Teho's name for it, such as `GPU nodes`, if `name` is empty; else an addition to the name."""
    kinds: tuple[str, ...]
    """Names of its node kinds."""
    node_counts: dict[str, int] = {}
    """Number of nodes of a kind, if the partition does not have all of them."""
    takes_cpu_jobs: bool = False
    """Whether jobs without GPUs may use nodes with GPUs."""
    max_time: str | None = None
    """Such as `36h` or `3d`."""
    min_time: str | None = None
    """Shorter jobs are refused."""
    advised_min_time: str | None = None
    """Shorter jobs are taken, but the site asks users to avoid them."""
    min_nodes: int = 1
    max_nodes: int | None = None
    max_nodes_with_allocation: int | None = None
    """For an account that begins with one of `account.allocations`."""
    whole_nodes_if_several: bool = False
    """Whether a job on several nodes must request whole nodes."""
    min_gpus_per_node: int | None = None
    max_gpus_per_node: int | None = None
    min_gpus: int | None = None
    """Of the whole job."""
    max_gpus: int | None = None
    gpu_counts: tuple[int, ...] = ()
    """The only GPU counts of a whole job that are taken, beside multiples of `gpu_multiple`."""
    gpu_multiple: int | None = None
    max_cores: int | None = None
    """Of the whole job."""
    max_cores_per_node: int | None = None
    max_cpus_per_node: int | None = None
    """The same in CPUs. The scheduler may count threads as CPUs."""
    default_cpus_per_gpu: int | None = None
    """CPUs that a job gets with each GPU if it requests none. The scheduler may count threads."""
    default_memory_per_gpu: str | None = None
    default_memory_per_cpu: str | None = None
    default_memory_per_node: str | None = None
    """Memory that a job gets if it requests none: by its GPUs or CPUs, else on each node."""
    max_memory_per_cpu: str | None = None
    """A job that requests more memory gets more CPUs."""
    max_memory: str | None = None
    """Of each node, if it is less than the node has."""
    max_local_disk_gib: float | None = None
    """Of each node, if it is less than the node has."""
    automatic: tuple[Automatic, ...] = ()
    """What a job gets automatically with cores or nodes, so a request must not name it."""
    exclusive: bool = False
    """Whether jobs always get whole nodes, and are billed for them."""
    max_jobs: int | None = None
    """Of one user, waiting and running."""
    max_running_jobs: int | None = None
    purpose: Literal["production", "test", "interactive", "restricted"] = "production"
    """`restricted`: only by invitation."""
    needs: str = ""
    """What a project must have first, such as `an accepted scalability test`."""
    needs_reservation: bool = False
    """Whether jobs must name a reservation."""
    accounts: tuple[str, ...] = ()
    """The only accounts that may use it; none: all but `denied_accounts`."""
    denied_accounts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """The only Unix groups that may use it; none: all."""
    user_lists: tuple[str, ...] = ()
    """The only Grid Engine user lists that may use it; none: all but `denied_user_lists`."""
    denied_user_lists: tuple[str, ...] = ()
    parallel_environments: tuple[ParallelEnvironment, ...] = ()
    only_parallel: bool = False
    """Whether each job needs a parallel environment (Grid Engine's `qtype` is not `BATCH`)."""
    allowed_qos: tuple[str, ...] = ()
    """The only QOS that jobs may have; none: all but `denied_qos`."""
    denied_qos: tuple[str, ...] = ()
    qos: str = ""
    """The partition's QOS. Its limits apply to all jobs in the partition."""
    billing: str = ""
    """Name of one of the file's `billing` tables; empty: no charge, unless `unknown` has it."""
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

    `cpu` (as Slurm counts them), `mem` (MiB), `node`, `gres/gpu`, `gres/gpu:a100`, `billing`.
    """

    max_of_job: dict[str, int] = {}
    max_of_node: dict[str, int] = {}
    min_of_job: dict[str, int] = {}
    max_of_user: dict[str, int] = {}
    """Of all running jobs of a user."""
    max_of_all: dict[str, int] = {}
    """Of all running jobs together."""
    max_time: str | None = None
    flags: tuple[str, ...] = ()
    source: str
