"""What a node has, and what it was asked."""

from __future__ import annotations

from typing import Literal, Protocol, Union

import msgspec

from teho.model.missing import Missing

__all__ = ["Device", "DeviceSource", "Reading", "Readings"]

Reading = Union[float, int, list[float], Missing]
"""One value of one metric, or why there is none."""

Readings = dict[str, dict[str, Reading]]
"""Device id -> metric name -> reading."""


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU (or MIG instance) that belongs to the job."""

    id: str
    """UUID: stays the same for ever, unlike the index."""
    index: int
    """Position in the vendor's own list; may change at the next boot."""
    name: str
    """Product name as the driver gives it."""
    vendor: str
    """`nvidia` or `amd`."""
    memory_bytes: int | None = None
    pci_bus_id: str | None = None
    numa_node: int | None = None
    parent_id: str | None = None
    """UUID of the physical GPU, for a MIG instance."""
    power_limit_w: float | None = None
    architecture: str = ""
    """CUDA compute capability such as `9.0`, or the name of AMD's instruction set such as `gfx90a`;
    empty if not known."""
    package_id: str | None = None
    """What devices have in common that share one sensor of power and energy, such as the two dies
    of an MI250X; None: this one has its own."""
    energy_of: Literal["device", "package", "module"] = "device"
    """What its energy counter counts: itself, all devices of its package, or its module with the
    CPU (GH200)."""


class DeviceSource(Protocol):
    """Something on this node that can be asked for readings, such as all NVIDIA GPUs.

    A source may raise `DeviceError` from its constructor when there is nothing to
    ask; after that it never raises: what cannot be read is a `Missing` value.
    """

    devices: tuple[Device, ...]
    """The GPUs it reads; empty for the host itself."""

    notes: tuple[str, ...]
    """Sentences for the report about what could not be found out at the start."""

    def read(self, pids: frozenset[int], *, ends: bool = False) -> Readings:
        """Read every metric now; what is dear or changes slowly may come in some readings only.

        Gauges that the kernel or driver gives as counters (CPU time, PCIe bytes)
        are returned as the mean since the previous call; they are left out of the
        first call. Counters are returned as they are, from whatever start they have.

        Args:
            pids: the program's live processes, for per-process readings.
            ends: whether a run begins or ends here: then every counter is read.
        """
        ...

    def alerts(self) -> list[str]:
        """Return what has happened since the last call and must not be missed, as sentences."""
        ...

    def close(self) -> None:
        """Let go of the device; safe to call twice."""
        ...
