"""Reads a GPU while a program is timed on it: its use, and its throttling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from teho.model.device import Device, DeviceSource

__all__ = ["Seen", "Watch"]

_THROTTLES = ("gpu_thermal_throttle_percent", "gpu_power_throttle_percent")
_BUSY = "gpu_busy_percent"
_FEWEST_READINGS = 4
"""Drivers report the use of the last second at most, and readings are a quarter of a second
apart: with fewer of them, the mean could be about the phase before."""


class Seen(NamedTuple):
    """What was read during one phase; None: the device does not report it, or there is no GPU."""

    thermal_throttle_percent: float | None = None
    """The most."""
    power_throttle_percent: float | None = None
    """The most."""
    busy_percent: float | None = None
    """The mean; also None if the phase was too short."""


class Watch:
    """Reads the GPUs of a placement.

    Args:
        sources: of all GPUs.
    """

    def __init__(self, sources: Iterable[DeviceSource]) -> None:
        self._sources = list(sources)
        self._read: dict[str, list[float]] = defaultdict(list)

    def sample(self, gpus: Iterable[Device]) -> None:
        """Read these GPUs once."""
        ids = {gpu.id for gpu in gpus}
        for source in self._sources:
            for device, readings in source.read(frozenset()).items():
                for name in (*_THROTTLES, _BUSY) if device in ids else ():
                    value = readings.get(name)
                    if isinstance(value, (int, float)):
                        self._read[name].append(value)

    def seen(self) -> Seen:
        """Return what was read since the last call."""
        read, self._read = self._read, defaultdict(list)
        heat, power = (max(read[name], default=None) for name in _THROTTLES)
        busy = read[_BUSY]
        return Seen(heat, power, fmean(busy) if len(busy) >= _FEWEST_READINGS else None)
