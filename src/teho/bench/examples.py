"""The catalogue of worked examples: their sweeps, checks and figures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from teho.bench.example import BenchExample, OutputCheck
from teho.bench.images import (
    ALL_IMAGES,
    BY_TEHO_FEED,
    LOADER,
    ImageSizes,
    RequestedSizes,
    fitting,
    points_of,
    sized,
)
from teho.errors import InputError
from teho.model.bench import Point

__all__ = ["AXES", "EXAMPLES", "LIBRARIES", "with_sizes"]

LIBRARIES = {"numpy": "NumPy", "cupy": "CuPy", "jax": "JAX", "torch": "PyTorch"}
"""Module -> name in sentences."""
AXES = {
    "systems": "number of systems",
    "samples": "number of samples",
    "elements": "number of elements",
    "batch": "batch size",
    "size": "matrix size",
    "bytes": "number of bytes",
}
"""Key of a point that is swept -> name of the axis."""


def with_sizes(
    example: BenchExample, requested: RequestedSizes, kinds: Collection[str]
) -> BenchExample:
    """Return an example with images, with the sizes that a user chose.

    Args:
        example: any.
        requested: the user's sizes.
        kinds: names of the points that are measured: `quick`, `full` and `on_gpu`.

    Raises:
        InputError: the example has no images, or a chosen setting cannot have an effect.
    """
    if requested == RequestedSizes():
        return example
    if not example.sizes:
        having = [one.name for one in EXAMPLES.values() if one.sizes]
        raise InputError(
            f"the example {example.name} uses no images, so --images, --batch, --workers and "
            "--prefetch have no effect",
            " or ".join(having),
            f"run `teho bench {having[0]}` with the same options",
        )  # fmt: skip
    for kind in kinds:
        own, batches = example.sizes[kind], requested.batches
        left_out: list[str] = []
        if kind == "full" and "on_gpu" in kinds and not requested.images:
            # A GPU can have batches that are too large for the fewer images of a CPU.
            batches, left_out = fitting(own, requested)
        sizes = sized(own, requested._replace(batches=batches))
        points, same_runs = points_of(sizes)
        left_out += same_runs
        changed: dict[str, Any] = {kind: points, "sizes": {**example.sizes, kind: sizes}}
        all_left_out = tuple(dict.fromkeys((*example.left_out, *left_out)))
        example = example._replace(**changed, left_out=all_left_out)
    return example


def _with_images(sizes: Mapping[str, ImageSizes]) -> dict[str, Any]:
    """Return the fields of an example with images."""
    return {"sizes": sizes, **{kind: points_of(own)[0] for kind, own in sizes.items()}}


def _sweep(axis: str, values: tuple[int, ...], **fixed: object) -> tuple[Point, ...]:
    return tuple({axis: value, **fixed} for value in values)


def _tens(last: int) -> tuple[int, ...]:
    """Return 1, 10, 100… up to a power of ten."""
    return tuple(10**power for power in range(last + 1))


def _doubled(first: int, last: int) -> tuple[int, ...]:
    """Return the first, twice the first… up to the last, which is one of them."""
    return tuple(first << power for power in range((last // first).bit_length()))


_MIB = 1024**2

_ADD_CHECK = {"elements": 1000}

ADD = BenchExample(
    name="add",
    title="Addition to each element",
    shows="one addition for each element: from how many elements a GPU is faster, and how long it "
    "takes to copy the elements",
    cpu=("numpy", "jax", "torch"),
    gpu=("cupy", "jax", "torch"),
    axis="elements",
    group="",
    figure="time",
    phases=("kernel", "end to end"),
    checks=(OutputCheck(_ADD_CHECK, 1e-6),),
    quick=_sweep("elements", _tens(7)),
    full=_sweep("elements", _tens(8)),
    precision="FP32",
)

LOOP = ADD._replace(
    name="loop",
    title="A serial loop with a branch",
    shows="a loop in which each step needs the step before: a GPU is slow, unless the loop is "
    "written as a running sum",
    phases=("step by step", "running sum"),
    checks=(OutputCheck(_ADD_CHECK, 0.0),),
    quick=_sweep("elements", _tens(5)),
    full=_sweep("elements", _tens(7)),
    grows=False,  # its longest loop is bounded, and the running sum continues
    kernels=(),
    precision="",
)

SUM = ADD._replace(
    name="sum",
    title="Sum of three arrays",
    shows="a sum with few additions for each number that is read: the speed depends on the "
    "memory, and on whether the compiled code reads each array only once",
    checks=(OutputCheck(_ADD_CHECK, 1e-5),),
)

SOLVE = BenchExample(
    name="solve",
    title="Systems of linear equations",
    shows="N systems of M linear equations: from which number of systems a GPU is faster",
    cpu=("numpy", "jax", "torch"),
    gpu=("cupy", "jax", "torch"),
    axis="systems",
    group="{rows} × {rows}",
    figure="time",
    phases=("kernel", "end to end", "end to end, data generated on the device"),
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
    shows="which share of the peak speed a device reaches, for each matrix size and precision",
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
    shows="many small steps: how much data each step needs before a GPU is faster, in a Python "
    "loop or a fused loop",
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


_FEEDS = (LOADER, "host memory", "on the device")
_CNN_CHECK = {"images": 64, "batch": 32, "workers": 0, "prefetch": 2}

CNN = BenchExample(
    name="cnn",
    title="A small convolutional network",
    shows=(
        "training on CIFAR-10's images: which takes more time, the neural network or loading the "
        "data"
    ),
    cpu=("torch", "jax"),
    gpu=("torch", "jax"),
    axis="batch",
    group="",
    figure="items",
    phases=(*_FEEDS, *(f"{feed}{BY_TEHO_FEED}" for feed in _FEEDS)),
    # A CPU's memory is its device memory.
    on_cpu=MappingProxyType(
        {f"on the device{by}": f"host memory{by}" for by in ("", BY_TEHO_FEED)}
    ),
    kernels=("on the device",),
    checks=(OutputCheck(_CNN_CHECK, 1e-3, {**_CNN_CHECK, "precision": "fp64"}),),
    **_with_images(
        {
            "quick": ImageSizes(512, (16, 64, 256), workers=(0, 1), prefetches=(2,)),
            # On a core, an epoch of all images takes 9 s and more, and each row needs two.
            "full": ImageSizes(8192, _doubled(64, 1024)),
            "on_gpu": ImageSizes(ALL_IMAGES, _doubled(64, 4096)),
        }
    ),
    grows=False,
)

_RESNET_CHECK = {"images": 8, "batch": 8, "workers": 0, "prefetch": 2}

RESNET152 = CNN._replace(
    name="resnet152",
    title="ResNet-152",
    shows=(
        "the same images with a neural network so large that the time of data loading does not "
        "matter"
    ),
    cpu=("torch",),
    gpu=("torch",),
    checks=(OutputCheck(_RESNET_CHECK, 3e-3, {**_RESNET_CHECK, "precision": "fp64"}),),
    **_with_images(
        {
            "quick": ImageSizes(8, (4, 8), workers=(0,), prefetches=(2,)),
            # On a core, an epoch of all images takes 45 minutes and more.
            "full": ImageSizes(256, _doubled(8, 32)),
            "on_gpu": ImageSizes(ALL_IMAGES, _doubled(16, 1024)),
        }
    ),
)

EXAMPLES: dict[str, BenchExample] = {
    example.name: example
    for example in (ADD, LOOP, SUM, SOLVE, REGRESSION, CNN, RESNET152, MATMUL, BANDWIDTH)
}
"""All examples, in the order in which they are shown."""
