"""Energy and power counters of Cray nodes: /sys/cray/pm_counters.

The blade's controller measures node, processors and memory ten times per second. Every user can
read this: `921658274 J 1700000000123456 us` (HPE Cray EX System Software, "User Access to Compute
Node Power Data"). Files such as `accel0_energy` are not read, because the documentation does not
say to which card they belong. The GPUs have their own counters.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from teho.devices.host.part import Part
from teho.model.device import Reading
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern

__all__ = ["PmCounters"]

_FILES = {
    "node_energy_j": ("energy", b"J"),
    "node_power_w": ("power", b"W"),
    "cpu_energy_j": ("cpu_energy", b"J"),
    "memory_energy_j": ("memory_energy", b"J"),
}
_ANSWER = lazy_pattern(rb"(\d{1,18}) ([JW])(?: \d{1,20} us)?\s*")
"""Early systems write no time stamp."""

_STALE_S = 2.0
"""Twenty missing updates."""
_STALE = Missing(
    Reason.FAILED,
    "pm_counters/freshness does not change: the node's controller sends no new values",
)


class PmCounters(Part):
    """Cray's counters of the whole node, as one part of the host.

    Args:
        root: root of the file system.
        clock: seconds from any start.
    """

    metrics: tuple[str, ...] = tuple(_FILES)

    def __init__(self, root: Path, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        directory = root / "sys/cray/pm_counters"
        self._files = {metric: self._open(directory / name) for metric, (name, _) in _FILES.items()}
        self._freshness = self._open(directory / "freshness")
        self._clock = clock
        self._fresh: bytes | Missing | None = None
        self._fresh_at_s = 0.0

    def read(self) -> dict[str, Reading]:
        """Return the present counters, each since its own start."""
        if self._is_stale():
            return self._all(_STALE)
        return {metric: self._value(metric) for metric in self.metrics}

    def _is_stale(self) -> bool:
        now_s, fresh = self._clock(), self._freshness.read()
        if isinstance(fresh, Missing) or fresh != self._fresh:
            self._fresh, self._fresh_at_s = fresh, now_s
        return now_s - self._fresh_at_s >= _STALE_S

    def _value(self, metric: str) -> Reading:
        answer = self._files[metric].read()
        if isinstance(answer, Missing):
            return answer
        name, unit = _FILES[metric]
        found = _ANSWER.fullmatch(answer)
        if not found or found[2] != unit:
            words = answer.strip().decode("ascii", "backslashreplace")[:60]
            return Missing(
                Reason.FAILED,
                f"pm_counters/{name} contains '{words}', which is not a number with the unit "
                f"{unit.decode()}",
            )
        if metric == "node_power_w" and int(found[1]) == 0:
            return Missing(Reason.FAILED, "pm_counters/power reads 0 W, which cannot be true")
        return float(found[1])
