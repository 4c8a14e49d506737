"""The picture of a machine that all checks look at: taken once, and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

import msgspec

from teho.model.allocation import Allocation
from teho.model.cluster import Cluster, Gpu
from teho.model.device import Device
from teho.model.missing import Missing
from teho.model.software import Accelerator, Build, Driver, Package
from teho.model.survey import Answers, Survey

__all__ = [
    "ClockState",
    "DataSample",
    "DiskQuota",
    "Folder",
    "FrameworkReport",
    "Proxy",
    "Python",
    "ResourceLimits",
    "Snapshot",
]


class FrameworkReport(msgspec.Struct, frozen=True, kw_only=True, tag="report", tag_field="type"):
    """What a framework said when it was imported and asked."""

    version: str = ""
    kind: Accelerator = "unknown"
    toolkit: str = ""
    gpus: Union[int, None] = None
    """How many it sees; None if it could not say."""
    architectures: tuple[str, ...] = ()
    """What its kernels were compiled for, such as `sm_80`; `compute_90` is compiled at first use.
    Empty if it does not say."""
    collectives: Union[bool, None] = None
    """Whether NCCL or RCCL is there; None if it does not say."""
    why: str = ""
    """What it said of GPUs that it does not see."""
    broken: str = ""
    """Why it could not be imported."""


class Python(msgspec.Struct, frozen=True, kw_only=True):
    """The Python that a program started here would run in."""

    path: str
    version: str
    machine: str = "x86_64"
    """What it was compiled for, such as `aarch64`."""
    packages: tuple[Package, ...] = ()
    facts: dict[str, str] = {}
    """What frameworks' own files say of their build, as `builds_of` takes it."""
    frameworks: tuple[Build, ...] = ()
    """One of each framework, by what its files say; nothing was imported for it."""
    framework_reports: dict[str, Union[FrameworkReport, Missing]] = {}
    """What frameworks said that were imported; none is where there can be no GPU."""

    def kind_of(self, build: Build) -> Accelerator:
        """Return what a framework was built for: its own word, or that of its package."""
        report = self.framework_reports.get(build.framework)
        if isinstance(report, FrameworkReport) and report.kind != "unknown":
            return report.kind
        return build.kind


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder and the file system that it is on."""

    path: str
    file_system: str
    """Type as the kernel names it, such as `nfs4`."""
    mounted_on: str
    total_bytes: int
    free_bytes: int
    """For this user."""
    total_files: int
    """0: the file system does not count them."""
    free_files: int
    is_writable: bool
    holds_conda_init: bool = False
    """Whether this is a home whose `.bashrc` was written to by `conda init`."""

    @property
    def is_network(self) -> bool:
        """Whether other nodes see the same files."""
        return self.file_system in _NETWORK or self.file_system.startswith("fuse.")

    @property
    def is_memory(self) -> bool:
        """Whether what lies there takes memory."""
        return self.file_system in {"tmpfs", "ramfs"}


_NETWORK = frozenset(
    ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "pvfs2", "wekafs",
     "panfs", "afs", "9p")
)  # fmt: skip


class DiskQuota(msgspec.Struct, frozen=True, kw_only=True):
    """What a user has of one file system, and may have."""

    file_system: str
    used_bytes: int
    limit_bytes: int
    """0: no limit."""
    used_files: int
    limit_files: int
    """0: no limit."""


class DataSample(msgspec.Struct, frozen=True, kw_only=True):
    """A look into a folder of data."""

    folder: Folder
    listed: int
    """Files whose names were read."""
    is_whole: bool
    """Whether that was all of them."""
    sizes_bytes: tuple[int, ...]
    """Of some of those, drawn at random."""


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a process, as getrlimit(2) tells them; None: there is none."""

    open_files: Union[int, None]
    open_files_most: Union[int, None]
    """What a program may raise it to."""
    address_space_bytes: Union[int, None]
    locked_memory_bytes: Union[int, None]


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """The proxy that the environment names, and whether it lets anybody connect."""

    variable: str
    place: str
    """Host and port, without a password."""
    why: str = ""
    """Why nobody can connect; empty if it could be done."""


class ClockState(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel knows of its clock: adjtimex(2)."""

    is_synchronised: bool
    error_s: float
    """Largest error that the kernel thinks possible."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the checks may look at."""

    environment: Mapping[str, str]
    survey: Survey
    allocation: Allocation
    local_size: int = 1
    """Tasks that share this node's part of the job."""
    cluster: Union[Cluster, None] = None
    python: Union[Python, Missing]
    is_python_named: bool = False
    """Whether the user said which one it is."""
    folders: Mapping[str, Union[Folder, Missing]] = {}
    """By what they are: `home`, `here`, `temporary`, `shared memory`, `scratch`."""
    quotas: Union[tuple[DiskQuota, ...], Missing] = ()
    data: Union[DataSample, Missing, None] = None
    """None: no folder of data was named."""
    limits: ResourceLimits
    cores_of_numa: Mapping[int, frozenset[int]] = {}
    """Logical CPUs of each NUMA node; empty if the kernel does not report."""
    threads_per_core: int = 1
    """2 where the cores have hardware threads, each of which counts as a logical CPU."""
    proxy: Union[Proxy, Missing, None] = None
    """None: the environment names none."""
    clock: Union[ClockState, Missing]
    has_fabric: bool = False
    """Whether the node has InfiniBand, or what is spoken to like it."""
    gpu_files: tuple[str, ...] = ()
    """Device files of GPUs that are to be seen, such as `/dev/nvidia0`."""

    @property
    def in_job(self) -> bool:
        """Whether this runs in a scheduler's job."""
        return self.allocation.scheduler is not None

    @property
    def cores(self) -> frozenset[int]:
        """Logical CPUs that a program started here may run on."""
        return frozenset(self.survey.cores)

    @property
    def gpus(self) -> tuple[Device, ...]:
        """GPUs and MIG instances that a program started here would use."""
        return tuple(device for vendor in self.survey.gpus for device in vendor.devices)

    @property
    def hidden_gpus(self) -> tuple[Device, ...]:
        """Those that are here and not to be used, but for the GPUs that instances are parts of."""
        parents = {device.parent_id for device in self.gpus}
        return tuple(
            device
            for vendor in self.survey.gpus
            for device in vendor.others
            if device.id not in parents
        )

    @property
    def failed_drivers(self) -> tuple[Answers, ...]:
        """Vendors whose driver hung, or crashed whoever asked."""
        return tuple(vendor for vendor in self.survey.gpus if vendor.state == "failed")

    @property
    def expects_gpus(self) -> bool:
        """Whether a program started here has GPUs, or its job was promised some."""
        return bool(self.gpus or self.allocation.gpus_held)

    @property
    def site_gpus(self) -> tuple[Gpu, ...]:
        """GPUs of the cluster whose login node, or the like, this is; none in a job."""
        kinds = self.cluster.nodes if self.cluster and not self.in_job else ()
        return tuple(kind.gpu for kind in kinds if kind.gpu)

    @property
    def nvidia_driver(self) -> Union[Driver, None]:
        """This node's driver, or on a login node that of the compute nodes; None: not known."""
        told = next((one.versions for one in self.survey.gpus if one.of == "nvidia"), {})
        version = told.get("driver by NVML") or told.get("NVIDIA driver", "")
        if version:
            return Driver(version=version, cuda=told.get("CUDA of the driver", ""), where="here")
        if self.cluster is None or self.cluster.driver is None or not self.site_gpus:
            return None
        known = self.cluster.driver
        return Driver(
            version=known.version,
            cuda=known.cuda,
            where=f"on {self.cluster.title}'s compute nodes",
            source=known.source,
        )
