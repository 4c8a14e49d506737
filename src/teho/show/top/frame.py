"""What one frame of `teho top` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from teho.model.document import Report
from teho.model.live import GpuNow, NodeNow
from teho.model.missing import Missing
from teho.model.summary import Figure
from teho.model.watched import WatchedProcess

__all__ = ["CURVES", "KEPT", "Curve", "Frame", "Source", "known", "worst_first"]

CURVES = {
    "gpu_busy_percent": 100.0,
    "gpu_sm_active_percent": 100.0,
    "gpu_memory_used_bytes": None,
    "gpu_power_w": None,
}
"""Metric of a curve -> its largest value; None: the limit of the device."""
KEPT = 600
"""Samples of a curve."""


class Curve(NamedTuple):
    """One metric of one device over the last minutes."""

    metric: str
    times_s: Sequence[float]
    """Seconds after the start of the program."""
    values: Sequence[float | None]


class Frame(NamedTuple):
    """The state of a run at one moment."""

    report: Report
    """On the run until now."""
    nodes: tuple[NodeNow, ...]
    time_limit_s: float | None = None
    notes: tuple[str, ...] = ()
    """How the values came, if they are old or incomplete."""

    @property
    def elapsed_s(self) -> float:
        """Time since the start of the program, by the newest sample."""
        return max((node.elapsed_s for node in self.nodes if node.elapsed_s), default=0.0)

    def node(self, name: str) -> NodeNow | None:
        """Return a node; None if the run has no node of this name."""
        return next((node for node in self.nodes if node.node.name == name), None)


class Source(Protocol):
    """Where the frames come from: a run that goes on, or a recording."""

    def poll(self) -> None:
        """Take what has come, without waiting."""

    def frame(self) -> Frame:
        """Return the present state."""

    def curves(self, node: str, position: int) -> Sequence[Curve]:
        """Return the metrics of a GPU over the last minutes."""

    def process(self, node: str, pid: int) -> WatchedProcess | None:
        """Return what the probe recorded of a process; None: nothing."""

    def close(self) -> None:
        """End watching."""


def known(values: Mapping[str, Figure], metric: str) -> float | None:
    """Return the value of a metric; None if it is missing."""
    value = values.get(metric)
    return None if value is None or isinstance(value, Missing) else value


def _busy(gpu: GpuNow) -> float | None:
    busy = known(gpu.values, "gpu_busy_percent")
    return known(gpu.values, "gpu_sm_active_percent") if busy is None else busy


def worst_first(nodes: Sequence[NodeNow]) -> list[NodeNow]:
    """Return silent nodes, nodes with a GPU that cannot be read, and then the other nodes.

    The other nodes are in the order of their least busy GPU, or of their busy cores.
    """

    def key(node: NodeNow) -> tuple[int, float, str]:
        if node.is_silent:
            return 0, 0.0, node.node.name
        shares = [_busy(gpu) for gpu in node.gpus]
        least = [share for share in shares if share is not None]
        if 0 < len(least) < len(shares):
            return 1, 0.0, node.node.name  # a GPU was lost
        cores = known(node.values, "cpu_busy_percent")
        worst = min(least, default=101.0 if cores is None else cores)
        # By tens of a percent, so that nodes do not change places at each sample.
        return 2, worst // 10, node.node.name

    return sorted(nodes, key=key)
