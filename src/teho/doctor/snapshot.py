"""The facts about a machine that all checks judge. They are collected once, and never change."""

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
    "Conda",
    "CondaFile",
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
    """Answers of a framework that was imported."""

    version: str = ""
    kind: Accelerator = "unknown"
    toolkit: str = ""
    gpus: Union[int, None] = None
    """Number of GPUs that it sees; None if it does not report it."""
    architectures: tuple[str, ...] = ()
    """GPUs that its kernels were compiled for, such as `sm_80`; empty if it does not report them.
    `compute_90` is compiled at first use."""
    collectives: Union[bool, None] = None
    """Whether it has NCCL or RCCL; None if it does not report it."""
    why: str = ""
    """Why it sees no GPUs."""
    broken: str = ""
    """Why it could not be imported."""


class Python(msgspec.Struct, frozen=True, kw_only=True):
    """The Python in which a program started here would run."""

    path: str
    version: str
    machine: str = "x86_64"
    """The architecture that it was compiled for, such as `aarch64`."""
    packages: tuple[Package, ...] = ()
    facts: dict[str, str] = {}
    """Facts from the frameworks' files about their build, in the form that `builds_of` takes."""
    frameworks: tuple[Build, ...] = ()
    """One of each framework, read from its files, without an import."""
    framework_reports: dict[str, Union[FrameworkReport, Missing]] = {}
    """Answers of the imported frameworks. Without a GPU, none is imported."""

    def kind_of(self, build: Build) -> Accelerator:
        """Return what a framework was built for, as it or its package reports."""
        kind = self.report_of(build).kind
        return build.kind if kind == "unknown" else kind

    def report_of(self, build: Build) -> FrameworkReport:
        """Return the answers of an imported framework; an empty report if it gave none."""
        report = self.framework_reports.get(build.framework)
        return report if isinstance(report, FrameworkReport) else FrameworkReport()

    @property
    def gpu_builds(self) -> list[Build]:
        """The frameworks that are not built only for CPUs."""
        return [one for one in self.frameworks if self.kind_of(one) != "cpu"]


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder and its file system."""

    path: str
    file_system: str
    """Type as the kernel names it, such as `nfs4`."""
    mounted_on: str
    total_bytes: int
    free_bytes: int
    """That this user may fill."""
    total_files: int
    """0: the file system does not count files."""
    free_files: int
    is_writable: bool
    has_conda_init: bool = False
    """Whether this is a home folder, and `conda init` has changed its `.bashrc`."""

    @property
    def is_network(self) -> bool:
        """Whether it is on a network file system."""
        return self.file_system in _NETWORK or self.file_system.startswith("fuse.")

    @property
    def is_memory(self) -> bool:
        """Whether its files take memory."""
        return self.file_system in {"tmpfs", "ramfs"}


_NETWORK = frozenset(
    ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "pvfs2", "wekafs",
     "panfs", "afs", "9p")
)  # fmt: skip


class DiskQuota(msgspec.Struct, frozen=True, kw_only=True):
    """A user's quota on one file system, and how much of it is used."""

    file_system: str
    used_bytes: int
    limit_bytes: int
    """0: no limit."""
    used_files: int
    limit_files: int
    """0: no limit."""


class DataSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample of the files in a folder."""

    folder: Folder
    listed: int
    """Number of files whose names were read."""
    is_whole: bool
    """Whether these are all files."""
    sizes_bytes: tuple[int, ...]
    """Sizes of some of these files, drawn at random."""


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a process from getrlimit(2); None: unlimited."""

    open_files: Union[int, None]
    open_files_most: Union[int, None]
    """The highest value that a program may set."""
    address_space_bytes: Union[int, None]
    locked_memory_bytes: Union[int, None]


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """The proxy that the environment names, and whether it answers."""

    variable: str
    place: str
    """Host and port, without the password."""
    why: str = ""
    """Why it does not answer; empty if it does."""


class CondaFile(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration file of conda."""

    path: str
    channels: tuple[str, ...] = ()
    """Its list `channels`, in its order."""
    redefines_defaults: bool = False
    """Whether it has `default_channels`: then `defaults` is another channel than conda's own."""
    is_writable: bool = True
    why: str = ""
    """Why its channels cannot be read; empty if they can."""


class Conda(msgspec.Struct, frozen=True, kw_only=True):
    """The conda, mamba or micromamba of this user, and its configuration."""

    command: str
    """Path of the command; empty: none. A site's module may add it later."""
    files: tuple[CondaFile, ...] = ()
    """The file whose settings win is the first."""


class ClockState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the kernel's clock, from adjtimex(2)."""

    is_synchronised: bool
    error_s: float
    """The largest error that the kernel assumes."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All facts that the checks may use."""

    environment: Mapping[str, str]
    survey: Survey
    allocation: Allocation
    local_size: int = 1
    """Number of tasks of the job on this node."""
    cluster: Union[Cluster, None] = None
    python: Union[Python, Missing]
    is_python_named: bool = False
    """Whether the user named this Python."""
    folders: Mapping[str, Union[Folder, Missing]] = {}
    """By their use: `home`, `here`, `temporary`, `shared memory`, `scratch`."""
    quotas: Union[tuple[DiskQuota, ...], Missing] = ()
    data: Union[DataSample, Missing, None] = None
    """None: the user named no data."""
    conda: Union[Conda, Missing, None] = None
    """None: it was not searched."""
    limits: ResourceLimits
    cores_of_numa: Mapping[int, frozenset[int]] = {}
    """Logical CPUs of each NUMA node; empty if the kernel does not report."""
    threads_per_core: int = 1
    """2 if each core has two logical CPUs."""
    proxy: Union[Proxy, Missing, None] = None
    """None: the environment names none."""
    clock: Union[ClockState, Missing]
    has_fabric: bool = False
    """Whether the node has InfiniBand or RDMA over Ethernet."""
    gpu_files: tuple[str, ...] = ()
    """Visible device files of GPUs, such as `/dev/nvidia0`."""

    @property
    def in_job(self) -> bool:
        """Whether this process is part of a job."""
        return self.allocation.scheduler is not None

    @property
    def cores(self) -> frozenset[int]:
        """Logical CPUs on which a program started here may run."""
        return frozenset(self.survey.cores)

    @property
    def gpus(self) -> tuple[Device, ...]:
        """GPUs and MIG instances that a program started here can use."""
        return tuple(device for vendor in self.survey.gpus for device in vendor.devices)

    @property
    def hidden_gpus(self) -> tuple[Device, ...]:
        """GPUs of this node that a program cannot use, without the GPUs of used MIG instances."""
        parents = {device.parent_id for device in self.gpus}
        return tuple(
            device
            for vendor in self.survey.gpus
            for device in vendor.others
            if device.id not in parents
        )

    @property
    def failed_drivers(self) -> tuple[Answers, ...]:
        """Vendors whose driver hung or crashed."""
        return tuple(vendor for vendor in self.survey.gpus if vendor.state == "failed")

    @property
    def expects_gpus(self) -> bool:
        """Whether a program started here has GPUs, or its job should have some."""
        return bool(self.gpus or self.allocation.gpus_held)

    @property
    def site_gpus(self) -> tuple[Gpu, ...]:
        """GPUs of the compute nodes, if this is a login node or a similar one; empty in a job."""
        kinds = self.cluster.nodes if self.cluster and not self.in_job else ()
        return tuple(kind.gpu for kind in kinds if kind.gpu)

    @property
    def nvidia_driver(self) -> Union[Driver, None]:
        """This node's driver, on a login node the compute nodes' driver; None: not known."""
        versions = next((one.versions for one in self.survey.gpus if one.source == "nvidia"), {})
        version = versions.get("driver by NVML") or versions.get("NVIDIA driver", "")
        if version:
            return Driver(
                version=version, cuda=versions.get("CUDA of the driver", ""), where="here"
            )
        if self.cluster is None or self.cluster.driver is None or not self.site_gpus:
            return None
        known = self.cluster.driver
        return Driver(
            version=known.version,
            cuda=known.cuda,
            where=f"on {self.cluster.title}'s compute nodes",
            source=known.source,
        )
