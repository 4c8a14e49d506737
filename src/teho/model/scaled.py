"""What `teho scale` measured of a program on more and more workers, and what came of it."""

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
"""Name and version of the JSON form; a change that breaks readers raises the number."""

Kind = Literal["strong", "weak"]
"""`strong`: all sizes do the same work together; `weak`: each worker does the same."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value, and the interval that holds the true one with 95 % confidence."""

    value: float
    low: Union[float, None] = None
    """Null where no run was repeated, so that nothing is known of chance."""
    high: Union[float, None] = None


class SizeRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the program."""

    wall_s: float
    """The time in which the work was done, and over which energy and cost are counted."""
    work_per_s: Union[float, None] = None
    """Of all workers together: 1/`wall_s` where all of a strong program was run, n/`wall_s` of a
    weak one, else its steps a second times the work of a step; null if it failed."""
    energy_j: Union[float, None] = None
    """Null where it is not known."""
    cost: Union[float, None] = None
    """In the site's units; null if it is not known."""
    exit_code: Union[int, None] = None
    """Null where it was ended by Teho or did not start."""
    recording: str = ""
    """Id of its recording, for `teho report`."""
    why: str = ""
    """Why it could not be measured."""


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """The program on one number of workers; all figures null if no run could be measured."""

    n: int
    """Number of workers."""
    runs: tuple[SizeRun, ...]
    work_per_s: Union[Estimate, None] = None
    """Geometric mean of the runs that could be measured."""
    wall_s: Union[float, None] = None
    """The same of their times."""
    speed_up: Union[Estimate, None] = None
    """Work per s against the base's."""
    efficiency_percent: Union[float, None] = None
    """Speed-up against that of workers that do not hinder each other."""
    energy_j: Union[float, None] = None
    """Mean of the runs; null unless all that could be measured tell."""
    cost: Union[float, None] = None
    """The same, in the site's units."""
    energy_ratio: Union[float, None] = None
    """Of the energy for the same work, against the base's."""
    bill_ratio: Union[float, None] = None
    """Of the bill for the same work, against the base's."""


class ScaleStep(msgspec.Struct, frozen=True, kw_only=True):
    """What more workers buy, from the largest size before that pays."""

    from_n: int
    to_n: int
    speed: Estimate
    """Ratio of work per s."""
    bill_ratio: float
    """Of the bill for the same work."""
    needed: float
    """The least ratio of work per s that pays."""
    pays: Union[bool, None]
    """Null: the interval holds `needed`, or there is none."""


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
    """Sigma, the share of the time in which only one can work: Amdahl's serial fraction."""
    coherency: Union[Estimate, None] = None
    """Kappa, what each pair of workers costs by keeping each other informed; null for `amdahl`."""
    peak_n: Union[Estimate, None] = None
    """Where it is fastest, from the smallest size on; null unless the interval of kappa excludes 0
    and the place lies within twice the largest size. Its `high` is null beyond that."""
    off_percent: float
    """Of the size that lies farthest from the curve."""
    curve: tuple[CurvePoint, ...]
    """From the smallest size to twice the largest."""


class Scaled(msgspec.Struct, frozen=True, kw_only=True):
    """How far more workers pay, how sure that is, and what was measured."""

    schema: str = SCHEMA
    command: tuple[str, ...]
    """As typed, secrets masked."""
    kind: Kind
    worker: str
    """What is counted: `GPU`, `rank`, `core`…"""
    unit: str
    """What work is counted in: `run` of the whole program, else `step` or `sample`."""
    outcome: Literal["pays_to", "no_gain", "not_enough_evidence"]
    """`no_gain`: no size pays beyond the base."""
    pays_to: Union[int, None] = None
    """Largest number of workers that is known to pay; null unless the outcome is `pays_to`."""
    verdict: str
    """The one sentence that matters first."""
    base_n: Union[int, None] = None
    """Size that all are compared with: the smallest that could be measured."""
    sizes: tuple[Size, ...]
    """By number of workers."""
    steps: tuple[ScaleStep, ...] = ()
    fits: tuple[Fit, ...] = ()
    """The most general first: its intervals hold what the others leave out."""
    cost_unit: str = ""
    """Of the runs' cost, such as `BU`; empty: the bill is workers times time."""
    notes: tuple[str, ...] = ()
    """What was left out and why, and other remarks, one sentence each."""
    elapsed_s: float
