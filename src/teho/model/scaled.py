"""Measurements and verdict of `teho scale`: one program on more and more workers."""

from __future__ import annotations

from typing import Literal, NamedTuple, Union

import msgspec

__all__ = [
    "SCHEMA",
    "CurvePoint",
    "Estimate",
    "Fit",
    "Kind",
    "ScaleStep",
    "Scaled",
    "Size",
    "SizeRun",
]

SCHEMA = "teho.scale/1"
"""Name and version of the JSON form; an incompatible change raises the number."""

Kind = Literal["strong", "weak"]
"""`strong`: all sizes do the same work together; `weak`: each worker does the same."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its 95 % confidence interval."""

    value: float
    low: Union[float, None] = None
    """Null if no run was repeated, so that the random variation is unknown."""
    high: Union[float, None] = None


class SizeRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the program."""

    wall_s: float
    """Time of the work, for which energy and cost are counted."""
    work_per_s: Union[float, None] = None
    """Work per s of all workers together: 1/`wall_s` for a whole run of a strong program,
    n/`wall_s` for a weak one, else steps/s times the work of a step; null if it failed."""
    energy_j: Union[float, None] = None
    """Null if unknown."""
    cost: Union[float, None] = None
    """Cost in the site's units; null if unknown."""
    exit_code: Union[int, None] = None
    """Null if Teho ended it or it did not start."""
    recording: str = ""
    """Id of its recording, for `teho report`."""
    why: str = ""
    """Why it could not be measured."""


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """The program on one number of workers. All figures are null if no run could be measured."""

    n: int
    """Number of workers."""
    runs: tuple[SizeRun, ...]
    work_per_s: Union[Estimate, None] = None
    """Geometric mean of the measured runs."""
    wall_s: Union[float, None] = None
    """Geometric mean of their times."""
    speed_up: Union[Estimate, None] = None
    """Work per s relative to the base."""
    efficiency_percent: Union[float, None] = None
    """Speed-up relative to perfect scaling."""
    energy_j: Union[float, None] = None
    """Mean of the runs; null unless all measured runs have it."""
    cost: Union[float, None] = None
    """The same, in the site's units."""
    energy_ratio: Union[float, None] = None
    """Energy for the same work, relative to the base."""
    bill_ratio: Union[float, None] = None
    """Bill for the same work, relative to the base."""


class ScaleStep(msgspec.Struct, frozen=True, kw_only=True):
    """Gain of more workers, compared with the next smaller size that is efficient enough."""

    from_n: int
    to_n: int
    speed: Estimate
    """Ratio of work per s."""
    bill_ratio: float
    """Ratio of the bills for the same work."""
    needed: float
    """Smallest ratio of work per s that justifies the larger size."""
    is_efficient: Union[bool, None] = msgspec.field(name="pays")  # the key in JSON
    """Whether the larger size is justified; null: the interval includes `needed`, or is missing."""


class CurvePoint(NamedTuple):
    """A point of a fitted curve, with the interval of the fit."""

    n: float
    speed_up: float
    low: float
    high: float


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """A law of scaling fitted to the runs.

    Work per s of n workers: X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)).
    """

    law: Literal["amdahl", "usl"]
    """`usl`: the Universal Scalability Law; `amdahl`: the same without kappa."""
    one_work_per_s: Estimate
    """Lambda, the work per s of one worker."""
    contention: Estimate
    """Sigma, the share of the time in which only one worker can work: Amdahl's serial fraction."""
    coherency: Union[Estimate, None] = None
    """Kappa, the cost of communication of each pair of workers; null for `amdahl`."""
    peak_n: Union[Estimate, None] = None
    """The fastest number of workers; null unless the interval of kappa excludes 0 and the number
    is at most twice the largest size. Its `high` is null beyond that."""
    off_percent: float
    """Largest deviation of a size from the curve."""
    curve: tuple[CurvePoint, ...]
    """From the smallest size to twice the largest."""


class Scaled(msgspec.Struct, frozen=True, kw_only=True):
    """The number of workers that is still efficient, with its certainty and measurements."""

    schema: str = SCHEMA
    command: tuple[str, ...]
    """As typed, secrets masked."""
    kind: Kind
    worker: str
    """Kind of worker: `GPU`, `rank`, `core`…"""
    unit: str
    """Unit of work: `run` of the whole program, else `step` or `sample`."""
    outcome: Literal["pays_to", "no_gain", "not_enough_evidence"]
    """`no_gain`: no size beyond the base is efficient enough."""
    efficient_n: Union[int, None] = msgspec.field(default=None, name="pays_to")  # the key in JSON
    """Largest efficient number of workers; null unless the outcome is `pays_to`."""
    verdict: str
    """The most important sentence."""
    base_n: Union[int, None] = None
    """Base of all comparisons: the smallest measured size."""
    sizes: tuple[Size, ...]
    """By number of workers."""
    steps: tuple[ScaleStep, ...] = ()
    fits: tuple[Fit, ...] = ()
    """The most general law first, because its intervals include the effects of the others."""
    cost_unit: str = ""
    """Unit of the runs' cost, such as `BU`; empty: the bill is workers times time."""
    notes: tuple[str, ...] = ()
    """Skipped parts with reasons, and other remarks, one sentence each."""
    elapsed_s: float
