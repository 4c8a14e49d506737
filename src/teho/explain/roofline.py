"""Where a run is under its GPUs' own rooflines: arithmetic against memory traffic.

How long a pipe was active is known, what it did is not: its activity times its peak is the most
that it can have calculated. Of the tensor cores not even the precision is known, and with it
their peak, so that what they did is a span from TF32 to 16 bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from teho.explain.context import NodeGpu, RuleContext
from teho.explain.peaks import Peaks, no_peaks, peaks_of
from teho.explain.policy import Policy
from teho.explain.shared_thresholds import ROOFLINE
from teho.model.finding import Abstention
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["PIPES", "Place", "Roofline", "rooflines_of", "uncounted"]

PIPES: Mapping[str, tuple[str, ...]] = {
    "gpu_fp64_percent": ("fp64_tflops",),
    "gpu_fp32_percent": ("fp32_tflops",),
    "gpu_fp16_percent": ("fp16_tflops",),
    "gpu_tensor_percent": ("tensor_tf32_tflops", "tensor_16bit_tflops"),
}
"""Each pipe's metric with the rates that it may have run at."""

_MEMORY = "gpu_dram_percent"


class Place(NamedTuple):
    """What one GPU, or several of a model in the mean, did while at work."""

    memory_percent: float
    """Traffic of the memory, of its bandwidth."""
    bytes_per_s: float
    pipe_percent: Mapping[str, float]
    """How much of the time each pipe was active, by its metric; those that it has."""
    least_flop_per_s: float
    """Upper bound, if the tensor cores ran at the lowest of their rates."""
    most_flop_per_s: float
    """Upper bound, if they ran at the highest."""

    @property
    def least_flop_per_byte(self) -> float:
        """Operations for each byte of memory traffic, by `least_flop_per_s`."""
        return self.least_flop_per_s / self.bytes_per_s

    @property
    def most_flop_per_byte(self) -> float:
        """The same by `most_flop_per_s`."""
        return self.most_flop_per_s / self.bytes_per_s


class Roofline(NamedTuple):
    """The GPUs of one model under the roofline of that model."""

    model: str
    peaks: Peaks
    places: tuple[tuple[NodeGpu, Place], ...]
    mean: Place
    bound: Literal["memory", "arithmetic", "neither"]
    """What sets the pace, if it is one of the two."""


def rooflines_of(
    run: Run, summary: Summary, policy: Policy
) -> tuple[tuple[Roofline, ...], Abstention | None]:
    """Place every GPU that was at work under its model's roofline.

    Returns:
        A roofline for each model, and what was lacking for the GPUs that are under none.
    """
    context = RuleContext(ROOFLINE, run, summary, policy.of(ROOFLINE))
    models: dict[str, tuple[Peaks, list[tuple[NodeGpu, Place]]]] = {}
    for of in context.gpus:
        peaks = peaks_of(of.gpu.device)
        place = _place(context, of, peaks)
        if peaks is not None and place is not None:
            models.setdefault(of.gpu.device.name, (peaks, []))[1].append((of, place))
    rooflines = tuple(
        _roofline(context, model, peaks, places) for model, (peaks, places) in models.items()
    )
    lacking = context.outcome([])
    return rooflines, lacking if isinstance(lacking, Abstention) else None


def _place(context: RuleContext, of: NodeGpu, peaks: Peaks | None) -> Place | None:
    """Return where a GPU stands; None if it was not at work, and, noted, where nobody knows."""
    memory = context.while_working(of, _MEMORY)
    if memory is None:
        return None
    if peaks is None:
        context.figure(of, "peaks", no_peaks(of.gpu.device))
        return None
    percents: dict[str, float] = {}
    for metric, rates in PIPES.items():
        if set(rates) <= set(peaks.lacks):
            continue
        percent = context.while_working(of, metric)
        if percent is None:
            return None
        percents[metric] = percent
    place = _at(peaks, memory, percents)
    if place.bytes_per_s > 0 and place.least_flop_per_s > 0:
        return place
    nothing = Missing(Reason.UNRECORDED, "none was seen")
    context.figure(of, "floating-point work with memory traffic", nothing)
    return None


def _at(peaks: Peaks, memory_percent: float, pipe_percent: Mapping[str, float]) -> Place:
    least = most = 0.0
    for metric, percent in pipe_percent.items():
        known = [rate for name in PIPES[metric] if (rate := peaks.flop_per_s(name)) is not None]
        least += percent / 100 * min(known, default=0.0)
        most += percent / 100 * max(known, default=0.0)
    return Place(
        memory_percent=memory_percent,
        bytes_per_s=memory_percent / 100 * peaks.memory_bytes_per_s,
        pipe_percent=pipe_percent,
        least_flop_per_s=least,
        most_flop_per_s=most,
    )


def _roofline(
    context: RuleContext, model: str, peaks: Peaks, places: Sequence[tuple[NodeGpu, Place]]
) -> Roofline:
    found = [place for _, place in places]
    mean = _at(
        peaks,
        _mean([place.memory_percent for place in found]),
        {pipe: _mean([at.pipe_percent[pipe] for at in found]) for pipe in found[0].pipe_percent},
    )
    return Roofline(model, peaks, tuple(places), mean, _bound(context, mean))


def _bound(context: RuleContext, mean: Place) -> Literal["memory", "arithmetic", "neither"]:
    arithmetic = max(mean.pipe_percent.values(), default=0.0)
    if max(arithmetic, mean.memory_percent) < context.limit("near_percent"):
        return "neither"
    return "memory" if mean.memory_percent >= arithmetic else "arithmetic"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def uncounted(roofline: Roofline) -> list[str]:
    """Name the pipes that were active and whose peak nobody knows, for a note."""
    return [
        METRICS_BY_NAME[metric].label
        for metric, percent in roofline.mean.pipe_percent.items()
        if percent > 0 and all(roofline.peaks.flop_per_s(rate) is None for rate in PIPES[metric])
    ]
