"""The rooflines of a report: figures, labels and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from teho.explain.peaks import RATES, Peaks
from teho.explain.places import NodeGpu
from teho.explain.roofline import PIPES, Place, Roofline, uncounted
from teho.explain.wording import joined
from teho.model import document
from teho.model.metric import METRICS_BY_NAME
from teho.show.cells import between
from teho.units import format_quantity

__all__ = ["rooflines_view"]

_LABELS = {
    "fp64_tflops": "FP64",
    "fp32_tflops": "FP32",
    "fp16_tflops": "FP16",
    "tensor_fp64_tflops": "FP64 tensor",
    "tensor_tf32_tflops": "TF32 tensor",
    "tensor_16bit_tflops": "16-bit tensor",
}
_ALIKE = 1.08
"""Ratio of two roofs up to which they are drawn as one line with both labels."""
_ACTIVE_PERCENT = 1.0
"""Least share of the time for a pipe to count as used in the drawing."""


def rooflines_view(
    rooflines: Sequence[Roofline], node_count: int
) -> tuple[document.RooflinePlot, ...]:
    """Lay out the rooflines that `explain.roofline` found, for a run on some nodes."""
    return tuple(_one(roofline, several_nodes=node_count > 1) for roofline in rooflines)


def _one(roofline: Roofline, *, several_nodes: bool) -> document.RooflinePlot:
    many = f"mean of {len(roofline.places)} GPUs"
    points = tuple(
        _point(_name(at, several_nodes=several_nodes), place) for at, place in roofline.places
    )
    return document.RooflinePlot(
        model=roofline.model,
        sentence=_sentence(roofline) + (f", {many}" if len(points) > 1 else ""),
        notes=tuple(_notes(roofline)),
        memory_bytes_per_s=roofline.peaks.memory_bytes_per_s,
        roofs=_roofs(roofline),
        points=points,
        mean=_point(points[0].label if len(points) == 1 else many, roofline.mean),
    )


def _name(at: NodeGpu, *, several_nodes: bool) -> str:
    return f"{at.node.name} GPU {at.gpu.position}" if several_nodes else f"GPU {at.gpu.position}"


def _point(label: str, place: Place) -> document.RooflinePoint:
    return document.RooflinePoint(
        label=label,
        bytes_per_s=place.bytes_per_s,
        least_flop_per_s=place.least_flop_per_s,
        most_flop_per_s=place.most_flop_per_s,
        least_flop_per_byte=place.least_flop_per_byte,
        most_flop_per_byte=place.most_flop_per_byte,
    )


def _roofs(roofline: Roofline) -> tuple[document.Roof, ...]:
    """Return the roofs from low to high; roofs that are nearly equal are joined."""
    peaks, active = roofline.peaks, set(_active_rates(roofline))
    rates = sorted(
        (flop_per_s, rate) for rate in RATES if (flop_per_s := peaks.flop_per_s(rate)) is not None
    )
    groups: list[list[tuple[float, str]]] = []
    for rate in rates:
        if groups and rate[0] < groups[-1][0][0] * _ALIKE:
            groups[-1].append(rate)
        else:
            groups.append([rate])
    return tuple(
        document.Roof(
            label=", ".join(_LABELS[rate] for _, rate in group),
            flop_per_s=group[0][0],
            active=any(rate in active for _, rate in group),
        )
        for group in groups
    )


def _active_rates(roofline: Roofline) -> Iterable[str]:
    for metric, percent in roofline.mean.pipe_percent.items():
        if percent >= _ACTIVE_PERCENT:
            yield from PIPES[metric]


def _sentence(roofline: Roofline) -> str:
    """Return what limits the run: `memory-bound: 71 % of 3.35 TB/s`, and the intensity."""
    mean = roofline.mean
    memory = (
        f"{format_quantity(mean.memory_percent, '%')} of "
        f"{format_quantity(roofline.peaks.memory_bytes_per_s, 'B/s')}"
    )
    pipe, percent = max(mean.pipe_percent.items(), key=lambda item: item[1])
    busiest = (
        f"the busiest pipe ({METRICS_BY_NAME[pipe].label}) was active for "
        f"{format_quantity(percent, '%')} of the busy time"
    )
    per_byte = between(mean.least_flop_per_byte, mean.most_flop_per_byte, "FLOP/byte")
    intensity = f"the arithmetic intensity was {per_byte}"
    if roofline.bound == "memory":
        return (
            "memory-bound (memory limits the speed): the memory was read and written at "
            f"{memory}; {intensity}"
        )
    if roofline.bound == "arithmetic":
        flops = between(mean.least_flop_per_s, mean.most_flop_per_s, "FLOP/s")
        return (
            f"compute-bound (arithmetic limits the speed): {busiest}, at most {flops}; {intensity}"
        )
    return (
        "neither memory nor arithmetic was at its limit: the memory was read and written at "
        f"{memory}, and {busiest}; {intensity}"
    )


def _notes(roofline: Roofline) -> Iterable[str]:
    mean, peaks = roofline.mean, roofline.peaks
    yield (
        "A pipe is a part of the GPU for one kind of arithmetic. Teho knows for what share of "
        "the time a pipe was active, and multiplies this share by the pipe's highest speed. The "
        "result is an upper limit: the real speed is lower if the pipe was not full, or if the "
        "GPU's clock was slower."
    )
    if mean.least_flop_per_s < mean.most_flop_per_s:
        yield (
            "The precision of the tensor cores is not recorded. The lower value is for TF32, and "
            "the higher value is for 16 bits. With FP8, the value would be higher than both. "
            "With FP64, the value would be lower than both."
        )
    elif mean.pipe_percent.get("gpu_tensor_percent") and "tensor_tf32_tflops" in peaks.unknown:
        yield "The precision of the tensor cores is not recorded. Teho assumes 16 bits."
    if roofline.bound == "neither":
        yield (
            "The run reached neither the limit of the memory nor the limit of arithmetic. "
            "Possible reasons: the GPU waited, its kernels were small, or the run had different "
            "phases (the values are means)."
        )
    unknown = uncounted(roofline)
    if unknown:
        yield (
            "These pipes are not counted, because their highest speed is not known: "
            f"{joined(unknown)}."
        )
    yield _source(peaks)


def _source(peaks: Peaks) -> str:
    part = f" This GPU is a slice: {peaks.part}." if peaks.part else ""
    return f"Source of the highest speeds: {peaks.source}.{part}"
