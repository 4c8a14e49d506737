"""What of a run's energy can be told: counters first, power as their witness, and the baseline.

A GPU's counter misses nothing between two samples, so it is preferred. Its power, sampled, tells
whether the counter is to be trusted, and what the GPU draws when it does nothing.
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
from teho.model.summary import Figure, GpuEnergy, GpuSummary, NodeSummary, Stat

__all__ = ["COUNTER", "INTEGRATED", "EnergyReadings", "count_once", "energy_of_node", "weigh"]

COUNTER, INTEGRATED = "counter", "integrated power"
"""Where an energy comes from."""

_ON_ITS_CARD = Missing(
    Reason.UNSUPPORTED, "counted with the other GPU of its card: one counter serves the whole card"
)

Bins = list[Union[float, None]]

_TICK_S = 0.1
"""A counter advances about every 100 ms (NVML's documentation of the energy counter; Cray's
pm_counters count at 10 Hz). amdgpu's is quicker, but nothing says by how much."""
_STUCK_S = 1.0
"""Ten ticks without an advance are not chance."""
_STUCK_SHARE = 0.95
"""A counter that stood still and has nearly all of the energy in the end had only not been read.
5 % is what tells agreement from disagreement (rule `energy_disagrees`)."""
_COVERED_SHARE = 0.95
"""Power that was seen for less of the time says nothing about the counter."""

_WINDOW_S = 1.0
"""Time over which power is averaged if it is not known: the longest known, of GA10x and Ada."""

_NOT_LOOKED_AT = Missing(Reason.UNRECORDED, "not among the metrics looked at")
_NO_POWER_OF_ITS_OWN = Missing(
    Reason.UNSUPPORTED, "the counter is the whole module's, the power the GPU's alone"
)


class EnergyReadings(NamedTuple):
    """What was recorded of one GPU, as far as it bears on its energy."""

    counter: Figure
    power: Union[Stat, Missing]
    rows: int
    """Number of rows that it has."""
    elapsed_s: float
    """Time between the begin of its first row and the end of its last."""
    unused_w: float | None
    """Lowest power while no process of the job held the GPU."""
    counter_bins: Bins
    """Growth of the counter in W (bins,)."""
    power_bins: Bins
    bin_s: float


def weigh(device: Device, seen: EnergyReadings) -> tuple[Figure, str, GpuEnergy]:
    """Return a GPU's energy, where it comes from, and what stands behind it."""
    if device.energy_of == "package":
        # Whether the job held the other die of the card is not known here.
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
    idle = _idle_power(device, source, power, seen)
    idle_j: Figure = idle if isinstance(idle, Missing) else idle * time_s
    net_j: Figure = idle_j if isinstance(idle_j, Missing) else max(0.0, energy - idle_j)
    behind = GpuEnergy(
        counter_j=seen.counter,
        integrated_j=integrated,
        apart_percent=_apart(device, power, seen),
        chance_percent=_chance(device, power, seen),
        uncertainty_j=_tick_j(energy, power, seen)
        if source == COUNTER
        else _sampling_j(device, power, seen),
        idle_power_w=idle,
        idle_is_unused=seen.unused_w is not None,
        idle_j=idle_j,
        net_j=net_j,
        stuck_s=stuck_s,
        unread_s=unread_s,
    )
    return energy, source, behind


def _why(power: Stat | Missing) -> Missing:
    if isinstance(power, Missing):
        return power
    return Missing(Reason.UNRECORDED, "power was seen at one instant only")


def _stuck_s(seen: EnergyReadings, integrated: Figure) -> float:
    """Return for how long the counter stood still; 0 if it did not, or caught up later."""
    if isinstance(seen.counter, Missing) or isinstance(integrated, Missing):
        return 0.0
    if seen.counter >= _STUCK_SHARE * integrated:
        return 0.0
    stands = [
        grown == 0 and power is not None and power > 0
        for grown, power in zip(seen.counter_bins, seen.power_bins, strict=False)
    ]
    lengths_s = [seen.bin_s * len(list(run)) for still, run in groupby(stands) if still]
    return math.fsum(length_s for length_s in lengths_s if length_s >= _STUCK_S)


def _unread_s(seen: EnergyReadings) -> float:
    """Return for how long at the end a GPU told nothing any more, as one that is lost.

    Its counter then is in the rows as it was read last.
    """
    told = [
        grown != 0 or power is not None
        for grown, power in zip(seen.counter_bins, seen.power_bins, strict=False)
        if grown is not None
    ]
    silent_s = seen.bin_s * next((at for at, is_told in enumerate(reversed(told)) if is_told), 0)
    return silent_s if silent_s >= _STUCK_S else 0.0


def _apart(device: Device, power: Stat | None, seen: EnergyReadings) -> Figure:
    """Return by how much the counter's mean power exceeds the sensor's, in %."""
    if isinstance(seen.counter, Missing):
        return seen.counter
    if _is_narrower(device):
        return _NO_POWER_OF_ITS_OWN
    if power is None or power.mean <= 0:
        return _why(seen.power)
    if power.covered_s < _COVERED_SHARE * seen.elapsed_s:
        return Missing(Reason.UNRECORDED, "power was seen for too little of the time")
    return 100 * (seen.counter / seen.elapsed_s / power.mean - 1)


def _is_narrower(device: Device) -> bool:
    """Return whether power covers less than the counter: on a GH200, NVML counts the module."""
    return device.energy_of == "module" and device.vendor == "nvidia"


def _idle_power(device: Device, source: str, power: Stat | None, seen: EnergyReadings) -> Figure:
    if source == COUNTER and _is_narrower(device):
        return _NO_POWER_OF_ITS_OWN
    if power is None:
        return _why(seen.power)
    return power.min if seen.unused_w is None else seen.unused_w


def _tick_j(energy_j: float, power: Stat | None, seen: EnergyReadings) -> float:
    """Return what a counter may be wrong by that is a tick late, or early, at its ends."""
    mean_w = energy_j / seen.elapsed_s if seen.elapsed_s > 0 else 0.0
    return _TICK_S * max(mean_w, power.max if power else 0.0)


def _sampling_j(device: Device, power: Stat | None, seen: EnergyReadings) -> Figure:
    """Return what power may be wrong by that is known at the samples alone.

    That is twice the standard error of their mean, and one averaging window at the ends.
    """
    if power is None:
        return _why(seen.power)
    error_w = 2 * power.std / math.sqrt(max(1, seen.rows))
    return error_w * power.covered_s + _window_s(device) * power.max


def _chance(device: Device, power: Stat | None, seen: EnergyReadings) -> Figure:
    sampling_j = _sampling_j(device, power, seen)
    if isinstance(sampling_j, Missing) or power is None or power.mean <= 0:
        return _why(seen.power)
    tick_j = _tick_j(0.0, power, seen)
    return 100 * (sampling_j + tick_j) / (power.mean * power.covered_s)


def _window_s(device: Device) -> float:
    vendor = VENDORS.get(device.vendor)
    windows = vendor.power_windows_s if vendor else ()
    known = (window for start, window in windows if device.architecture.startswith(start))
    return next(known, _WINDOW_S)


def count_once(gpus: Sequence[GpuSummary]) -> tuple[GpuSummary, ...]:
    """Let one GPU of each package stand for all: two dies of an MI250X have one counter.

    Args:
        gpus: those of one node, all of them the job's.
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
        nothing = msgspec.structs.replace(
            _nothing(_ON_ITS_CARD, _ON_ITS_CARD), counted_with=first.position
        )
        for gpu in others:
            changed[gpu.position] = msgspec.structs.replace(
                gpu, energy_j=_ON_ITS_CARD, energy_source="", energy=nothing
            )
    return tuple(changed.get(gpu.position, gpu) for gpu in gpus)


def _nothing(why: Missing, integrated_j: Figure) -> GpuEnergy:
    return GpuEnergy(
        counter_j=why,
        integrated_j=integrated_j,
        apart_percent=why,
        chance_percent=why,
        uncertainty_j=why,
        idle_power_w=why,
        idle_j=why,
        net_j=why,
    )


def energy_of_node(node: NodeSummary) -> tuple[Figure, str]:
    """Return the whole node's energy, and where it comes from; it is everyone's."""
    counted = node.totals.get("node_energy_j", _NOT_LOOKED_AT)
    if not isinstance(counted, Missing):
        return counted, COUNTER
    power = node.stats.get("node_power_w", _NOT_LOOKED_AT)
    if isinstance(power, Stat) and power.covered_s > 0:
        return power.mean * power.covered_s, INTEGRATED
    return _why(power), ""
