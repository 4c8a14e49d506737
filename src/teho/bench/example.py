"""What a worked example of `teho bench` consists of."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from teho.bench.images import LOADER, ImageSizes, settings_text
from teho.model.bench import Point

__all__ = ["BenchExample", "OutputCheck", "grouped", "shown_group"]


class OutputCheck(NamedTuple):
    """A point at which the results of all libraries must agree before they are timed."""

    point: Point
    tolerance: float
    """Largest difference, relative to the largest figure."""
    reference: Point | None = None
    """Point of the first library, with which the others are compared; None: the same."""


class BenchExample(NamedTuple):
    """One of the programs in `programs/`."""

    name: str
    """Name of its file, without `.py`."""
    title: str
    shows: str
    cpu: tuple[str, ...]
    """Libraries on the CPU. The others are compared with the first."""
    gpu: tuple[str, ...]
    axis: str
    """Key of the points that is swept, to find crossovers."""
    group: str
    """The fixed part of a point, for `str.format`: `{rows} × {rows}`. Not for images."""
    figure: str
    """Figure that is shown for a timing: `time`, or a rate of `flop`, `bytes` or `items`."""
    phases: tuple[str, ...]
    """Phases that are judged and shown, in this order."""
    checks: tuple[OutputCheck, ...]
    quick: tuple[Point, ...]
    full: tuple[Point, ...]
    on_gpu: tuple[Point, ...] = ()
    """The points of a GPU instead of `full`, if they are others."""
    sizes: Mapping[str, ImageSizes] = MappingProxyType({})
    """Sizes of the images in `quick`, `full` and `on_gpu`; empty if there are no images."""
    left_out: tuple[str, ...] = ()
    """Sentences about settings that would be the same run as another."""
    has_crossover: bool = True
    """Whether the placements are compared along the axis."""
    grows: bool = True
    """Whether runs take longer and longer along the axis. If so, a CPU's sweep ends when ten runs
    take too long, and others can use the time."""
    sweeps_cores: bool = False
    """Whether it also runs on 1, 2, 4… cores, unless `--quick` is given."""
    kernels: tuple[str, ...] = ("kernel",)
    """Phases with only the computation. The fastest of them counts."""
    on_cpu: Mapping[str, str] = MappingProxyType({})
    """Phase of a GPU -> phase of a CPU, if they have different names."""
    precision: str = ""
    """Precision, such as `FP64`, or the key of the points that has it."""

    def points(self, *, is_quick: bool, on_gpu: bool) -> tuple[Point, ...]:
        """Return the points that a placement measures."""
        return self.quick if is_quick else (on_gpu and self.on_gpu) or self.full


def shown_group(group: str, phase: str, point: Point) -> str:
    """Return a group as it is shown for a phase. Of images, only the loader has settings."""
    return group if phase == LOADER or "images" not in point else ""


def group_of(example: BenchExample, point: Point) -> str:
    """Return the fixed part of a point in words."""
    return settings_text(point) if "images" in point else example.group.format(**point)


def grouped(example: BenchExample, points: tuple[Point, ...]) -> dict[str, list[Point]]:
    """Return the points by their fixed part, in words. Each group is in the order of the axis."""
    groups: dict[str, list[Point]] = {group_of(example, point): [] for point in points}
    for point in sorted(points, key=lambda point: float(point[example.axis])):
        groups[group_of(example, point)].append(point)
    return groups
