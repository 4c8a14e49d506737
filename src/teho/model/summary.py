"""Figures of a run, for findings, reports and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

import msgspec

from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.program import Program
from teho.model.watched import Raised

__all__ = [
    "Figure",
    "GpuEnergy",
    "GpuSummary",
    "NodeSummary",
    "PartlyKnown",
    "Series",
    "Stat",
    "Summary",
]

Figure = Union[float, Missing]
"""A number, or why it is missing."""
Series = list[Union[float, None]]
"""Means per time bin (bins,), finite and with five digits; None: no recorded value."""


class Stat(msgspec.Struct, frozen=True):
    """A gauge over the run, each row weighted by its time."""

    mean: float
    std: float
    """Standard deviation of the recorded rows. If samples were merged into one row, the row counts
    with its mean."""
    max: float
    min: float
    covered_s: float
    """Time of the run for which there is a value. For all other times, the value is missing, not
    zero."""


class PartlyKnown(Missing, frozen=True, kw_only=True, tag="missing", tag_field="type"):
    """A gauge of a job that Teho did not sample: only its mean or its maximum is known.

    If a rule or a table needs another figure of this gauge, the gauge is missing.
    """

    mean: Union[float, None] = None
    max: Union[float, None] = None
    covered_s: float = 0.0
    """Time of the job to which the known figure belongs."""


_UNKNOWN = Missing(Reason.UNRECORDED, "no sample was taken")


class GpuEnergy(msgspec.Struct, frozen=True, kw_only=True):
    """Details of one GPU's energy: the energy from each source, and the energy of idling."""

    counter_j: Figure = _UNKNOWN
    """Energy from the device's own counter."""
    integrated_j: Figure = _UNKNOWN
    """Energy from the power of the GPU, over the recorded time."""
    difference_percent: Figure = _UNKNOWN
    """Difference between the mean power from the energy counter and from the power sensor, in % of
    the sensor's power."""
    chance_percent: Figure = _UNKNOWN
    """Largest difference that the reading times can explain, in % of the energy from the power."""
    uncertainty_j: Figure = _UNKNOWN
    """Uncertainty of the energy because of the reading times. Errors of counter and sensor are
    not included."""
    idle_power_w: Figure = _UNKNOWN
    """The baseline: the lowest power while no process of the job used the GPU. If no such time is
    known, the baseline is the lowest power of the whole run."""
    idle_is_unused: bool = False
    """Whether the baseline is from a time in which no process of the job used the GPU. If not, the
    baseline may be too high."""
    idle_j: Figure = _UNKNOWN
    """The baseline times the time for which the energy is known."""
    net_j: Figure = _UNKNOWN
    """The energy without the baseline."""
    stuck_s: float = 0.0
    """Time in which the counter did not change, although the power was not 0. If there was such a
    time, the energy is computed from the power."""
    unread_s: float = 0.0
    """Time at the end without readings. If it is not 0, the energy is a lower bound."""
    shares_with: tuple[int, ...] = ()
    """Positions of other GPUs of the job on the node whose energy this figure includes."""
    counted_with: int | None = None
    """Position of the GPU whose figure includes this energy. None: this GPU has its own figure."""


class GpuSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU over the run."""

    device: Device
    position: int
    """Number of this GPU among the job's GPUs on the node: N in the program's `cuda:N`."""
    stats: dict[str, Union[Stat, Missing]]
    energy_j: Figure
    """Energy over the recorded time, including idling."""
    energy_source: str = ""
    """`counter` or `integrated power`."""
    energy: GpuEnergy = GpuEnergy()
    """Details of `energy_j`."""
    series: Mapping[str, Series]
    """For each metric, its means per time bin."""
    end_series: dict[str, Series] = {}
    """The same for some metrics and the short bins at the end; empty if there are none."""


class NodeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One node over the run."""

    name: str
    covered_s: float
    """Time between this node's first and last row."""
    first_s: float | None = None
    """Beginning of the first row of this node, in seconds after the run's start. None: no rows."""
    last_s: float | None = None
    """End of the last row of this node, in seconds after the run's start."""
    cores: int
    """Cores of the job. The program may be allowed to use more cores, or be bound to fewer."""
    stats: dict[str, Union[Stat, Missing]]
    """Gauges."""
    totals: dict[str, Figure]
    """Counters: the increase over the recorded time."""
    core_mean_percent: tuple[float, ...] = ()
    """Busy share of each of the job's cores."""
    cpu_cores_used: Figure
    """Mean number of busy cores of the program."""
    memory_peak_bytes: Figure
    memory_limit_bytes: Figure
    memory_limit_source: str = ""
    gpus: tuple[GpuSummary, ...] = ()
    series: Mapping[str, Series]
    """For each metric, its means per time bin. For a counter, these are rates per second."""
    end_series: dict[str, Series] = {}
    """The same for some metrics and the short bins at the end; empty if there are none."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run in figures."""

    elapsed_s: float
    """Wall time of the program. If the end of the program is unknown: time until the last row."""
    cpu_s: Figure
    """CPU time of the program on all nodes."""
    bin_s: float
    """Width of a time bin of every `series`."""
    bin_count: int
    end_bin_s: float = 0.0
    """Width of a short time bin at the end of the run; 0: there are none, or `series` has bins that
    are as short."""
    nodes: tuple[NodeSummary, ...]

    @property
    def gpus(self) -> tuple[GpuSummary, ...]:
        """All GPUs of all nodes."""
        return tuple(gpu for node in self.nodes for gpu in node.gpus)

    exceptions: Mapping[Union[int, None], Raised] = {}
    """For each rank, the exception that ended it, if known. Key None: the program's exception."""
    program: Union[Program, None] = None
    """Time of the run's Python processes by activity. None: no process was observed."""
