"""The catalogue of worked examples: their sweeps, checks and figures."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from teho.model.bench import Point

__all__ = ["AXES", "EXAMPLES", "LIBRARIES", "BenchExample", "OutputCheck", "grouped", "told_group"]

LIBRARIES = {"numpy": "NumPy", "cupy": "CuPy", "jax": "JAX", "torch": "PyTorch"}
"""Module -> name in sentences."""
AXES = {
    "systems": "number of systems",
    "samples": "number of samples",
    "batch": "batch size",
    "size": "matrix size",
    "bytes": "number of bytes",
}
"""Key of a point that is swept -> name of the axis."""
_LOADER = "loader"
"""The phase that has the settings workers and prefetch."""


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
    """The fixed part of a point, for `str.format`: `{rows} × {rows}`."""
    figure: str
    """Figure that is shown for a timing: `time`, or a rate of `flop`, `bytes` or `items`."""
    phases: tuple[str, ...]
    """Phases that are judged and shown, in this order."""
    checks: tuple[OutputCheck, ...]
    quick: tuple[Point, ...]
    full: tuple[Point, ...]
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


def told_group(group: str, phase: str, point: Point) -> str:
    """Return a group as it is shown for a phase. Of images, only the loader has settings."""
    return group if phase == _LOADER or "images" not in point else ""


def grouped(example: BenchExample, points: tuple[Point, ...]) -> dict[str, list[Point]]:
    """Return the points by their fixed part, in words. Each group is in the order of the axis."""
    groups: dict[str, list[Point]] = {}
    for point in sorted(points, key=lambda point: float(point[example.axis])):
        groups.setdefault(example.group.format(**point), []).append(point)
    order = [example.group.format(**point) for point in points]
    return dict(sorted(groups.items(), key=lambda item: order.index(item[0])))


def _sweep(axis: str, values: tuple[int, ...], **fixed: object) -> tuple[Point, ...]:
    return tuple({axis: value, **fixed} for value in values)


def _tens(last: int) -> tuple[int, ...]:
    """Return 1, 10, 100… up to a power of ten."""
    return tuple(10**power for power in range(last + 1))


def _doubled(first: int, last: int) -> tuple[int, ...]:
    """Return the first, twice the first… up to the last, which is one of them."""
    return tuple(first << power for power in range((last // first).bit_length()))


_MIB = 1024**2

SOLVE = BenchExample(
    name="solve",
    title="Systems of linear equations",
    shows="N systems of size M × M at once: how many are needed before a GPU is faster",
    cpu=("numpy", "jax", "torch"),
    gpu=("cupy", "jax", "torch"),
    axis="systems",
    group="{rows} × {rows}",
    figure="time",
    phases=("kernel", "end to end", "end to end, generated on the device"),
    checks=(
        OutputCheck({"systems": 100, "rows": 8}, 1e-10),
        OutputCheck({"systems": 2, "rows": 200}, 1e-10),
    ),
    quick=(
        *_sweep("systems", _tens(4), rows=8),
        *_sweep("systems", _tens(3), rows=64),
        *_sweep("systems", _tens(1), rows=512),
    ),
    full=(
        *_sweep("systems", _tens(6), rows=8),
        *_sweep("systems", _tens(5), rows=64),
        *_sweep("systems", _tens(3), rows=512),
        *_sweep("systems", _tens(1), rows=4096),
        *_sweep("systems", (1,), rows=10000),
    ),
    sweeps_cores=True,
    precision="FP64",
)

MATMUL = BenchExample(
    name="matmul",
    title="Matrix multiplication",
    shows="the share of its peak speed that a device reaches, by matrix size and precision",
    cpu=("numpy", "jax", "torch"),
    gpu=("cupy", "jax", "torch"),
    axis="size",
    group="{precision}",
    figure="flop",
    phases=("kernel", "end to end"),
    checks=tuple(
        OutputCheck(
            {"size": 256, "precision": precision},
            tolerance,
            {"size": 256, "precision": "FP64"},
        )
        # Unit roundoff of the precision (2^-53, 2^-24, 2^-11, 2^-9), times 32 for sums of 256.
        for precision, tolerance in (
            ("FP64", 2**-48),
            ("FP32", 2**-19),
            ("TF32", 2**-6),
            ("BF16", 2**-4),
        )
    ),
    quick=(
        *_sweep("size", _doubled(64, 1024), precision="FP64"),
        *_sweep("size", _doubled(64, 1024), precision="FP32"),
        *_sweep("size", _doubled(64, 1024), precision="TF32"),
        *_sweep("size", _doubled(64, 512), precision="BF16"),
    ),
    # On a CPU, the data need no copy.
    on_cpu=MappingProxyType({"end to end": "kernel"}),
    # Until memory is full.
    full=tuple(
        point
        for precision in ("FP64", "FP32", "TF32", "BF16")
        for point in _sweep("size", _doubled(64, 262144), precision=precision)
    ),
    precision="precision",
)

BANDWIDTH = BenchExample(
    name="bandwidth",
    title="Bandwidth",
    shows="the speed of copies from disk to memory, to the GPU and back, with and without pinned "
    "memory",
    cpu=("numpy",),
    gpu=("cupy", "jax", "torch"),
    axis="bytes",
    group="",
    figure="bytes",
    phases=(
        "memory to memory",
        "cached file to memory",
        "disk to memory",
        "host to device",
        "host to device, pinned",
        "device to host",
        "device to host, pinned",
    ),
    checks=(OutputCheck({"bytes": _MIB}, 0.0),),
    quick=_sweep("bytes", (_MIB, 16 * _MIB, 128 * _MIB)),
    full=_sweep("bytes", _doubled(_MIB // 16, 1024 * _MIB)),
    has_crossover=False,
    grows=False,  # a disk takes longer than the sizes
)

REGRESSION = BenchExample(
    name="regression",
    title="Least squares by gradient descent",
    shows="many small steps: how much data per step makes a GPU faster, in a Python loop or a "
    "fused loop",
    cpu=("numpy", "jax", "torch"),
    gpu=("cupy", "jax", "torch"),
    axis="samples",
    group="variables: {variables}",
    figure="time",
    phases=("python loop", "fused loop", "end to end"),
    checks=tuple(
        OutputCheck(point, 1e-4, {**point, "precision": "fp64"})
        for point in (
            {"samples": 1000, "variables": 1, "iterations": 100},
            {"samples": 500, "variables": 20, "iterations": 250},
        )
    ),
    quick=(
        *_sweep("samples", _tens(5)[2:], variables=1, iterations=100),
        *_sweep("samples", _tens(4)[2:], variables=50, iterations=100),
    ),
    full=(
        *_sweep("samples", _tens(6)[1:], variables=1, iterations=1000),
        *_sweep("samples", _tens(5)[1:], variables=50, iterations=1000),
        *_sweep("samples", _tens(4)[1:], variables=1000, iterations=1000),
    ),
    kernels=("fused loop", "python loop"),
    precision="FP32",
)


def _loaders(
    workers: tuple[int, ...], prefetches: tuple[int, ...], **fixed: int
) -> tuple[Point, ...]:
    """Return points at which only the loader is timed, each with other settings."""
    return (
        *_sweep("workers", workers, prefetch=2, only=_LOADER, **fixed),
        *_sweep("prefetch", prefetches, workers=4, only=_LOADER, **fixed),
    )


_CNN_CHECK = {"images": 64, "batch": 32, "workers": 0, "prefetch": 2}

CNN = BenchExample(
    name="cnn",
    title="A small convolutional network",
    shows="training on CIFAR-10's images: whether the network or the data loading takes the time",
    cpu=("torch", "jax"),
    gpu=("torch", "jax"),
    axis="batch",
    group="workers: {workers}, prefetch: {prefetch}",
    figure="items",
    phases=(_LOADER, "host memory", "on the device"),
    # A CPU's memory is its device memory.
    on_cpu=MappingProxyType({"on the device": "host memory"}),
    kernels=("on the device",),
    checks=(OutputCheck(_CNN_CHECK, 1e-3, {**_CNN_CHECK, "precision": "fp64"}),),
    quick=(
        *_sweep("batch", (16, 64, 256), images=512, workers=0, prefetch=2),
        *_loaders((1,), (), batch=256, images=512),
    ),
    full=(
        *_sweep("batch", _doubled(64, 4096), images=8192, workers=4, prefetch=2),
        *_loaders((0, 1, 2, 8, 16), (1, 4, 8), batch=1024, images=8192),
    ),
    grows=False,
)

_RESNET_CHECK = {"images": 8, "batch": 8, "workers": 0, "prefetch": 2}

RESNET152 = CNN._replace(
    name="resnet152",
    title="ResNet-152",
    shows="the same images with a network so large that the time of data loading does not matter",
    cpu=("torch",),
    gpu=("torch",),
    checks=(OutputCheck(_RESNET_CHECK, 3e-3, {**_RESNET_CHECK, "precision": "fp64"}),),
    quick=_sweep("batch", (4, 8), images=8, workers=0, prefetch=2),
    full=(
        *_sweep("batch", _doubled(16, 1024), images=1024, workers=4, prefetch=2),
        *_loaders((0, 1, 2, 8, 16), (1, 4, 8), batch=256, images=1024),
    ),
)

EXAMPLES: dict[str, BenchExample] = {
    example.name: example for example in (SOLVE, REGRESSION, CNN, RESNET152, MATMUL, BANDWIDTH)
}
"""All examples, in the order in which they are shown."""
