"""Trials and result of `teho tune`."""

from __future__ import annotations

from typing import Any, Union

import msgspec

__all__ = ["SCHEMA", "Change", "Gain", "Settings", "Trial", "Tuned"]

SCHEMA = "teho.tune/1"
"""Name and version of the JSON form; an incompatible change raises the number."""

Settings = dict[str, Any]
"""Changed settings of the program: `num_workers`, `prefetch_factor`, `persistent_workers`,
`pin_memory`, `batch_size`, `in_memory`, `feed`, `threads`, `tf32`, `autocast`, `channels_last`; of
tf.data `num_parallel_calls` (`autotune`), and `prefetch` and `cache` with the place of the call
behind which they are added, `FILE:LINE:METHOD`. Other settings are unchanged; empty: all are
unchanged."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The program's speed with some settings."""

    settings: Settings
    steps_per_s: Union[float, None] = None
    """Median of its runs; null if no run could be measured."""
    speed: Union[float, None] = None
    """Speed-up against the unchanged program, by medians; of samples/s if batch sizes differ."""
    waited_percent: Union[float, None] = None
    """Share of the time spent waiting for batches."""
    runs: int = 0
    """Number of measured runs."""
    why: str = ""
    """Why it could not be measured, or was excluded."""


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """Speed-up, measured in runs that alternate with runs of the unchanged program."""

    times: float
    low: float
    """Lower end of the 95 % confidence interval."""
    high: float
    pairs: int
    """Number of pairs of runs."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the program, and its place."""

    file: str
    """Empty if the place may be anywhere before the work begins."""
    line: int
    text: str
    """The present text."""
    set_to: str
    """The new value, as code."""
    remark: str = ""


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """The changes, their certainty, and all trials."""

    schema: str = SCHEMA
    command: tuple[str, ...]
    """As typed, secrets masked."""
    outcome: str
    """`gain`: proved; `no_gain`: no trial is significantly faster; `unproved`: the time was too
    short, or the user ended it."""
    verdict: str
    """The most important sentence."""
    settings: Settings = {}
    """Settings to use; empty without a proved gain."""
    gain: Union[Gain, None] = None
    """Gain of the best repeated trial; null if no trial was repeated."""
    unit: str
    """Kind of step: `step` of the optimizer or `teho.step()`, else `batch` of a loader."""
    changes: tuple[Change, ...] = ()
    trials: tuple[Trial, ...]
    """The unchanged program first, then in the order of the trials."""
    notes: tuple[str, ...] = ()
    """Skipped parts with reasons, and other remarks, one sentence each."""
    elapsed_s: float
