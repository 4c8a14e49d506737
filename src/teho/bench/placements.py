"""Compares the placements of an example: from which size on is one of them faster?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from teho.bench.example import BenchExample, shown_group
from teho.bench.judge import amortisation_of, crossover_of, key_of
from teho.experiment.placement import Placement
from teho.model.bench import Amortisation, Crossover, Point, Timing

__all__ = ["crossings_of"]


def crossings_of(
    example: BenchExample,
    groups: Mapping[str, Sequence[Point]],
    timings: Sequence[Timing],
    placements: Sequence[Placement],
) -> tuple[list[Crossover], list[Amortisation]]:
    """Return the crossovers of all pairs of placements, and after how many runs a GPU is faster.

    Args:
        example: with its phases and kernels.
        groups: points by their fixed part.
        timings: of all points.
        placements: the smallest first.
    """
    if not example.has_crossover:
        return [], []
    kernels, on_cpu = example.kernels, example.on_cpu
    cpu_kernels = [on_cpu.get(kernel, kernel) for kernel in kernels]
    crossovers: list[Crossover | None] = []
    amortisations: list[Amortisation] = []
    for group, points in groups.items():
        if "only" in points[0]:  # settings of the loader, which are swept at one point of the axis
            continue
        largest = {key_of(point): point for point in points}
        own = [
            _of_epoch(one, largest[key_of(one.point)])
            for one in timings
            if key_of(one.point) in largest
        ]
        for slow, fast in _pairs(placements):
            for phase in example.phases:
                shown = shown_group(group, phase, points[0])
                names = (phase, slow.name, fast.name, example.axis, shown)
                slow_phase = "" if slow.gpus else on_cpu.get(phase, "")
                crossovers.append(crossover_of(own, *names, slow_phase))
            if fast.gpus and kernels:
                of_pair = (fast.name, slow.name, shown_group(group, kernels[0], points[0]))
                amortisations += amortisation_of(own, kernels, *of_pair, cpu_kernels)
    return [one for one in crossovers if one is not None], amortisations


def _of_epoch(timing: Timing, point: Point) -> Timing:
    """Return a timing with the times for another number of images, at the same images/s."""
    images = timing.point.get("images")
    if images == point.get("images"):
        return timing
    ratio = point["images"] / images
    return msgspec.structs.replace(
        timing, point=point,
        **{name: getattr(timing, name) * ratio for name in ("median_s", "low_s", "high_s")},
    )  # fmt: skip


def _pairs(placements: Sequence[Placement]) -> list[tuple[Placement, Placement]]:
    """Return pairs to compare: fewest cores and all cores, and both of them with each GPU."""
    cpus = [placement for placement in placements if not placement.gpus]
    gpus = [placement for placement in placements if placement.gpus]
    ends = list(dict.fromkeys([*cpus[:1], *cpus[-1:]]))
    found = [(ends[0], ends[1])] if len(ends) > 1 else []
    return [*found, *((cpu, gpu) for gpu in gpus for cpu in ends)]
