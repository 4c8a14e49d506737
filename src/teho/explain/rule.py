"""What the file of a rule declares.

A rule is one file in a folder of `teho.explain.rules`. No other file names it: rules are found
by their folder, and docs/rules.md is written from what they declare.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from teho.explain.program_context import ProgramContext
from teho.model.finding import Abstention, Finding, Threshold

__all__ = ["INPUT_CAUSES", "STARVED", "Mutes", "Rule", "input_causes_after"]

INPUT_CAUSES = (
    "input_read_again",
    "input_small_files",
    "input_workers_needless",
    "input_workers_restarted",
    "input_collated_one_by_one",
    "input_skewed",
    "input_too_many_workers",
    "input_too_few_workers",
    "input_in_main_process",
    "input_slow",
)
"""Why a program waits for its data. Each may be a part of those after it."""
STARVED = ("gpu_low_use", "io_wait_gpu_idle", "cpu_busy_gpu_idle")
"""What a GPU shows while the program waits for its data."""


def input_causes_after(kind: str) -> tuple[str, ...]:
    """Return the input causes of which this one may be a part."""
    return INPUT_CAUSES[INPUT_CAUSES.index(kind) + 1 :]


class Mutes(NamedTuple):
    """The rules that a finding makes pointless.

    It mutes them for the GPUs and nodes that it is about. If it is about the whole run, it mutes
    them for the whole run.
    """

    kinds: tuple[str, ...]
    because: str


class Rule(Protocol):
    """The module of a rule.

    A module may also have `MUTES`, a `Mutes`, and `SAME_LOSS_AS`, the kinds of rules that claim the
    same time as this one. If a finding of one of those stands above its own, it claims no time.
    """

    KIND: str
    """The name of the file, and the kind of its findings."""
    RANK: int
    """Where its findings stand among those of equal severity that could save as much time: the
    smallest comes first. Each rule has its own."""
    SAYS: str
    """What its finding says, for docs/rules.md."""
    SEVERITY: str
    """Of its findings, for docs/rules.md."""
    THRESHOLDS: Mapping[str, Threshold]
    """By name, with the shipped values."""

    def judge(self, context: ProgramContext) -> list[Finding] | Abstention:
        """Judge one run.

        Returns:
            Findings; `[]` if all is well or the question does not apply; an `Abstention` if a
            signal was missing.
        """
        ...
