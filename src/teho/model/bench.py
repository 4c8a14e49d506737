"""What `teho bench` measured of the worked examples, and what came of it."""

from __future__ import annotations

from typing import Any, Union

import msgspec

__all__ = [
    "SCHEMA",
    "Agreement",
    "Bench",
    "Crossover",
    "Left",
    "Measured",
    "Participant",
    "PayOff",
    "Point",
    "Timing",
]

SCHEMA = "teho.bench/1"
"""Name and version of the JSON form; a change that breaks readers raises the number."""

Point = dict[str, Any]
"""Sizes and settings of an example: `{"systems": 1000, "rows": 8}`."""


class Participant(msgspec.Struct, frozen=True, kw_only=True):
    """A library on a placement: a process of its own."""

    library: str
    placement: str
    """`cpu:1`, `gpu:1`…"""
    version: str = ""
    python: str = ""
    device: str = ""
    """The CPU's or the GPU's name; empty if it does not report."""
    threads: Union[int, None] = None
    """With which the library computes on the CPU."""
    why: str = ""
    """Where it takes no part: `not_installed`, `cpu_only_build`, `no_gpu`, `broken`, `died`,
    `time` or `disagrees`."""
    text: str = ""
    """The same in words."""


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """A result compared with that of another library."""

    point: Point
    library: str
    placement: str
    reference: str
    """Library and placement of the result that it was compared with."""
    error: Union[float, None]
    """Largest difference, relative to the largest figure; null: not a number."""
    tolerance: float
    agrees: bool


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long one phase took at one point."""

    point: Point
    library: str
    placement: str
    phase: str
    first_s: float
    """The first run, with compilation and warm-up."""
    median_s: float
    """Of the samples, for one run."""
    low_s: float
    """End of the interval that holds the true median with 95 % confidence; of fewer than six
    samples, the least."""
    high_s: float
    """The other end; the most."""
    noise_percent: Union[float, None]
    """Half of that interval, of the median; null of fewer than six samples."""
    drift_percent: Union[float, None]
    """By how much the last quarter of the samples is slower than the first; null of fewer than
    eight."""
    samples: int
    calls: int
    """Runs in each sample."""
    flop_per_s: Union[float, None] = None
    bytes_per_s: Union[float, None] = None
    items_per_s: Union[float, None] = None
    """Systems, images…"""
    peak_percent: Union[float, None] = None
    """Of what the device can do at most, by its maker's documents; null if that is not known."""
    thermal_throttle_percent: Union[float, None] = None
    """The most that was seen while timing; null if the device does not report, or is a CPU."""
    power_throttle_percent: Union[float, None] = None
    """The same, of the power cap."""


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A point at which a library's sweep ended, or that was left out."""

    point: Point
    library: str
    placement: str
    why: str
    """`memory`, `failed`, `unsupported`, `died`, `time`, or `slow` where runs take too long."""
    text: str


class Crossover(msgspec.Struct, frozen=True, kw_only=True):
    """From which point on one placement is faster than another, each with its fastest library."""

    phase: str
    slow_phase: str = ""
    """What of the slow one it is compared with, where that has no phase of the same name."""
    group: str
    """What else was held fixed, in words: `8 × 8`."""
    slow: str
    """Placement that is beaten, and"""
    fast: str
    """the one that beats it."""
    outcome: str
    """`from`: between `low` and `high`; `always`: at every point that was measured; `never`: not at
    the last one."""
    low: Union[float, None] = None
    """Last point at which it is not yet faster beyond noise."""
    high: Union[float, None] = None
    """First point from which on it is."""
    estimate: Union[float, None] = None
    """Where the two are equal, between these two: interpolated in logarithms."""
    last: float
    """The largest point at which both were measured."""
    times: float
    """How many times as fast it is there."""
    libraries: tuple[str, str]
    """The slow one's fastest library there, and the fast one's."""


class PayOff(msgspec.Struct, frozen=True, kw_only=True):
    """After how many runs a GPU has made up for what it costs before the first."""

    group: str
    point: Point
    library: str
    placement: str
    phase: str
    """What is run again and again on data that stay on the GPU."""
    against: str
    """Placement whose fastest library it is compared with."""
    first_s: float
    """Compilation, warm-up, and the copies to the GPU and back, once."""
    run_s: float
    """Median of one run after that, and"""
    against_s: float
    """of one run there."""
    runs: float
    """`first_s / (against_s - run_s)`."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One example."""

    name: str
    title: str
    verdict: str
    """The one sentence that matters first."""
    axis: str
    """Key of the points along which crossovers are sought."""
    figure: str
    """What is shown of a timing: `time`, `flop`, `bytes` or `items`."""
    phases: tuple[str, ...]
    """Those that are judged, in the order of telling."""
    groups: dict[str, list[Point]] = {}
    """Points that differ along the axis alone, by what is held fixed, in words."""
    participants: tuple[Participant, ...]
    agreements: tuple[Agreement, ...]
    timings: tuple[Timing, ...]
    left: tuple[Left, ...]
    crossovers: tuple[Crossover, ...]
    pay_offs: tuple[PayOff, ...]
    notes: tuple[str, ...]
    """What is missing and why, noise and throttling, one sentence each."""
    elapsed_s: float


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured in one call."""

    schema: str = SCHEMA
    teho_version: str
    at: str
    """Time in UTC, with its offset."""
    cpu: str
    gpus: tuple[str, ...]
    python: str
    """Path of the Python that the programs ran in."""
    is_quick: bool
    results: tuple[Measured, ...]
    notes: tuple[str, ...] = ()
