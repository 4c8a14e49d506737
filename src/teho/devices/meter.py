"""The energy counters of the job's GPUs on this node. They are quick to open and read."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from teho.devices.sources import VENDORS, open_each
from teho.devices.vendor import EnergyCounters, Vendor
from teho.errors import DeviceError
from teho.model.device import Device, DeviceSource, Reading
from teho.model.missing import Missing, Reason
from teho.model.summary import Figure

__all__ = ["Meter", "added", "counted_with", "drawn", "without_counter"]

_STUCK_S = 1.0
"""NVML's counter advances about every 100 ms. After ten times that without an advance, it is
stuck."""
_WRAP_S = 60.0
"""The MI100's counter starts again from 0 every 65.5 kJ (`teho.devices.amd.counters`). In one
minute this would need more than 1 kW, which the GPU cannot draw."""
_MAY_HAVE_WRAPPED = Missing(
    Reason.UNSUPPORTED,
    "this GPU's energy counter starts again from 0 every few minutes; `teho energy -- COMMAND` "
    "measures the GPU's power instead",
)
_STARTED_AGAIN = Missing(
    Reason.FAILED,
    "the energy counter started again from 0: this happens when the driver is loaded again",
)
_STUCK = Missing(
    Reason.FAILED,
    "the energy counter of the GPU does not change, although a GPU always draws power",
)


class Meter:
    """All energy counters of the job's GPUs on this node.

    Args:
        environment: the program's, with variables such as `CUDA_VISIBLE_DEVICES`.
        root: a folder that contains `sys` and `proc`.

    Attributes:
        devices: the GPUs, in the program's order.
        notes: sentences that a reader of the figures needs.

    Raises:
        DeviceError: this node has no GPU of the job; the text has the reason for each vendor.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> None:
        self._counters, refusals = open_each(lambda vendor: _open(vendor, environment, root))
        if not self._counters:
            raise DeviceError(
                "Teho cannot read the energy of any GPU: " + "; ".join(it.found for it in refusals),
                next_step="`teho devices` shows the GPUs of this node",
            )
        self.devices = tuple(device for part in self._counters for device in part.devices)
        self.notes = tuple(note for part in self._counters for note in part.notes)
        # A measured function does not close its meter, so garbage collection does. At the end of
        # the process the kernel does.
        self._closing = weakref.finalize(self, _close, self._counters)
        self._closing.atexit = False

    def read(self) -> list[Reading]:
        """Return the present counters in J, one for each of `devices`."""
        if len(self._counters) == 1:
            return self._counters[0].read()
        return [reading for part in self._counters for reading in part.read()]

    def close(self) -> None:
        """Close the devices; can be called twice."""
        self._closing()


def _close(counters: Sequence[EnergyCounters]) -> None:
    for part in counters:
        part.close()


def _open(vendor: Vendor, environment: Mapping[str, str], root: Path) -> EnergyCounters:
    if vendor.open_counters:
        return vendor.open_counters(environment, root)
    return _OfSource(vendor.open_source(environment, root))


class _OfSource:
    """The counters of a vendor whose source reads them only with all other metrics."""

    def __init__(self, source: DeviceSource) -> None:
        self._source = source
        self.devices, self.notes = source.devices, source.notes

    def read(self) -> list[Reading]:
        readings = self._source.read(frozenset())
        return [readings[device.id]["gpu_energy_j"] for device in self.devices]

    def close(self) -> None:
        self._source.close()


def drawn(
    devices: Sequence[Device], before: Sequence[Reading], after: Sequence[Reading], elapsed_s: float
) -> list[Figure]:
    """Return the increase of each counter between two readings of a meter, in J.

    The figure is missing if a counter fell, did not advance for more than a second, or may have
    wrapped.
    """
    return [
        _grown(device, old, new, elapsed_s)
        for device, old, new in zip(devices, before, after, strict=True)
    ]


def _grown(device: Device, old: Reading, new: Reading, elapsed_s: float) -> Figure:
    if isinstance(old, Missing):
        return old
    if isinstance(new, Missing):
        return new
    if elapsed_s > _WRAP_S and _wraps_early(device):
        return _MAY_HAVE_WRAPPED
    if isinstance(old, list) or isinstance(new, list) or new < old:
        return _STARTED_AGAIN
    if new == old and elapsed_s > _STUCK_S:
        return _STUCK
    return float(new - old)


def _wraps_early(device: Device) -> bool:
    """Return whether a counter wraps so early that two readings do not give its increase."""
    vendor = VENDORS.get(device.vendor)
    return vendor is not None and device.architecture in vendor.short_counters


def without_counter(devices: Sequence[Device], readings: Sequence[Reading]) -> dict[int, Missing]:
    """Return why two readings of a counter do not give a device's energy: place -> reason."""
    figures: list[Figure] = [
        reading if isinstance(reading, Missing) else 0.0 for reading in readings
    ]
    elsewhere = counted_with(devices, figures)
    reasons = {
        place: figure if isinstance(figure, Missing) else _MAY_HAVE_WRAPPED
        for place, (device, figure) in enumerate(zip(devices, figures, strict=True))
        if isinstance(figure, Missing) or _wraps_early(device)
    }
    return {place: reason for place, reason in reasons.items() if place not in elsewhere}


def counted_with(devices: Sequence[Device], figures: Sequence[Figure]) -> dict[int, int]:
    """Return the devices whose energy another device reports: place -> place of that device.

    The two dies of an MI250X have one counter, and one die reports it.
    """
    if all(device.package_id is None for device in devices):
        return {}
    holders: dict[str, int] = {}
    for place, (device, figure) in enumerate(zip(devices, figures, strict=True)):
        if device.package_id is not None and not isinstance(figure, Missing):
            holders.setdefault(device.package_id, place)
    return {
        place: holders[device.package_id]
        for place, device in enumerate(devices)
        if device.package_id in holders and holders[device.package_id] != place
    }


def added(devices: Sequence[Device], figures: Sequence[Figure]) -> Figure:
    """Return the sum of energies, each package once; missing if a part is missing."""
    twice = counted_with(devices, figures)
    parts = [figure for place, figure in enumerate(figures) if place not in twice]
    missing = [part for part in parts if isinstance(part, Missing)]
    if missing:
        return missing[0]
    return sum(part for part in parts if not isinstance(part, Missing))
