"""What a run used: the figures that findings, reports and comparisons are made from."""

from __future__ import annotations

from typing import Union

import msgspec

from teho.model.device import Device
from teho.model.missing import Missing

__all__ = ["Figure", "GpuSummary", "NodeSummary", "Stat", "Summary"]

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


class GpuSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU over the run."""

    device: Device
    position: int
    """0, 1, 2 … among the job's GPUs on its node: what the program calls `cuda:N`."""
    stats: dict[str, Union[Stat, Missing]]
    energy_j: Figure
    energy_source: str = ""
    """`counter` or `integrated power`."""
    series: dict[str, list[Union[float, None]]]
    """Metric -> mean per time bin (bins,); None where nothing was recorded."""


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
    """Metric -> mean per time bin, counters as rates per second."""


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
