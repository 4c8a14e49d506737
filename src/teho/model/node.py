"""The nodes of a cluster: cores, GPUs, memory and disk, as a cluster's file has them."""

from __future__ import annotations

from datetime import date
from typing import Literal

import msgspec

__all__ = [
    "Automatic",
    "Binding",
    "Gpu",
    "GpuDriver",
    "LocalDisk",
    "NodeKind",
    "OtherGpus",
    "Share",
]

Automatic = Literal["cores", "memory"]
"""What a job gets automatically, so a request must not name it."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The GPUs of one node."""

    type: str
    """Name that the scheduler uses, such as `a100`."""
    typed: bool = True
    """Whether the scheduler knows `type`, so that a request can contain `type`."""
    count: int | None = None
    """Number of GPUs of one node. Without this key, the number is not documented, for example for
    MIG slices."""
    max_per_job: int | None = None
    """Largest number of these GPUs in one job, in any partition. For example, a job may have only
    one MIG slice. Without this key, there is no such limit."""
    vendor: Literal["nvidia", "amd"]
    model: str
    """Product name."""
    memory_gib: float | None = None
    """Memory of one GPU. Without this key, the memory is not documented."""
    weight: float = 1.0
    """Weight of one GPU in a bill that counts `weighted_gpus`. For the Alliance, the weight is the
    number of RGU (reference GPU units) of one GPU."""
    part_of: str = ""
    """For a slice (MIG): the type of the whole GPU."""
    may_be_slice: bool = False
    """True if the name does not say whether this is a whole GPU or a MIG slice."""
    per_energy_counter: int = 1
    """Number of GPUs that share one energy counter, for example 2 for the halves of an MI250X."""
    per_slot: bool = False
    """Whether the number of GPUs in a request is for each core (consumable `YES` in Grid
    Engine)."""


class OtherGpus(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """GPUs of another type in the same node."""

    type: str
    count: int


class NodeKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes with the same hardware."""

    name: str
    count: int | None = None
    cores: int
    """Physical cores."""
    usable_cores: int | None = None
    """Number of cores that a job may request. Without this key: all cores."""
    reserved_cores: tuple[int, ...] = ()
    """Cores that are reserved for the system. No task may be bound to them."""
    threads_per_core: int = 1
    """Number of CPUs that the scheduler counts for one core."""
    sockets: int | None = None
    memory: str | None = None
    """Memory that jobs can request, in whole MiB, such as `498GiB` or `61500MiB`."""
    memory_is_named: bool = True
    """Whether a request may contain an amount of memory. False if Grid Engine does not count memory
    on these nodes."""
    local_disk_gib: float | None = None
    """Disk of the node that a job can use. 0: the node has no such disk."""
    gpu: Gpu | None = None
    other_gpus: tuple[OtherGpus, ...] = ()
    """GPUs of other types in the same node."""
    arch: str = "x86_64"
    constraint: str = ""
    """Value of `--constraint` that selects these nodes. Empty: a request needs no
    `--constraint`."""
    source: str
    notes: str = ""

    @property
    def cores_for_jobs(self) -> int:
        """Cores that a job may request."""
        return self.usable_cores or self.cores

    @property
    def all_gpus(self) -> tuple[tuple[str, int | None], ...]:
        """Every GPU type of the node with its count. None: not documented."""
        if self.gpu is None:
            return ()
        others = ((other.type, other.count) for other in self.other_gpus)
        return ((self.gpu.type, self.gpu.count), *others)

    @property
    def counts_nodes(self) -> bool:
        """Whether to count the nodes by this kind: nodes with several GPU types have several."""
        return self.gpu is None or self.gpu.type == min(name for name, _ in self.all_gpus)


class Share(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cores and the memory of a node that the site intends for one GPU.

    Larger requests cost more, are refused, or are unfair to other users.
    """

    gpu: str
    """GPU type."""
    cores: int | None = None
    memory: str | None = None
    """Memory for one GPU, such as `124GiB`."""
    enforced: bool = False
    """Whether a larger request is refused."""
    automatic: tuple[Automatic, ...] = ()
    """Resources that a job gets automatically with the GPU. A request must not contain them."""
    source: str


class LocalDisk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The disk on a node that a job can use for its files."""

    variable: str
    """Environment variable with the path of the disk, such as `LOCAL_SCRATCH`. Empty: no variable
    has the path; see `path`."""
    path: str = ""
    """Path of the disk if no variable has the path, such as `/tmp`."""
    option: str = ""
    """Option that requests an amount of disk. Teho replaces `{gib}` by this amount. Empty: there is
    no such option."""
    only_if_asked: bool = False
    """Whether the disk and the variable exist only if the job requests disk."""
    per_core: bool = False
    """Whether the option's amount is for each core, not for each node."""
    min_gib: float | None = None
    """Smallest amount that the option accepts."""
    max_gib: float | None = None
    """Largest amount that the option accepts."""
    joins_gres: bool = False
    """Whether the option is a part of `--gres`, after the GPUs."""
    default_gib: float | None = None
    """Amount that a job gets if the job requests no disk. Like the amount in `option`, it is for
    each node or for each core."""
    in_memory: bool = False
    """Whether the disk is a file system in memory. Its files then count as the job's memory."""
    source: str
    notes: str = ""

    @property
    def place(self) -> str:
        """Its directory, such as `$LOCAL_SCRATCH` or `/tmp`."""
        return f"${self.variable}" if self.variable else self.path


class Binding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cores nearest to each GPU, as the site documents them."""

    cores_of_gpu: tuple[tuple[int, ...], ...]
    """The cores of each GPU, in the order of local ranks."""
    only_exclusive: bool = True
    """Whether tasks can be bound to these cores only if the job gets whole nodes."""
    gpus_visible: Literal["all", "own"] = "all"
    """Whether `teho launch` shows each rank all GPUs of its node, or only the rank's GPU."""
    source: str
    notes: str = ""


class GpuDriver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The NVIDIA driver of the compute nodes, whose version cannot be read on a login node."""

    version: str = ""
    """Version, such as `595.71.05`. Empty: not documented."""
    cuda: str
    """Newest CUDA version that the driver supports. This version is the largest value for
    `CONDA_OVERRIDE_CUDA`."""
    seen_on: date
    source: str
    notes: str = ""
