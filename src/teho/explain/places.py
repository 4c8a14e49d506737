"""GPUs and nodes that a finding is about: their names in a sentence, and a figure for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, Union

from teho.explain.wording import MOST_NAMED, joined, listed, numbered
from teho.model.finding import Evidence
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing
from teho.model.summary import GpuSummary, NodeSummary, PartlyKnown, Series, Stat

__all__ = [
    "NodeGpu",
    "Place",
    "each_of",
    "ever_above_zero",
    "gauges",
    "gpus_of",
    "key_of",
    "known_part",
    "name_all",
    "per_column",
    "per_place",
    "recorded",
    "series_of",
    "stats_of",
    "the_gpus",
]

_P = TypeVar("_P", bound="Place")


class NodeGpu(NamedTuple):
    """One GPU and its node."""

    node: NodeSummary
    gpu: GpuSummary

    @property
    def key(self) -> str:
        """Identifier of this GPU in the subjects of findings."""
        return f"{self.node.name}/{self.gpu.device.id}"

    @property
    def name(self) -> str:
        """Name in a sentence: `GPU 0 on r01g01`."""
        return f"GPU {self.gpu.position} on {self.node.name}"


Place = Union[NodeGpu, NodeSummary]
"""A GPU or a node, to which a figure belongs."""


def gpus_of(node: NodeSummary) -> list[NodeGpu]:
    """Return the GPUs of a node."""
    return [NodeGpu(node, gpu) for gpu in node.gpus]


def key_of(place: Place) -> str:
    """Return the identifier of a place in the subjects of findings."""
    return place.key if isinstance(place, NodeGpu) else place.name


def stats_of(place: Place) -> Mapping[str, Stat | Missing]:
    """Return the gauges of a place, by metric."""
    return place.gpu.stats if isinstance(place, NodeGpu) else place.stats


def series_of(place: Place) -> Mapping[str, Series]:
    """Return the means per time bin of a place, by metric."""
    return place.gpu.series if isinstance(place, NodeGpu) else place.series


def recorded(
    places: Iterable[_P], metric: str, part: Literal["mean", "max"] = "mean"
) -> list[tuple[_P, float]]:
    """Return the mean or the maximum of a gauge, for the places that recorded it at any time."""
    parts = [(place, known_part(stats_of(place).get(metric), part)) for place in places]
    return [(place, value) for place, value in parts if value is not None]


def known_part(found: Stat | Missing | None, part: Literal["mean", "max"]) -> float | None:
    """Return the mean or the maximum of a gauge; None: not known."""
    if not isinstance(found, (Stat, PartlyKnown)):
        return None
    return found.mean if part == "mean" else found.max


def ever_above_zero(place: Place, *metrics: str) -> bool:
    """Return whether one of these gauges was recorded above zero at any time."""
    return any(most > 0 for metric in metrics for _, most in recorded([place], metric, "max"))


def gauges(
    places: Iterable[Place], metric: str, part: Literal["mean", "max"] = "mean", label: str = ""
) -> tuple[Evidence, ...]:
    """Return the mean or the maximum of a gauge as evidence, for the places that recorded it.

    Args:
        places: GPUs or nodes.
        metric: name of the gauge.
        part: which figure.
        label: the default is the label of the metric with `, mean` or `, highest`.
    """
    of_metric = METRICS_BY_NAME[metric]
    default = f"{of_metric.label}, {'mean' if part == 'mean' else 'highest'}"
    return per_place(label or default, of_metric.unit, recorded(places, metric, part))


def per_place(label: str, unit: str, values: Sequence[tuple[_P, float]]) -> tuple[Evidence, ...]:
    """Return each place's figure, equal ones once; of more than four, the lowest and highest."""
    figures = [value for _, value in values]
    is_one = len(set(figures)) == 1 and len(values) > 1
    if len(values) <= MOST_NAMED and not is_one:
        return tuple(Evidence(f"{label} ({place.name})", value, unit) for place, value in values)
    if is_one:
        return (Evidence(f"{label} (each of {len(values)})", figures[0], unit),)
    return (
        Evidence(f"{label} (lowest of {len(values)})", min(figures), unit),
        Evidence(f"{label} (highest of {len(values)})", max(figures), unit),
    )


def per_column(rows: Sequence[tuple[Any, ...]], *columns: tuple[str, str]) -> tuple[Evidence, ...]:
    """Return each place's figures, column after column.

    Args:
        rows: places, each with a figure for each column.
        columns: label and unit of each.
    """
    return tuple(
        evidence
        for number, (label, unit) in enumerate(columns, start=1)
        for evidence in per_place(label, unit, [(row[0], row[number]) for row in rows])
    )


def name_all(places: Sequence[Place]) -> str:
    """Name GPUs or nodes in a sentence.

    `GPUs 0–3 on r01g01`, `GPUs 1 and 2 on each of r01g01 and r01g02`, `r01g01, … and 12 more`.
    """
    positions: dict[str, list[int]] = {}
    for place in places:
        if isinstance(place, NodeGpu):
            positions.setdefault(place.node.name, []).append(place.gpu.position)
    if not positions:
        return listed([place.name for place in places])
    alike: dict[tuple[int, ...], list[str]] = {}
    for node, numbers in positions.items():
        alike.setdefault(tuple(numbers), []).append(node)
    groups = [_gpus_on(numbers, nodes) for numbers, nodes in alike.items()]
    left = sum(len(numbers) * len(nodes) for numbers, nodes in list(alike.items())[MOST_NAMED:])
    return joined([*groups[:MOST_NAMED], *([f"{left} more"] if left else [])])


def _gpus_on(numbers: Sequence[int], nodes: Sequence[str]) -> str:
    several = "s" if len(numbers) > 1 else ""
    each = "each of " if len(nodes) > 1 else ""
    return f"GPU{several} {numbered(numbers)} on {each}{listed(nodes, 'nodes')}"


def each_of(nodes: Sequence[Place]) -> str:
    """Name nodes, each with a figure: `r01g01`, `each of r01g01 and r01g02`."""
    return f"{'each of ' if len(nodes) > 1 else ''}{name_all(nodes)}"


def the_gpus(nodes: Sequence[NodeSummary]) -> str:
    """Begin a sentence about all GPUs of these nodes."""
    return f"The GPU{'' if [len(node.gpus) for node in nodes] == [1] else 's'} on {name_all(nodes)}"
