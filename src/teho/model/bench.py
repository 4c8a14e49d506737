"""Measurements and results of the worked examples of `teho bench`."""

from __future__ import annotations

from typing import Any, Union

import msgspec

__all__ = [
    "SCHEMA",
    "Agreement",
    "Amortisation",
    "At",
    "Bench",
    "Crossover",
    "Left",
    "Measured",
    "Participant",
    "Point",
    "Timing",
]

SCHEMA = "teho.bench/1"
"""Name and version of the JSON form; an incompatible change raises the number."""

Point = dict[str, Any]
"""Sizes and settings of an example: `{"systems": 1000, "rows": 8}`."""


class Participant(msgspec.Struct, frozen=True, kw_only=True):
    """A library on a placement, in a separate process."""

    library: str
    placement: str
    """`cpu:1`, `gpu:1`…"""
    version: str = ""
    python: str = ""
    device: str = ""
    """Name of the CPU or GPU; empty if unknown."""
    threads: Union[int, None] = None
    """Number of threads of the library on the CPU."""
    why: str = ""
    """Why it was not measured: `not_installed`, `cpu_only_build`, `no_gpu`, `broken`, `died`,
    `time` or `disagrees`."""
    text: str = ""
    """The reason in words."""


class At(msgspec.Struct, frozen=True, kw_only=True):
    """A library on a placement, at one point."""

    point: Point
    library: str
    placement: str


class Agreement(At, frozen=True, kw_only=True):
    """A result, compared with the result of another library."""

    reference: str
    """Library and placement of the reference result."""
    error: Union[float, None]
    """Largest difference, relative to the largest value; null: not a number."""
    tolerance: float
    agrees: bool


class Timing(At, frozen=True, kw_only=True):
    """Time of one phase at one point."""

    phase: str
    first_s: float
    """The first run, with compilation and warm-up."""
    median_s: float
    """Median of the samples, for one run."""
    low_s: float
    """Lower end of the 95 % confidence interval of the median; the minimum if there are fewer
    than six samples."""
    high_s: float
    """Upper end of the interval; the maximum if there are fewer than six samples."""
    noise_percent: Union[float, None]
    """Half of the interval, in % of the median; null if there are fewer than six samples."""
    drift_percent: Union[float, None]
    """Slowdown of the last quarter of the samples compared with the first quarter; null if
    there are fewer than eight samples."""
    samples: int
    calls: int
    """Runs in each sample."""
    flop_per_s: Union[float, None] = None
    bytes_per_s: Union[float, None] = None
    items_per_s: Union[float, None] = None
    """Systems, images…"""
    peak_percent: Union[float, None] = None
    """Share of the device's peak in its maker's documents; null if the peak is unknown."""
    thermal_throttle_percent: Union[float, None] = None
    """Maximum during the measurement; null if the device does not report it, or is a CPU."""
    power_throttle_percent: Union[float, None] = None
    """The same for the power cap."""
    busy_percent: Union[float, None] = None
    """Mean share of time with a kernel running; null if the device does not report it, the phase
    took less than a second, or the device is a CPU."""
    memory_bytes: Union[int, None] = None
    """Most memory during the phase. GPU: what the library allocated. CPU: resident memory of the
    process, without the data loader's workers. Null if unknown."""


class Left(At, frozen=True, kw_only=True):
    """A point at which a library's sweep ended, or that was skipped."""

    why: str
    """`memory`, `failed`, `unsupported`, `died`, `time`, or `slow` if runs take too long."""
    text: str


class Crossover(msgspec.Struct, frozen=True, kw_only=True):
    """The point from which one placement is faster than another, each with its fastest library."""

    phase: str
    slow_phase: str = ""
    """Phase of the slow placement, if it has no phase of the same name."""
    group: str
    """The fixed sizes in words, such as `8 × 8`."""
    slow: str
    """The slower placement."""
    fast: str
    """The faster placement."""
    outcome: str
    """`from`: it begins between `low` and `high`; `always`: at every measured point; `never`: not
    at the last point."""
    low: Union[float, None] = None
    """Last point at which the difference does not exceed the noise."""
    high: Union[float, None] = None
    """First point from which on it is faster."""
    estimate: Union[float, None] = None
    """Break-even size between `low` and `high`, interpolated in logarithms."""
    last: float
    """Largest point with measurements of both."""
    times: float
    """Speed-up at that point."""
    libraries: tuple[str, str]
    """Fastest library of the slow and of the fast placement at that point."""


class Amortisation(msgspec.Struct, frozen=True, kw_only=True):
    """The number of runs after which a GPU has saved the time of its first run."""

    group: str
    point: Point
    library: str
    placement: str
    phase: str
    """Phase that is repeated on data that stay on the GPU."""
    against: str
    """Placement for the comparison, with its fastest library."""
    first_s: float
    """Time of compilation, warm-up, and the copies to the GPU and back, once."""
    run_s: float
    """Median time of one later run on the GPU."""
    against_s: float
    """Median time of one run on the other placement, for the same number of images."""
    runs: float
    """`first_s / (against_s - run_s)`."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One example."""

    name: str
    title: str
    verdict: str
    """The most important sentence."""
    axis: str
    """Key of the points that changes from one point to the next."""
    figure: str
    """Shown figure of a timing: `time`, `flop`, `bytes` or `items`."""
    phases: tuple[str, ...]
    """Judged phases, in the order of the report."""
    groups: dict[str, list[Point]] = {}
    """Points that differ only along the axis, by the fixed sizes in words."""
    participants: tuple[Participant, ...]
    agreements: tuple[Agreement, ...]
    timings: tuple[Timing, ...]
    left: tuple[Left, ...]
    crossovers: tuple[Crossover, ...]
    amortisations: tuple[Amortisation, ...] = msgspec.field(name="pay_offs")  # the key in JSON
    notes: tuple[str, ...]
    """Missing results with reasons, noise and throttling, one sentence each."""
    elapsed_s: float


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """All measurements of one call."""

    schema: str = SCHEMA
    teho_version: str
    at: str
    """Time in UTC, with its offset."""
    cpu: str
    gpus: tuple[str, ...]
    python: str
    """Path of the Python of the programs."""
    is_quick: bool
    results: tuple[Measured, ...]
    notes: tuple[str, ...] = ()
