"""What `teho doctor` looked at, and what it found."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Union

import msgspec

from teho.model.finding import Finding

__all__ = ["SCHEMA", "CheckResult", "Examination", "Product", "SelfTest", "State", "Symptom"]

SCHEMA = "teho.doctor/1"
"""Name and version of the JSON form; a change that breaks readers raises the number."""

State = Literal["found", "fine", "abstained", "not_applicable"]


class Symptom(Finding, frozen=True, kw_only=True):
    """One thing that is wrong or worth knowing; its `kind` is the id of the check."""

    dooms: bool = False
    """Whether a job that has it cannot do what it was started for."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One check and what came of it."""

    id: str
    about: str
    """What it looks at, in a few words."""
    decisive: bool
    """Whether what it finds may doom a job."""
    state: State
    """`abstained`: something that it needs could not be had. `not_applicable`: the question does
    not arise here."""
    symptoms: tuple[Symptom, ...] = ()
    said: str = ""
    """What was seen where it is fine, what was lacking, or why the question does not arise."""


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """A product of two matrices, in one library and one precision."""

    library: str
    """With its version: `torch 2.9.1`."""
    device: str
    """Product name of the GPU, or the CPU."""
    precision: str
    size: int
    """Rows of each square matrix."""
    flop_per_s: float
    """Median of some runs, after others that warmed it up."""
    peak_percent: Union[float, None] = None
    """Of what the device can do at most, by its maker; null if that is not known."""
    error: Union[float, None] = None
    """Largest difference from NumPy's in double precision, of the largest figure; null for the one
    that the others are compared with."""


class SelfTest(msgspec.Struct, frozen=True, kw_only=True):
    """Matrix products in the user's own Python, checked and timed."""

    state: Literal["passed", "failed", "not_run"]
    products: tuple[Product, ...] = ()
    why: str = ""
    """Why it failed, or could not be run."""


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, one allocation and one Python, at one moment."""

    schema: str = SCHEMA
    at: datetime
    host: str
    cluster: str = ""
    """Name in the catalogue; empty if it is none that Teho knows."""
    scheduler: Union[str, None] = None
    job_id: Union[str, None] = None
    python: str = ""
    """The user's Python; empty if there is none."""
    wall_s: float
    """What the checks took, without the self-test."""
    checks: tuple[CheckResult, ...]
    self_test: Union[SelfTest, None] = None
    """None: it was not asked for."""
