"""What a cluster has, allows and charges: the types of the catalogue's files.

One TOML file a cluster. Every table carries `source`: the key of one of the
file's `sources`, and the page in it. What is not documented is left out, and
`unknown` says so; a guess is never written as a fact.
"""

from __future__ import annotations

from datetime import date
from typing import Literal

import msgspec

__all__ = [
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
]

Automatic = Literal["cores", "memory"]
"""What comes by itself, so that a request must not name it."""

EnvironmentKind = Literal["module", "conda", "venv", "container"]
"""How software is had: the site's module, or an environment of the user of either kind."""

Quantity = Literal[
    "nodes", "gpus", "weighted_gpus", "cores", "cpus", "memory_gib", "local_disk_gib"
]
"""What a bill can count. `weighted_gpus`: each GPU counts as its type's `weight`; `cpus`: as the
scheduler counts them, threads where it counts threads."""


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where facts come from."""

    document: str
    """Repository or site."""
    commit: str = ""
    read_on: date | None = None
    """Date of the version that was read."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The GPUs of one node."""

    type: str
    """As the scheduler names it, such as `a100`."""
    typed: bool = True
    """Whether the scheduler knows that name, so that a request can ask for it."""
    count: int | None = None
    """Of one node. None: not documented, as with slices."""
    max_per_job: int | None = None
    """Most of them in one job, on whatever partition, such as one slice. None: no such limit."""
    vendor: Literal["nvidia", "amd"]
    model: str
    """Product name."""
    memory_gib: float | None = None
    """Of one GPU. None: not documented."""
    weight: float = 1.0
    """What one counts for in a bill by `weighted_gpus`, such as the Alliance's RGU."""
    part_of: str = ""
    """For a slice (MIG): the type that it is a slice of."""
    may_be_slice: bool = False
    """Whether its name does not say if it is a whole GPU."""
    per_slot: bool = False
    """Whether a request names how many each core has (Grid Engine's consumables `YES`)."""


class OtherGpus(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """GPUs of another type in the same node."""

    type: str
    count: int


class NodeKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes that are alike."""

    name: str
    count: int | None = None
    cores: int
    """Physical cores."""
    usable_cores: int | None = None
    """Cores that a job may ask for; None: all."""
    reserved_cores: tuple[int, ...] = ()
    """Cores that are kept for the system: nothing may be bound to them."""
    threads_per_core: int = 1
    """CPUs that the scheduler counts for a core."""
    sockets: int | None = None
    memory: str | None = None
    """Memory that jobs can ask for, in whole MiB: `498GiB`, `61500MiB`."""
    memory_is_named: bool = True
    """Whether a request may name it; not so on hosts whose memory Grid Engine does not count."""
    local_disk_gib: float | None = None
    """Disk of the node that a job can use; 0: the node has none."""
    gpu: Gpu | None = None
    other_gpus: tuple[OtherGpus, ...] = ()
    """GPUs of other types in the same node."""
    arch: str = "x86_64"
    constraint: str = ""
    """Value of `--constraint` that picks these nodes, where the request needs one."""
    source: str
    notes: str = ""

    @property
    def cores_for_jobs(self) -> int:
        """Cores that a job may ask for."""
        return self.usable_cores or self.cores

    @property
    def all_gpus(self) -> tuple[tuple[str, int | None], ...]:
        """Every GPU type of the node with its count, None if it is not documented."""
        if self.gpu is None:
            return ()
        others = ((other.type, other.count) for other in self.other_gpus)
        return ((self.gpu.type, self.gpu.count), *others)

    @property
    def stands_for_node(self) -> bool:
        """Whether it is the one to count: a node with GPUs of several types is of several kinds."""
        return self.gpu is None or self.gpu.type == min(name for name, _ in self.all_gpus)


class Share(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fair part of a node for one GPU: asking for more is billed, or refused, or rude."""

    gpu: str
    """GPU type."""
    cores: int | None = None
    memory: str | None = None
    """Such as `124GiB`."""
    enforced: bool = False
    """Whether more is refused."""
    automatic: tuple[Automatic, ...] = ()
    """What of it comes with the GPU and must not be named."""
    source: str


class ParallelEnvironment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a job of Grid Engine's needs to have more than one core (sge_pe(5))."""

    name: str
    rule: Literal["one_node", "fill", "spread", "fixed"]
    """Cores are all on one node (`$pe_slots`), node after node (`$fill_up`), on nodes in turns
    (`$round_robin`), or as many as `cores_per_node` on each."""
    cores_per_node: int | None = None
    max_cores: int | None = None
    """Of all of its running jobs."""
    kinds: tuple[str, ...] = ()
    """The only kinds of node that it is on; none: all of the partition's."""
    user_lists: tuple[str, ...] = ()
    """The only user lists that may use it; none: all but `denied_user_lists`."""
    denied_user_lists: tuple[str, ...] = ()


class Quota(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule of Grid Engine's resource quotas: of each set the first that matches a job holds.

    Lists of names are as sge_resource_quota(5) has them, with `!` and `*`; none: all.
    """

    name: str
    """Of its set."""
    users: tuple[str, ...] = ()
    """User lists begin with `@`."""
    projects: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    """Those that it matches."""
    kinds: tuple[str, ...] = ()
    """Kinds of node all of whose nodes it matches."""
    kinds_in_part: tuple[str, ...] = ()
    """Kinds of node some of whose nodes it matches."""
    per_node: bool = False
    """Whether it limits what is used on each node."""
    limits: dict[str, int] = {}
    """Of all running jobs that match: `cores`, `memory` (MiB), `gpu:v100`."""
    unread: tuple[str, ...] = ()
    """What it limits that is none of these."""
    source: str


class Partition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A partition (Slurm) or a queue (Grid Engine) and its limits; None: not documented."""

    name: str
    """Empty if the site's jobs name none."""
    label: str = ""
    """What Teho calls it if the name is empty, such as `GPU nodes`. Added to the name if not."""
    kinds: tuple[str, ...]
    """Names of its node kinds."""
    node_counts: dict[str, int] = {}
    """How many nodes of a kind it has, where these are not all of them."""
    takes_cpu_jobs: bool = False
    """Whether jobs without GPUs are taken on nodes that have them."""
    max_time: str | None = None
    """Such as `36h` or `3d`."""
    min_time: str | None = None
    """What is shorter is refused."""
    advised_min_time: str | None = None
    """What is shorter is taken, and not wished for."""
    min_nodes: int = 1
    max_nodes: int | None = None
    max_nodes_with_allocation: int | None = None
    """For an account that begins with one of `account.allocations`."""
    whole_nodes_if_several: bool = False
    """Whether a job on more than one node must take each of them whole."""
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
    """The same in CPUs as the scheduler counts them, threads where it counts threads."""
    default_cpus_per_gpu: int | None = None
    """What a job that does not say has with each GPU, in CPUs as the scheduler counts them."""
    default_memory_per_gpu: str | None = None
    default_memory_per_cpu: str | None = None
    default_memory_per_node: str | None = None
    """What a job has that names no memory: by its GPUs or its CPUs, else on each node."""
    max_memory_per_cpu: str | None = None
    """A job that asks for more is given more CPUs."""
    max_memory: str | None = None
    """Of each node, where it is less than the node has."""
    max_local_disk_gib: float | None = None
    """Of each node, where it is less than the node has."""
    automatic: tuple[Automatic, ...] = ()
    """What comes with the cores or the nodes and must not be named."""
    exclusive: bool = False
    """Whether whole nodes are given, and billed, whatever is asked for."""
    max_jobs: int | None = None
    """Of one user, waiting and running."""
    max_running_jobs: int | None = None
    purpose: Literal["production", "test", "interactive", "restricted"] = "production"
    """`restricted`: by invitation alone."""
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
    """The only user lists of Grid Engine's that may use it; none: all but `denied_user_lists`."""
    denied_user_lists: tuple[str, ...] = ()
    parallel_environments: tuple[ParallelEnvironment, ...] = ()
    only_parallel: bool = False
    """Whether it takes no job without one of them (Grid Engine's `qtype` is not `BATCH`)."""
    allowed_qos: tuple[str, ...] = ()
    """The only QOS that jobs may have; none: all but `denied_qos`."""
    denied_qos: tuple[str, ...] = ()
    qos: str = ""
    """The QOS that is bound to it, whose limits hold for its jobs."""
    billing: str = ""
    """Name of one of the file's `billing` tables; empty: no charge, unless `unknown` has it."""
    source: str
    notes: str = ""
    unknown: tuple[str, ...] = ()
    """Fields of this table that are not documented: limits, or `billing`."""

    @property
    def title(self) -> str:
        """What it is called on screen: its name, its label, or `name (label)` if it has both."""
        both = self.name and self.label
        return f"{self.name} ({self.label})" if both else self.name or self.label


class LocalDisk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job's own disk on the node."""

    variable: str
    """Variable that holds its path, such as `LOCAL_SCRATCH`; empty: there is none, see `path`."""
    path: str = ""
    """Its path where no variable holds it, such as `/tmp`."""
    option: str = ""
    """How an amount is asked for, with `{gib}`; empty: none is."""
    only_if_asked: bool = False
    """Whether neither disk nor variable is there unless it is asked for."""
    per_core: bool = False
    """Whether the option's amount is that of each core, not of each node."""
    min_gib: float | None = None
    """Least amount that the option takes."""
    max_gib: float | None = None
    """Largest amount that the option takes."""
    joins_gres: bool = False
    """Whether the option is a part of `--gres`, behind the GPUs."""
    default_gib: float | None = None
    """What is there without asking, as the option counts it."""
    in_memory: bool = False
    """Whether it is memory in truth and counts as the job's."""
    source: str
    notes: str = ""


class Account(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who pays."""

    required: bool
    option: str = "--account"
    example: str
    allocations: tuple[str, ...] = ()
    """How accounts with an allocation of their own begin, such as `rrg-`."""
    source: str
    notes: str = ""


class Dialect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a request is written down."""

    gpus: str
    """Option for GPUs, with `{type}` and `{count}` (of one node)."""
    gpu_type_optional: bool = False
    partition: Literal["required", "never", "optional"] = "required"
    cores: str = ""
    """Option for the cores of a job, with `{cores}`, such as `-pe smp {cores}`; empty: the
    scheduler's usual one."""
    constraint: str = "--constraint={constraint}"
    """Option that picks a kind of node, with `{constraint}`."""
    memory: Literal["node", "none", "core"] = "node"
    """Memory is asked for a node, never (it comes with GPUs, cores or nodes), or for a core."""
    memory_option: str = ""
    """Grid Engine's option for memory, with `{memory}`; empty: `-l h_vmem={memory}`."""
    memory_is_counted: bool | None = None
    """Whether the scheduler sets memory aside for jobs. Known: each job names its memory, as the
    site's defaults may be more than a node has. None: not documented, and jobs name it if the
    user does."""
    gives_whole: Literal["cores", "sockets", "cpus"] | None = None
    """What a job is given no part of. `cpus`: single threads of a core may be given."""
    default_memory_per_core: str | None = None
    """What a job gets with each core where it asks for no memory. None: not documented."""
    time_required: bool = True
    """Whether a job without a time is refused."""
    submit_from: str = ""
    """Directory that jobs must be submitted from, such as `$SCRATCH`."""
    never_submit_from: str = ""
    source: str
    notes: str = ""


class Term(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One term of a bill: `quantity × times ÷ per`, rounded up where `up` says so."""

    of: Quantity
    gpu_type: str = ""
    """With `gpus`: those of this type alone; empty: of any."""
    times: float = 1.0
    per: float = 1.0
    up: bool = False
    gpu_part: bool = False
    """Whether this term is what the GPUs themselves cost."""


class Billing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bill for one hour: `scale × (the sum of one list + the largest of the other)`."""

    unit: str
    """The site's own billing unit, such as `GPU BU`."""
    sum: tuple[Term, ...] = ()
    largest: tuple[Term, ...] = ()
    scale: float = 1.0
    source: str
    notes: str = ""


class Qos(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a quality of service of Slurm's, by its trackable resources (TRES).

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


class Binding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which cores lie nearest to each GPU, where the site documents it."""

    cores_of_gpu: tuple[tuple[int, ...], ...]
    """For each GPU, in the order of local ranks, its cores."""
    only_exclusive: bool = True
    """Whether masks are valid on whole nodes alone."""
    gpus_visible: Literal["all", "own"] = "all"
    """Whether `teho launch` shows each rank all of its node's GPUs, or its own alone."""
    source: str
    notes: str = ""


class Software(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a framework is made available in a job."""

    framework: str
    """`pytorch`, `tensorflow`, `jax`, or `any`."""
    kind: EnvironmentKind = "module"
    lines: tuple[str, ...]
    """Lines of the job script."""
    run_prefix: str = ""
    """What stands before the program's own command, such as a container's exec."""
    versions: tuple[str, ...] = ()
    """Of the module, the default first, as they stand behind its name and a slash."""
    source: str
    notes: str = ""


class GpuDriver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The NVIDIA driver of the compute nodes, which login nodes cannot ask."""

    version: str = ""
    """Such as `595.71.05`; empty: not documented."""
    cuda: str
    """Newest CUDA that it supports, which `CONDA_OVERRIDE_CUDA` may name and not exceed."""
    seen_on: date
    source: str
    notes: str = ""


class Environments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a user makes an environment of her own."""

    kinds: tuple[EnvironmentKind, ...]
    """What the site offers, in the order of its advice; it discourages what is not here."""
    place: str = "$HOME"
    """Directory that environments belong into."""
    in_job: str = ""
    """Directory, such as `$SLURM_TMPDIR`, in which each job makes a virtual environment again;
    empty: it is made once, in `place`."""
    python: tuple[str, ...] = ()
    """Lines that give the Python of virtual environments."""
    wheelhouse: bool = False
    """Whether pip has the site's own wheels, and `--no-index` keeps to them."""
    conda: tuple[str, ...] = ()
    """Lines that give conda."""
    activate: str = ""
    """How a job activates conda's environment `{name}`; empty: as conda's own hook does."""
    container: tuple[str, ...] = ()
    """Lines that give the means of making containers; none if they are there without."""
    maker: Literal["apptainer", "singularity", "tykky", ""] = ""
    """What makes containers."""
    source: str
    notes: str = ""


class Container(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Variables for communication and caches, by the containers' generation."""

    generation: str
    """Name of the generation; the first in the file is the current one."""
    variables: dict[str, str]
    """`{user}` and `{node}` stand for the user's name and the node's number."""
    directories: tuple[str, ...] = ()
    """Directories to create on each node first."""
    source: str
    notes: str = ""


class Cluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cluster."""

    name: str
    title: str
    site: str
    scheduler: Literal["slurm", "grid_engine"]
    status: Literal["active", "retired"]
    retired_on: date | None = None
    successor: str = ""
    """Name of the cluster that replaces it."""
    verified_on: date
    """When the facts were last compared with their sources."""
    hosts: tuple[str, ...] = ()
    """Patterns of host names by which the cluster is recognised."""
    recognised_by: dict[str, str] = {}
    """Environment variables, with their values, by which it is recognised."""
    internet_on_compute_nodes: bool | None = None
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
    """What Slurm's accounting holds jobs to (AccountingStorageEnforce): `associations`, `limits`,
    `qos`, `safe`."""
    counted_gpus: tuple[str, ...] = ()
    """Types of GPUs that Slurm counts one by one in limits and bills (AccountingStorageTRES)."""
    quotas: tuple[Quota, ...] = ()
    """Grid Engine's, in their order."""
    binding: Binding | None = None
    driver: GpuDriver | None = None
    """None: not documented."""
    environments: Environments | None = None
    """None: not documented."""
    software: tuple[Software, ...] = ()
    environment: tuple[Container, ...] = ()
    script_lines: tuple[str, ...] = ()
    """Lines that every job script of this cluster needs, such as unsetting a bad default."""
    conflicts: tuple[str, ...] = ()
    """Where sources disagree: which one is followed, and why."""
    notes: tuple[str, ...] = ()
