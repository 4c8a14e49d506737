"""Figures from the counters in the table `gpu_metrics`: energy, activity and throttling."""

from __future__ import annotations

from teho.devices.amd.files import FOR_GOOD
from teho.devices.amd.metrics import MetricsFile, Table
from teho.devices.amd.packages import SILENT_DIE
from teho.devices.amd.topology import AmdGpu
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["Activity", "Counters", "EnergyCounter", "throttling"]

_METRICS = ("gpu_energy_j", "gpu_thermal_throttle_percent", "gpu_power_throttle_percent")
"""Metrics that need the table."""

_TICK_J = 2**-16
"""15.259 uJ: smu13_driver_if_aldebaran.h (MI200), kgd_pp_interface.h (MI300). AMD's libraries
use 15.3 uJ, which is 0.27 % too much, also for the MI100."""
_COUNTER_BITS = {"gfx908": 32, "gfx90a": 64, "gfx940": 64, "gfx941": 64, "gfx942": 64, "gfx950": 64}
"""Width of the energy counter by instruction set. The MI100's has 32 bits in a field of 64
(struct gpu_metrics_v1_0). It wraps every 65.5 kJ, which is four minutes at 300 W."""
_MOST_W = 1000
"""No GPU with a counter of 32 bits draws more. A larger increase means a reset, not a wrap."""
_STILL_S = 1.0
"""The firmware adds every millisecond (see `_steps`). After a second without a step it is stuck."""

_POWER_NOT_REQUESTED = Missing(Reason.UNRECORDED, "power was not requested")
_STILL = Missing(Reason.FAILED, "the energy counter does not change while the GPU draws power")
_BACKWARD = Missing(Reason.FAILED, "the energy counter decreased below its last value")
_LEFT_OUT = Missing(Reason.UNSUPPORTED, "the driver does not report energy in gpu_metrics")
_EMPTY = Missing(Reason.FAILED, "the energy counter reads 0")
_NO_CAUSES = Missing(
    Reason.UNSUPPORTED, "gpu_metrics reports reasons for reduced clocks only from version 1.3 on"
)

# Bits of the status that all GPUs share (SMU_THROTTLER_* in amdgpu_smu.h).
_POWER_CAUSES = 0x0000_0000_00FF_00FF
"""Power limits (bits 0 to 7) and current limits (bits 16 to 23)."""
_HEAT_CAUSES = 0x0000_FFFF_0000_0000
"""Temperatures, hot regulators and PROCHOT (bits 32 to 47)."""
# Bits of the MI300's status (THROTTLER_* in smu_v13_0_6_ppt.c): PROCHOT 0, socket 2,
# regulators 3, HBM 4; the power limit is 1.
_POWER_MI300 = 0b00010
_HEAT_MI300 = 0b11101
_HEAT_RESIDENCIES = ("prochot", "socket", "regulator", "hbm")

_FIRMWARE_MS = 100_000
"""Steps of the firmware's time stamp per millisecond: one is 10 ns (kgd_pp_interface.h)."""
_PROVING = 20
"""Readings for which a sum is compared with the driver's figure before it is used."""
_ROUNDING_PERCENT = 5.0
"""Limit above 100 % for a mean, because sums and clock are read at different times."""


class EnergyCounter:
    """One GPU's energy in J, checked for resets and for a stuck counter.

    Args:
        name: the GPU's name in alerts.
        architecture: instruction set, which determines the counter's unit and width.
        at_zero: meaning of a counter of 0.

    Attributes:
        alerts: sentences for the report; the caller removes them.
    """

    def __init__(self, name: str, architecture: str, at_zero: Missing | None = None) -> None:
        self.alerts: list[str] = []
        self._name = name
        self._architecture = architecture
        self._bits = _COUNTER_BITS.get(architecture, 0)
        self._at_zero = at_zero or _EMPTY
        self._last = 0
        self._last_s = 0.0
        self._moved_s = 0.0
        self._wrapped = 0
        self._is_still = False

    def read(self, table: Table, power_w: Reading) -> Reading:
        """Return the energy since the counter's start, or why it is not known."""
        ticks = table.get("energy")
        if ticks is None:
            return _LEFT_OUT
        if not self._bits:
            return Missing(
                Reason.UNSUPPORTED,
                f"the energy counter's unit is not known for {self._architecture or 'this GPU'}",
            )
        if ticks == 0:
            return self._at_zero
        now_s = table.get("clock_ns", 0) / 1e9
        if ticks < self._last and not self._started_again(ticks, now_s):
            return _BACKWARD
        if self._is_stuck(ticks, now_s, power_w):
            return _STILL
        self._last, self._last_s = ticks, now_s
        return (self._wrapped + ticks) * _TICK_J

    def _started_again(self, ticks: int, now_s: float) -> bool:
        """Return whether a counter that fell has wrapped or was reset.

        Small steps back occur on MI200 (ROCm/amdsmi issue 115). If one counted as a reset, all
        energy since the boot would be counted again.
        """
        added_j = ((1 << self._bits) - self._last + ticks) * _TICK_J
        if added_j <= _MOST_W * (now_s - self._last_s):
            self._wrapped += 1 << self._bits
            return True
        if ticks > self._last // 2:
            return False
        self._wrapped = 0
        self.alerts.append(
            f"{self._name}: its energy counter started again from 0; the GPU or its driver was "
            "reset, and some energy before the reset is not counted"
        )
        return True

    def _is_stuck(self, ticks: int, now_s: float, power_w: Reading) -> bool:
        if ticks != self._last:
            self._moved_s, self._is_still = now_s, False
        is_late = now_s - self._moved_s >= _STILL_S and not self._is_still
        if is_late and isinstance(power_w, (int, float)) and power_w > 0:
            self._is_still = True
            self.alerts.append(
                f"{self._name}: its energy counter does not change while the GPU draws "
                f"{power_w:.0f} W; from then on, its energy is not known"
            )
        return self._is_still


def mean_since(last: Table, now: Table, name: str) -> float | None:
    """Return the mean of the values that the firmware adds up under `name`; None if not known.

    The sums and the number of steps have 32 bits and wrap.
    """
    steps = _steps(last, now)
    if not 0 < steps < 2**31 or name not in now or name not in last:
        return None
    return float((now[name] - last[name]) % 2**32) / steps


def _steps(last: Table, now: Table) -> float:
    """Return how often the firmware has added a value; 0 if not known.

    Tables before v1.6 do not count the steps. AMD's RDC assumes one per millisecond
    (`derive_mem_activity_percent`, ROCm/rocm-systems pull request 11634).
    """
    if "steps" in now and "steps" in last:
        return float((now["steps"] - last["steps"]) % 2**32)
    if "time" in now and "time" in last:
        return (now["time"] - last["time"]) / _FIRMWARE_MS
    return 0.0


class Activity:
    """The mean of one activity between two readings, if the firmware adds it up.

    The mean is better than the driver's momentary figure. But for some GPUs it is not documented
    how often the firmware adds. The mean is used after it has agreed with the driver's figures: on
    average it must be between half and twice of them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._sum_of_means = 0.0
        self._sum_of_moments = 0.0

    def read(self, last: Table, now: Table, moment: Reading) -> Reading:
        """Return the mean since the last reading; the momentary figure until the means agree."""
        mean = mean_since(last, now, self._name)
        if mean is None or mean > 100 + _ROUNDING_PERCENT or isinstance(moment, (Missing, list)):
            return moment
        self._count += 1
        self._sum_of_means += mean
        self._sum_of_moments += moment
        agree = (
            self._sum_of_moments <= 2 * self._sum_of_means
            and self._sum_of_means <= 2 * self._sum_of_moments
        )
        return min(mean, 100.0) if self._count >= _PROVING and agree else moment


def throttling(last: Table, now: Table) -> dict[str, Reading]:
    """Return the shares of time in which clocks were reduced by heat and by power, in percent.

    It is the mean if the firmware counts it, else the present state: 0 or 100. The first reading of
    a mean is empty. Heat has several causes that may overlap, so the longest is used.
    """
    heat: Reading
    power: Reading
    if "steps" in now:
        means = [mean_since(last, now, name) for name in _HEAT_RESIDENCIES]
        known = [mean for mean in means if mean is not None]
        limited = mean_since(last, now, "power")
        if not known or limited is None:
            return {}
        heat, power = min(100.0, 100 * max(known)), min(100.0, 100 * limited)
    elif "causes" in now:
        heat, power = _shown(now["causes"], _HEAT_CAUSES), _shown(now["causes"], _POWER_CAUSES)
    elif "throttlers" in now:
        bits = now["throttlers"]
        heat, power = _shown(bits, _HEAT_MI300), _shown(bits, _POWER_MI300)
    else:
        heat = power = _NO_CAUSES
    return {"gpu_thermal_throttle_percent": heat, "gpu_power_throttle_percent": power}


def _shown(bits: int, causes: int) -> int:
    return 100 if bits & causes else 0


class Counters:
    """The readings that come from one GPU's table.

    Args:
        gpu: the GPU.
        memory_metric: the metric of its memory's activity.

    Attributes:
        energy: the energy counter, which has alerts.
    """

    def __init__(self, gpu: AmdGpu, memory_metric: str) -> None:
        self._is_silent = gpu.two_dies and gpu.device.energy_of == "device"
        self.energy = EnergyCounter(
            gpu.device.id, gpu.device.architecture, SILENT_DIE if self._is_silent else None
        )
        self._activities = {
            "gpu_busy_percent": Activity("gfx_sum"),
            memory_metric: Activity("memory_sum"),
        }
        self._file = MetricsFile(f"{gpu.directory}/gpu_metrics")
        self._last: Table = {}
        self._refusal: Missing | None = None
        table = self._file.read()
        if not isinstance(table, Missing):
            self._last = table
        elif table.reason in FOR_GOOD:
            self._refusal = table
            self._file.close()

    def add_to(self, values: dict[str, Reading]) -> None:
        """Add the table's readings; power and activities must be there."""
        table = self._refusal or self._file.read()
        if isinstance(table, Missing):
            values.update(dict.fromkeys(_METRICS, table))
            return
        last, self._last = self._last, table
        for metric, activity in self._activities.items():
            values[metric] = activity.read(last, table, values[metric])
        values["gpu_energy_j"] = self.energy.read(table, values["gpu_power_w"])
        values.update(throttling(last, table))

    def read_energy(self) -> Reading:
        """Return the energy. Without the power, a stuck counter cannot be recognised.

        Do not mix with `add_to`, which checks that.
        """
        if self._is_silent:
            return SILENT_DIE
        table = self._refusal or self._file.read()
        return (
            table if isinstance(table, Missing) else self.energy.read(table, _POWER_NOT_REQUESTED)
        )

    def close(self) -> None:
        """Close the file of the table."""
        self._file.close()
