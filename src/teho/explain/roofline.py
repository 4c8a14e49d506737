"""The place of a GPU under its roofline: arithmetic against memory traffic.

The recording has the time for which a pipe was active, not what it computed: the activity times
the peak is an upper bound. Tensor cores have a different peak for each precision, and the precision
is not known either. Their arithmetic is therefore a range, from TF32 to 16 bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from teho.explain.context import RuleContext
from teho.explain.peaks import Peaks, no_peaks, peaks_of
from teho.explain.places import NodeGpu
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
"""The metric of each pipe, with the rates at which it may have run."""


class Place(NamedTuple):
    """The activity of one GPU while at work, or the mean of several GPUs of a model."""

    memory_percent: float
    """Memory traffic, as a share of the bandwidth."""
    bytes_per_s: float
    pipe_percent: Mapping[str, float]
    """Share of the time for which each pipe was active, by metric."""
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
        """Operations for each byte of memory traffic, by `most_flop_per_s`."""
        return self.most_flop_per_s / self.bytes_per_s


class Roofline(NamedTuple):
    """The GPUs of one model under the roofline of that model."""

    model: str
    peaks: Peaks
    places: tuple[tuple[NodeGpu, Place], ...]
    mean: Place
    bound: Literal["memory", "arithmetic", "neither"]
    """What limits the speed."""


def rooflines_of(
    run: Run, summary: Summary, policy: Policy
) -> tuple[tuple[Roofline, ...], Abstention | None]:
    """Place every GPU that was at work under the roofline of its model.

    Returns:
        A roofline for each model, and what was missing for the other GPUs.
    """
    context = RuleContext(ROOFLINE, run, summary, policy.of(ROOFLINE))
    models: dict[str, tuple[Peaks, list[tuple[NodeGpu, Place]]]] = {}
    for gpu in context.gpus:
        peaks = peaks_of(gpu.gpu.device)
        place = _place(context, gpu, peaks)
        if peaks is not None and place is not None:
            models.setdefault(gpu.gpu.device.name, (peaks, []))[1].append((gpu, place))
    rooflines = tuple(
        _roofline(context, model, peaks, places) for model, (peaks, places) in models.items()
    )
    lacks = context.outcome([])
    return rooflines, lacks if isinstance(lacks, Abstention) else None


def _place(context: RuleContext, gpu: NodeGpu, peaks: Peaks | None) -> Place | None:
    """Return a GPU's place; None if it was not at work. None, and noted, if it is not known."""
    memory = context.at_work(gpu, "gpu_dram_percent")
    if memory is None:
        return None
    if peaks is None:
        context.figure(gpu, "peak rates", no_peaks(gpu.gpu.device))
        return None
    percents: dict[str, float] = {}
    for metric, rates in PIPES.items():
        if set(rates) <= set(peaks.lacks):
            continue
        percent = context.at_work(gpu, metric)
        if percent is None:
            return None
        percents[metric] = percent
    place = _at(peaks, memory, percents)
    if place.bytes_per_s > 0 and place.least_flop_per_s > 0:
        return place
    nothing = Missing(Reason.UNRECORDED, "the floating-point work or the memory traffic was zero")
    context.figure(gpu, "floating-point work and memory traffic", nothing)
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
    memory = fmean(place.memory_percent for place in found)
    pipes = {
        pipe: fmean(place.pipe_percent[pipe] for place in found) for pipe in found[0].pipe_percent
    }
    arithmetic = max(pipes.values(), default=0.0)
    bound: Literal["memory", "arithmetic", "neither"] = "neither"
    if max(arithmetic, memory) >= context.limit("near_percent"):
        bound = "memory" if memory >= arithmetic else "arithmetic"
    return Roofline(model, peaks, tuple(places), _at(peaks, memory, pipes), bound)


def uncounted(roofline: Roofline) -> list[str]:
    """Return the labels of pipes that were active and whose peak is not known, for a note."""
    return [
        METRICS_BY_NAME[metric].label
        for metric, percent in roofline.mean.pipe_percent.items()
        if percent > 0 and all(roofline.peaks.flop_per_s(rate) is None for rate in PIPES[metric])
    ]
