"""What `teho tune` tried of a program, and what came of it."""

from __future__ import annotations

from typing import Any, Union

import msgspec

__all__ = ["SCHEMA", "Change", "Gain", "Settings", "Trial", "Tuned"]

SCHEMA = "teho.tune/1"
"""Name and version of the JSON form; a change that breaks readers raises the number."""

Settings = dict[str, Any]
"""What was imposed on the program: `num_workers`, `prefetch_factor`, `persistent_workers`,
`pin_memory`, `batch_size`, `in_memory`, `threads`, `tf32`, `autocast`, `channels_last`. What is not
named is as the program has it; empty: all is."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The program's pace with some settings."""

    settings: Settings
    steps_per_s: Union[float, None] = None
    """Median of its runs; null if none could be measured."""
    speed: Union[float, None] = None
    """Against the program as it is, by the medians; of samples where the batch size differs."""
    waited_percent: Union[float, None] = None
    """Of the time, for batches."""
    runs: int = 0
    """How many were measured."""
    why: str = ""
    """Why it could not be measured, or is out."""


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """How many times as fast, by runs that take turns with the program as it is."""

    times: float
    low: float
    """End of the interval that holds the true value with 95 % confidence."""
    high: float
    pairs: int
    """How many pairs of runs."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What to change in the program, and where."""

    file: str
    """Empty if it may stand anywhere before the work begins."""
    line: int
    text: str
    """What stands there."""
    set_to: str
    """What to set there, as code."""
    remark: str = ""


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """What to change, how sure that is, and what was tried."""

    schema: str = SCHEMA
    command: tuple[str, ...]
    """As typed, secrets masked."""
    outcome: str
    """`gain`: proved; `no_gain`: nothing tried is faster, beyond chance; `unproved`: the time did
    not suffice, or somebody ended it."""
    verdict: str
    """The one sentence that matters first."""
    settings: Settings = {}
    """What to set; empty without a gain that is proved."""
    gain: Union[Gain, None] = None
    """Of the best that was repeated; null if nothing was."""
    unit: str
    """What a step is: `step` of the optimizer or `teho.step()`, else `batch` of a loader."""
    changes: tuple[Change, ...] = ()
    trials: tuple[Trial, ...]
    """The program as it is first, then in the order of trying."""
    notes: tuple[str, ...] = ()
    """What was left out and why, and other remarks, one sentence each."""
    elapsed_s: float
