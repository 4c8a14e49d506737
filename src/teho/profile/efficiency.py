"""How fast the device computed operators on matrices, compared with its highest rate.

The number of operations is counted from the shapes of the inputs (`record_shapes=True`). The time
is the time of all kernels that the operator launched: also of conversions that it needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import msgspec

from teho.explain.peaks import Peaks, peaks_of
from teho.model.device import Device
from teho.model.trace import Category, Efficiency
from teho.profile.categories import uses_tensor_cores
from teho.profile.launches import Launch
from teho.profile.load import Loaded, Thread
from teho.profile.tracks import Inputs

__all__ = ["efficiencies_of"]

_NS = 1e9
_RATES = {
    "float": ("fp32_tflops", "tensor_tf32_tflops"),
    "double": ("fp64_tflops", "tensor_fp64_tflops"),
    "c10::Half": ("fp16_tflops", "tensor_16bit_tflops"),
    "c10::BFloat16": ("tensor_16bit_tflops", "tensor_16bit_tflops"),
}
"""Rates of `peaks.toml`, without and with tensor cores, by the type of the numbers."""
_FACTORS = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}
"""Place of the first of the two matrices among the inputs."""
_FORWARD = {"aten::cudnn_convolution": (2, 3, 4), "aten::miopen_convolution": (3, 4, 5)}
"""Places of padding, stride and dilation among the inputs of a convolution."""
_TRANSPOSED, _MASK = 7, 10
"""Places of two inputs of `convolution_backward`: the mask says which gradients are wanted."""


class _Kind(NamedTuple):
    operator: str
    sizes: str
    number_type: str


class _Sum:
    def __init__(self) -> None:
        self.count = self.time = 0
        self.flop = 0.0
        self.has_tensor_cores = False


def efficiencies_of(
    loaded: Loaded,
    launched: Mapping[int, Launch],
    categories: Mapping[int, Sequence[Category]],
    gpu: str,
) -> tuple[Efficiency, ...]:
    """Return the speed of each operator for each size of its inputs, by time.

    Args:
        loaded: the trace.
        launched: launch of each correlation number.
        categories: of the work of each device.
        gpu: model of the GPU.
    """
    if not any(track.inputs for track in loaded.operators.values()):
        return ()
    times: defaultdict[tuple[Thread, int], int] = defaultdict(int)
    with_tensor_cores: set[tuple[Thread, int]] = set()
    for device, work in loaded.work.items():
        for place, number in enumerate(work.correlations):
            launch = launched.get(number)
            if launch is None or launch.place < 0:
                continue
            key = launch.thread, launch.place
            times[key] += work.ends[place] - work.starts[place]
            if uses_tensor_cores(loaded.names[work.names[place]], categories[device][place]):
                with_tensor_cores.add(key)
    sums: defaultdict[_Kind, _Sum] = defaultdict(_Sum)
    for key, time in times.items():
        track = loaded.operators[key[0]]
        inputs = track.inputs.get(key[1])
        counted = _counted(loaded.names[track.names[key[1]]], inputs) if inputs and time else None
        if counted:
            one = sums[counted[0]]
            one.count += 1
            one.time += time
            one.flop += counted[1]
            one.has_tensor_cores |= key in with_tensor_cores
    peaks = peaks_of(Device(id="", index=0, name=gpu, vendor="")) if gpu else None
    made = [_efficiency(kind, one, peaks) for kind, one in sums.items()]
    return tuple(sorted(made, key=lambda one: (-one.time_s, one.operator, one.sizes)))


def _efficiency(kind: _Kind, one: _Sum, peaks: Peaks | None) -> Efficiency:
    rate = _RATES[kind.number_type][one.has_tensor_cores]
    known = peaks.flop_per_s(rate) if peaks else None
    return Efficiency(
        operator=kind.operator,
        sizes=kind.sizes,
        number_type=kind.number_type,
        count=one.count,
        time_s=one.time / _NS,
        flop=one.flop,
        peak=rate if known else "",
        peak_flop_per_s=known,
    )


def _counted(operator: str, inputs: Inputs) -> tuple[_Kind, float] | None:
    """Return the sizes and the number of operations of one call; None: they are not known."""
    try:
        shapes = msgspec.json.decode(inputs.shapes)
        types = msgspec.json.decode(inputs.types)
        if operator in _FACTORS:
            first = _FACTORS[operator]
            left, right = shapes[first : first + 2]
            flop = 2.0 * prod(left) * right[-1]
            fits = left[-1] == right[-2] and left[:-2] == right[:-2]
        else:
            left, right = shapes[:2] if operator in _FORWARD else shapes[1:3]
            first = 0
            values = msgspec.json.decode(inputs.values)
            flop = _of_convolution(operator, shapes, values)
            fits = len(left) == len(right)
        number_type = types[first]
    except (msgspec.DecodeError, IndexError, TypeError, ValueError):
        return None
    if not fits or number_type not in _RATES or flop <= 0:
        return None
    sizes = " · ".join("×".join(map(str, shape)) for shape in (left, right))
    return _Kind(operator, sizes, number_type), flop


def _of_convolution(operator: str, shapes: list[Any], values: list[str]) -> float:
    """Return the number of operations of a convolution, or of its gradients.

    Each element of the output is a sum over the elements of one filter.
    """
    if operator in _FORWARD:
        images, filters = shapes[:2]
        padding, stride, dilation = (_numbers(values[place]) for place in _FORWARD[operator])
        sizes = [
            (size + 2 * pad - spread * (width - 1) - 1) // step + 1
            for size, width, pad, step, spread in zip(
                images[2:], filters[2:], padding, stride, dilation, strict=True
            )
        ]
        return float(2 * images[0] * filters[0] * prod(sizes) * prod(filters[1:]))
    output, images, filters = shapes[:3]
    # The gradients of the images and of the filters each need as many operations as the output.
    wanted = [word.strip() == "True" for word in values[_MASK].strip("[]").split(",")]
    elements = images if values[_TRANSPOSED] == "True" else output
    return float(2 * prod(elements) * prod(filters[1:]) * sum(wanted[:2]))


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.strip("[]").split(",")]
