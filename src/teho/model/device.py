"""Devices of a node, and their readings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol, Union

import msgspec

from teho.model.missing import Missing

__all__ = [
    "Device",
    "DeviceFact",
    "DeviceSource",
    "GpuDetails",
    "GpuProcess",
    "GpuState",
    "ProcessType",
    "Reading",
    "Readings",
]

Reading = Union[float, int, list[float], Missing]
"""One value of one metric, or why it is missing."""

Readings = dict[str, dict[str, Reading]]
"""Device id -> metric name -> reading."""

DeviceFact = Union[str, Missing, None]
"""A fact that does not change while a program runs, or why it is missing. None: it was not
recorded, because the recording is from an older Teho or from a log."""

ProcessType = Literal["MPS", "compute", "graphics"]
"""How a process uses a GPU. `MPS`: it computes through NVIDIA's Multi-Process Service."""


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU (or MIG instance) that belongs to the job."""

    id: str
    """UUID, which never changes, unlike the index."""
    index: int
    """Position in the vendor's own list; may change at the next boot."""
    name: str
    """Product name from the driver."""
    vendor: str
    """`nvidia` or `amd`."""
    memory_bytes: int | None = None
    pci_bus_id: str | None = None
    numa_node: int | None = None
    parent_id: str | None = None
    """UUID of the physical GPU, for a MIG instance."""
    power_limit_w: float | None = None
    power_default_w: float | None = None
    """The maker's power limit; a site may have set another one."""
    architecture: str = ""
    """CUDA compute capability such as `9.0`, or the name of AMD's instruction set such as `gfx90a`;
    empty if not known."""
    package_id: str | None = None
    """Id of devices that share one sensor of power and energy, such as the two dies of an MI250X.
    None: this device has its own sensor."""
    energy_of: Literal["device", "package", "module"] = "device"
    """Part that its energy counter counts: the device, all devices of its package, or its module
    with the CPU (GH200)."""
    driver: DeviceFact = None
    """Version of its driver."""
    platform: DeviceFact = None
    """The vendor's software for computing: `CUDA 12.4` is the newest CUDA version that the driver
    supports, `ROCm 6.2.0` is the ROCm version on the node."""
    compute_mode: DeviceFact = None
    """Which processes may compute on it: `default` (all), `exclusive process` (one process at a
    time), `exclusive thread`, or `prohibited` (none). A MIG instance has the mode of its GPU."""


class GpuProcess(NamedTuple):
    """How one process uses one GPU."""

    memory_bytes: float | None
    """Its memory on this GPU; None: it is not reported."""
    types: tuple[ProcessType, ...] = ()
    """Empty: not known."""


class GpuState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The present state of a GPU that is sent to viewers, and is not recorded."""

    p_state: Union[int, Missing]
    """The driver's performance state, from 0 (fastest) to 15. A MIG instance has its GPU's."""
    unlisted: dict[ProcessType, Missing] = {}
    """Types of processes that cannot be listed, and why."""


class GpuDetails(NamedTuple):
    """Everything about a GPU that only viewers need."""

    state: GpuState
    processes: Mapping[int, GpuProcess]
    """The program's processes that use it, by process id."""


class DeviceSource(Protocol):
    """A source of readings on this node, such as all NVIDIA GPUs.

    The constructor may raise `DeviceError` if the source does not exist here. After that, no
    method raises: a reading that fails is a `Missing` value.
    """

    devices: tuple[Device, ...]
    """The GPUs that it reads; empty for the host."""

    notes: tuple[str, ...]
    """Sentences for the report about facts that could not be found at the start."""

    def read(self, pids: frozenset[int], *, ends: bool = False) -> Readings:
        """Read every metric now. Slow or slowly changing metrics may be in only some readings.

        Gauges that the kernel or driver provides as counters (CPU time, PCIe bytes) are returned
        as the mean since the previous call. The first call omits them. Counters are returned
        unchanged.

        Args:
            pids: the program's live processes, for per-process readings.
            ends: whether a run begins or ends now: then every counter is read.
        """
        ...

    def details(self) -> dict[str, GpuDetails]:
        """Return what only viewers need about each GPU, by device id.

        The processes are those of the last read. The recorder calls it only if a viewer waits.
        """
        ...

    def alerts(self) -> list[str]:
        """Return important events since the last call, as sentences."""
        ...

    def close(self) -> None:
        """Close the device; safe to call twice."""
        ...
