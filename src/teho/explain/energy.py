"""The energy of a run: counters first, power to check them, and the idle power.

A GPU's counter loses nothing between two samples, so it is preferred. The sampled power shows
whether the counter can be trusted, and what the GPU draws when it does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, Union

import msgspec

from teho.devices.sources import VENDORS
from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.summary import Figure, GpuEnergy, GpuSummary, NodeSummary, Series, Stat

__all__ = ["COUNTER", "INTEGRATED", "EnergyReadings", "count_once", "energy_of_node", "weigh"]

COUNTER, INTEGRATED = "counter", "integrated power"
"""Source of an energy."""

_ON_ITS_CARD = Missing(
    Reason.UNSUPPORTED,
    "the energy of this GPU is counted with the other GPU of its card: the card has only one "
    "energy counter",
)

_TICK_S = 0.1
"""A counter advances about every 100 ms (NVML's documentation of the energy counter; Cray's
pm_counters count at 10 Hz). The interval of amdgpu is shorter, but not documented."""
_STUCK_S = 1.0
"""Ten ticks without an advance are not chance."""
_STUCK_SHARE = 0.95
"""If a counter that stopped has nearly all of the energy at the end, it was only not read for some
time. 5 % is the limit of agreement (rule `energy_disagrees`)."""
_COVERED_SHARE = 0.95
"""Power that was recorded for less of the time cannot check the counter."""
_LONGEST_WINDOW_S = 1.0
"""The longest known averaging window of a power reading, of GA10x and Ada."""

_NOT_READ = Missing(Reason.UNRECORDED, "the recorded metrics do not include this")
_NO_POWER_OF_MODULE = Missing(
    Reason.UNSUPPORTED,
    "the energy counter covers the whole module (CPU and GPU), but the measured power covers only "
    "the GPU",
)


class EnergyReadings(NamedTuple):
    """What was recorded about the energy of one GPU."""

    counter: Figure
    power: Union[Stat, Missing]
    rows: int
    """Number of rows."""
    elapsed_s: float
    """Time from the beginning of the first row to the end of the last."""
    unused_w: float | None
    """Lowest power while no process of the job used the GPU."""
    counter_bins: Series
    """Growth of the counter in W (bins,)."""
    power_bins: Series
    bin_s: float


def weigh(device: Device, seen: EnergyReadings) -> tuple[Figure, str, GpuEnergy]:
    """Return a GPU's energy, its source, and the figures behind it."""
    if device.energy_of == "package":
        # It is not known here whether the job used the other die of the card.
        seen = seen._replace(unused_w=None)
    unread_s = _unread_s(seen)
    seen = seen._replace(elapsed_s=seen.elapsed_s - unread_s)
    power = seen.power if isinstance(seen.power, Stat) and seen.power.covered_s > 0 else None
    integrated: Figure = power.mean * power.covered_s if power else _why(seen.power)
    stuck_s = _stuck_s(seen, integrated)
    energy, source, time_s = seen.counter, COUNTER, seen.elapsed_s
    if power and (isinstance(energy, Missing) or stuck_s):
        energy, source, time_s = integrated, INTEGRATED, power.covered_s
    if isinstance(energy, Missing):
        return energy, "", _nothing(energy, integrated)
    idle: Figure = _why(seen.power)
    if source == COUNTER and _is_narrower(device):
        idle = _NO_POWER_OF_MODULE
    elif power:
        idle = power.min if seen.unused_w is None else seen.unused_w
    idle_j: Figure = idle if isinstance(idle, Missing) else idle * time_s
    sampling_j = _sampling_j(device, power, seen)
    chance: Figure = _why(seen.power)
    if power and power.mean > 0 and not isinstance(sampling_j, Missing):
        chance = 100 * (sampling_j + _tick_j(0.0, power, seen)) / (power.mean * power.covered_s)
    behind = GpuEnergy(
        counter_j=seen.counter,
        integrated_j=integrated,
        difference_percent=_difference(device, power, seen),
        chance_percent=chance,
        uncertainty_j=_tick_j(energy, power, seen) if source == COUNTER else sampling_j,
        idle_power_w=idle,
        idle_is_unused=seen.unused_w is not None,
        idle_j=idle_j,
        net_j=idle_j if isinstance(idle_j, Missing) else max(0.0, energy - idle_j),
        stuck_s=stuck_s,
        unread_s=unread_s,
    )
    return energy, source, behind


def _why(power: Stat | Missing) -> Missing:
    if isinstance(power, Missing):
        return power
    return Missing(Reason.UNRECORDED, "power was measured only once")


def _stuck_s(seen: EnergyReadings, integrated: Figure) -> float:
    """Return how long the counter did not advance; 0 if it advanced, or was corrected later."""
    if isinstance(seen.counter, Missing) or isinstance(integrated, Missing):
        return 0.0
    if seen.counter >= _STUCK_SHARE * integrated:
        return 0.0
    stuck = [
        grown == 0 and power is not None and power > 0
        for grown, power in zip(seen.counter_bins, seen.power_bins, strict=False)
    ]
    lengths_s = [seen.bin_s * len(list(run)) for is_stuck, run in groupby(stuck) if is_stuck]
    return math.fsum(length_s for length_s in lengths_s if length_s >= _STUCK_S)


def _unread_s(seen: EnergyReadings) -> float:
    """Return how long at the end a GPU reported nothing, such as a GPU that was lost.

    The rows then have the last value of its counter.
    """
    reported = [
        grown != 0 or power is not None
        for grown, power in zip(seen.counter_bins, seen.power_bins, strict=False)
        if grown is not None
    ]
    silent_s = seen.bin_s * next((at for at, one in enumerate(reversed(reported)) if one), 0)
    return silent_s if silent_s >= _STUCK_S else 0.0


def _difference(device: Device, power: Stat | None, seen: EnergyReadings) -> Figure:
    """Return by how much the counter's mean power exceeds the sensor's, in %."""
    if isinstance(seen.counter, Missing):
        return seen.counter
    if _is_narrower(device):
        return _NO_POWER_OF_MODULE
    if power is None or power.mean <= 0:
        return _why(seen.power)
    if power.covered_s < _COVERED_SHARE * seen.elapsed_s:
        return Missing(Reason.UNRECORDED, "power was measured for too little of the time")
    return 100 * (seen.counter / seen.elapsed_s / power.mean - 1)


def _is_narrower(device: Device) -> bool:
    """Return whether the power covers less than the counter."""
    vendor = VENDORS.get(device.vendor)
    return device.energy_of == "module" and vendor is not None and not vendor.is_power_of_module


def _tick_j(energy_j: float, power: Stat | None, seen: EnergyReadings) -> float:
    """Return the error of a counter whose first or last reading is a tick late or early."""
    mean_w = energy_j / seen.elapsed_s if seen.elapsed_s > 0 else 0.0
    return _TICK_S * max(mean_w, power.max if power else 0.0)


def _sampling_j(device: Device, power: Stat | None, seen: EnergyReadings) -> Figure:
    """Return the error of the energy from sampled power.

    That is twice the standard error of the mean, and one averaging window at the ends.
    """
    if power is None:
        return _why(seen.power)
    vendor = VENDORS.get(device.vendor)
    windows_s = (
        window_s
        for begin, window_s in (vendor.power_windows_s if vendor else ())
        if device.architecture.startswith(begin)
    )
    error_w = 2 * power.std / math.sqrt(max(1, seen.rows))
    return error_w * power.covered_s + next(windows_s, _LONGEST_WINDOW_S) * power.max


def count_once(gpus: Sequence[GpuSummary]) -> tuple[GpuSummary, ...]:
    """Keep the energy of one GPU per package: two dies of an MI250X have one counter.

    Args:
        gpus: the job's GPUs on one node.
    """
    packages: dict[str, list[GpuSummary]] = {}
    for gpu in gpus:
        if gpu.device.package_id is not None:
            packages.setdefault(gpu.device.package_id, []).append(gpu)
    changed: dict[int, GpuSummary] = {}
    for members in packages.values():
        first = next((gpu for gpu in members if not isinstance(gpu.energy_j, Missing)), None)
        others = [gpu for gpu in members if gpu is not first]
        if first is None or not others:
            continue
        shared = msgspec.structs.replace(
            first.energy, shares_with=tuple(gpu.position for gpu in others)
        )
        changed[first.position] = msgspec.structs.replace(first, energy=shared)
        nothing = _nothing(_ON_ITS_CARD, _ON_ITS_CARD)
        counted = msgspec.structs.replace(nothing, counted_with=first.position)
        for gpu in others:
            changed[gpu.position] = msgspec.structs.replace(
                gpu, energy_j=_ON_ITS_CARD, energy_source="", energy=counted
            )
    return tuple(changed.get(gpu.position, gpu) for gpu in gpus)


def _nothing(why: Missing, integrated_j: Figure) -> GpuEnergy:
    return GpuEnergy(
        counter_j=why,
        integrated_j=integrated_j,
        difference_percent=why,
        chance_percent=why,
        uncertainty_j=why,
        idle_power_w=why,
        idle_j=why,
        net_j=why,
    )


def energy_of_node(node: NodeSummary) -> tuple[Figure, str]:
    """Return the energy of the whole node, with all its users, and the source of the energy."""
    counted = node.totals.get("node_energy_j", _NOT_READ)
    if not isinstance(counted, Missing):
        return counted, COUNTER
    power = node.stats.get("node_power_w", _NOT_READ)
    if isinstance(power, Stat) and power.covered_s > 0:
        return power.mean * power.covered_s, INTEGRATED
    return _why(power), ""
