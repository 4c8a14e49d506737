"""Energy of the processors, their memory and the whole node, if this user may read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from teho.devices.host.part import Part
from teho.devices.procfile import ProcFile, names_in, read_text
from teho.model.device import Reading
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern

__all__ = ["HostEnergy", "open_host_energy"]

_METRICS = ("cpu_energy_j", "memory_energy_j", "node_energy_j", "node_power_w")

# Packages and their parts (Documentation/power/powercap). `intel-rapl-mmio` has the same counters
# again, and does not match.
_ZONE = lazy_pattern(r"intel-rapl:\d+(:\d+)?")

_PACKAGE_MOST_W = 1000.0
"""No processor draws more: the largest have a limit of 500 W (AMD EPYC 9965)."""
_METER_S = 0.9
"""Shortest time between two readings: firmware reports means over a second or more, and may be
slow."""

_NO_RAPL = Missing(
    Reason.ABSENT,
    "no RAPL counters in /sys/class/powercap: the node is a virtual machine, or has no RAPL driver",
)
_NO_MEMORY = Missing(
    Reason.UNSUPPORTED, "RAPL on this processor does not measure the energy of the memory"
)
_NO_COUNTER = Missing(
    Reason.ABSENT,
    "only Cray's pm_counters measure the energy of a whole node, and this node has no pm_counters",
)
_MAY_HAVE_WRAPPED = Missing(
    Reason.UNRECORDED,
    "the time between two samples is too long: the counter may have started again from 0",
)
_NO_POWER = Missing(Reason.FAILED, "the power meter reads 0 W, which cannot be true")
_ROOT_ONLY = (
    "since CVE-2020-8694, only root can read this counter, unless the site gives users the right "
    "to read it"
)


def open_host_energy(root: Path) -> Part:
    """Return Cray's counters if the node has them, else RAPL and the power meter."""
    if (root / "sys/cray/pm_counters").is_dir():
        from teho.devices.host.cray import PmCounters

        return PmCounters(root)
    return HostEnergy(root)


class HostEnergy(Part):
    """RAPL's counters, and the power meter of the node's firmware.

    Args:
        root: root of the file system.
    """

    metrics: tuple[str, ...] = _METRICS

    def __init__(self, root: Path) -> None:
        super().__init__()
        powercap = root / "sys/class/powercap"
        by_kind: dict[str, list[_Rapl]] = {}
        for name in sorted(filter(_ZONE.fullmatch, names_in(powercap))):
            # Such as package-0, package-0-die-1, dram. `core` and `uncore` are parts of a package,
            # and `psys` has different meanings on different boards.
            kind = read_text(powercap / name / "name").partition("-")[0]
            size = read_text(powercap / name / "max_energy_range_uj")
            counter = _Rapl(self._open(powercap / name / "energy_uj"), size)
            by_kind.setdefault(kind, []).append(counter)
        self._packages = by_kind.get("package", [])
        self._memories = by_kind.get("dram", [])
        meters = _meters(root / "sys/class/hwmon")
        self._meter = self._open(meters[0]) if len(meters) == 1 else None
        self._power: Reading = _no_meter(root, len(meters))
        self._read_s = float("-inf")

    def read(self) -> dict[str, Reading]:
        """Return the energies since the first call, and the present power."""
        no_memory = _NO_MEMORY if self._packages else _NO_RAPL
        return {
            "cpu_energy_j": _total(self._packages, _NO_RAPL),
            "memory_energy_j": _total(self._memories, no_memory),
            "node_energy_j": _NO_COUNTER,
            "node_power_w": self._read_power(),
        }

    def _read_power(self) -> Reading:
        """Return the power in W, at most a second old (hwmon, acpi_power_meter)."""
        now_s = monotonic()
        if self._meter is not None and now_s - self._read_s >= _METER_S:
            self._read_s = now_s
            data = self._meter.read()
            power_w = data if isinstance(data, Missing) else int(data) / 1e6
            self._power = _NO_POWER if power_w == 0 else power_w
        return self._power


def _total(zones: Sequence[_Rapl], nothing: Missing) -> Reading:
    """Return the sum of the zones; missing if a part is missing."""
    figures = [zone.read_j() for zone in zones]
    missing = [figure for figure in figures if isinstance(figure, Missing)]
    if missing or not figures:
        return missing[0] if missing else nothing
    return sum(figure for figure in figures if not isinstance(figure, Missing))


class _Rapl:
    """One counter of RAPL, added up over its wraps: at 200 W it may wrap every 5 minutes."""

    def __init__(self, file: ProcFile, size: str) -> None:
        self._file = file
        self._range_uj = int(size) if size.isdigit() else 0
        self._before: tuple[float, int] | None = None
        self._sum_uj = 0

    def read_j(self) -> float | Missing:
        """Return the energy since the first call, in J."""
        data = self._file.read()
        if isinstance(data, Missing):
            if data.reason is Reason.FORBIDDEN:
                return Missing(data.reason, f"{data.detail}; {_ROOT_ONLY}")
            return data
        now_s, value_uj = monotonic(), int(data)
        before, self._before = self._before, (now_s, value_uj)
        if before is None:
            return 0.0
        most_uj = (now_s - before[0]) * _PACKAGE_MOST_W * 1e6
        if 0 < self._range_uj < most_uj:
            return _MAY_HAVE_WRAPPED
        grown_uj = value_uj - before[1]
        if grown_uj < 0:
            wrapped_uj = grown_uj + self._range_uj
            # If a processor cannot draw as much, the counter was reset.
            grown_uj = wrapped_uj if 0 <= wrapped_uj <= most_uj else value_uj
        self._sum_uj += grown_uj
        return self._sum_uj / 1e6


def _no_meter(root: Path, count: int) -> Missing:
    """Return why the node has not exactly one meter."""
    if count:
        words = (
            f"this node has {count} power meters, but it is not known which of them measures the "
            "whole node"
        )
        return Missing(Reason.UNSUPPORTED, words)
    if (root / "dev/ipmi0").exists():
        words = "this node has no ACPI power meter, and only root can read IPMI (/dev/ipmi0)"
        return Missing(Reason.FORBIDDEN, words)
    return Missing(Reason.ABSENT, "this node has neither an ACPI power meter nor IPMI")


def _meters(hwmon: Path) -> list[Path]:
    """Return the files of all ACPI power meters; older kernels keep them in `device`."""
    folders = [hwmon / name / inner for name in names_in(hwmon) for inner in ("", "device")]
    found = [folder for folder in folders if read_text(folder / "name") == "power_meter"]
    files = [folder / "power1_average" for folder in found]
    return sorted({file.resolve() for file in files if file.exists()})
