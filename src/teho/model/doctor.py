"""Checks and findings of `teho doctor`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Union

import msgspec

from teho.model.finding import Finding

__all__ = ["SCHEMA", "CheckResult", "Examination", "Product", "SelfTest", "State", "Symptom"]

SCHEMA = "teho.doctor/1"
"""Name and version of the JSON form; an incompatible change raises the number."""

State = Literal["found", "fine", "abstained", "not_applicable"]


class Symptom(Finding, frozen=True, kw_only=True):
    """One problem or remark; its `kind` is the id of the check."""

    is_fatal: bool = msgspec.field(default=False, name="dooms")  # the key in JSON
    """Whether a job with this problem cannot succeed."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One check and its result."""

    id: str
    about: str
    """Subject of the check, in a few words."""
    decisive: bool
    """Whether its findings may make a job fail."""
    state: State
    """`abstained`: a fact that it needs was missing. `not_applicable`: the check makes no sense
    here."""
    symptoms: tuple[Symptom, ...] = ()
    result: str = msgspec.field(default="", name="said")  # the key in JSON
    """What was seen if all is well, the missing fact, or why the check makes no sense."""


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
    """Median of some runs after a warm-up."""
    peak_percent: Union[float, None] = None
    """Share of the device's peak, by its maker; null if the peak is unknown."""
    error: Union[float, None] = None
    """Largest difference from NumPy in double precision, relative to the largest value; null for
    the reference itself."""


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
    """Name in the catalogue; empty if unknown."""
    scheduler: Union[str, None] = None
    job_id: Union[str, None] = None
    python: str = ""
    """The user's Python; empty: no Python."""
    wall_s: float
    """Time of the checks, without the self-test."""
    checks: tuple[CheckResult, ...]
    self_test: Union[SelfTest, None] = None
    """None: it was not requested."""
