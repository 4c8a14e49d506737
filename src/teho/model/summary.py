"""What a run used: the figures that findings, reports and comparisons are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

import msgspec

from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.program import Program
from teho.model.watched import Raised

__all__ = ["Figure", "GpuEnergy", "GpuSummary", "NodeSummary", "Stat", "Summary"]

Figure = Union[float, Missing]
"""A number, or why there is none."""


class Stat(msgspec.Struct, frozen=True):
    """A gauge over the run, each row weighted by the time it stands for."""

    mean: float
    std: float
    """Standard deviation of the recorded rows (of their means, where rows were thinned out)."""
    max: float
    min: float
    covered_s: float
    """How much of the run has a value; the rest is missing, not zero."""


_UNKNOWN = Missing(Reason.UNRECORDED, "no sample was taken")


class GpuEnergy(msgspec.Struct, frozen=True, kw_only=True):
    """What stands behind one GPU's energy: each way of knowing it, and what of it is idling."""

    counter_j: Figure = _UNKNOWN
    """By the device's own counter."""
    integrated_j: Figure = _UNKNOWN
    """By its power, over the time for which that was recorded."""
    apart_percent: Figure = _UNKNOWN
    """How much more power the counter shows than the sensor does, in % of the sensor's."""
    chance_percent: Figure = _UNKNOWN
    """What of that the moments of reading may explain."""
    uncertainty_j: Figure = _UNKNOWN
    """How far off the energy may be because of when counter or sensor are read; what they measure
    wrongly comes on top."""
    idle_power_w: Figure = _UNKNOWN
    """The baseline: the lowest power seen while no process of the job held the GPU; if there was
    no such time, the lowest at all."""
    idle_is_unused: bool = False
    """Whether there was such a time; else the baseline may be too high."""
    idle_j: Figure = _UNKNOWN
    """The baseline times the time that the energy is of."""
    net_j: Figure = _UNKNOWN
    """The energy without the baseline."""
    stuck_s: float = 0.0
    """For how long the counter stood still while power was drawn; the energy is then integrated."""
    unread_s: float = 0.0
    """For how long at the end nothing of it could be read any more: the energy is at least this."""
    shares_with: tuple[int, ...] = ()
    """Positions of the job's GPUs on the node whose energy this figure holds as well."""
    counted_with: int | None = None
    """Position of the GPU whose figure holds this one's energy; None: it has its own."""


class GpuSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU over the run."""

    device: Device
    position: int
    """0, 1, 2 … among the job's GPUs on its node: what the program calls `cuda:N`."""
    stats: dict[str, Union[Stat, Missing]]
    energy_j: Figure
    """All that it drew while recorded, idling included."""
    energy_source: str = ""
    """`counter` or `integrated power`."""
    energy: GpuEnergy = GpuEnergy()
    """What stands behind `energy_j`."""
    series: dict[str, list[Union[float, None]]]
    """Metric -> mean per time bin (bins,), finite and to five digits; None if nothing was
    recorded."""


class NodeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One node over the run."""

    name: str
    covered_s: float
    """Time between this node's first and last row."""
    first_s: float | None = None
    """When its first row begins, in seconds after the run's start; None: it has none."""
    last_s: float | None = None
    """When its last row ends, on the same clock."""
    cores: int
    """The job's cores: the program may be allowed on more of the node's, or bound to fewer."""
    stats: dict[str, Union[Stat, Missing]]
    """Gauges."""
    totals: dict[str, Figure]
    """Counters: how much was added while recording."""
    core_mean_percent: tuple[float, ...] = ()
    """Busy share of each of the job's cores."""
    cpu_cores_used: Figure
    """Mean number of cores that the program kept busy."""
    memory_peak_bytes: Figure
    memory_limit_bytes: Figure
    memory_limit_source: str = ""
    gpus: tuple[GpuSummary, ...] = ()
    series: dict[str, list[Union[float, None]]]
    """As of a GPU; counters as rates per second."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run in figures."""

    elapsed_s: float
    """Wall time of the program; up to the last row where its end is not known."""
    cpu_s: Figure
    """CPU time of the program on all nodes."""
    bin_s: float
    """Width of a time bin of every `series`."""
    bin_count: int
    nodes: tuple[NodeSummary, ...]

    @property
    def gpus(self) -> tuple[GpuSummary, ...]:
        """All GPUs of all nodes."""
        return tuple(gpu for node in self.nodes for gpu in node.gpus)

    exceptions: Mapping[Union[int, None], Raised] = {}
    """Rank -> the exception that ended it, as far as is known; None -> that of the program."""
    program: Union[Program, None] = None
    """What its Python processes did with their time; None: none was looked into."""
