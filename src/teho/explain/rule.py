"""What the file of a rule declares.

A rule is one file in a folder of `teho.explain.rules`. No other file names it: rules are found
by their folder, and docs/rules.md is written from what they declare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from teho.explain.context import Located, RuleContext
from teho.explain.program_context import ProgramContext
from teho.explain.shared_thresholds import chosen
from teho.model.finding import Certainty, Evidence, Severity, Threshold

__all__ = [
    "Certainty",
    "Evidence",
    "Findings",
    "Located",
    "ProgramContext",
    "Rule",
    "RuleContext",
    "Severity",
    "Threshold",
    "chosen",
    "kind_of",
]

Findings = Iterator[Located]
"""What a rule yields."""


class Rule(Protocol):
    """The module of a rule. Its docstring says what the finding means, for docs/rules.md.

    A module may also have `MUTES`, the kinds of rules that its finding makes pointless, and
    `MUTES_BECAUSE`, the reason, for docs/rules.md. The finding mutes them for its GPUs and nodes;
    if it is about the whole run, for the whole run.

    `CERTAINTY` is how sure its findings are; without it, `LIKELY`. Findings about lost time are
    sure if the loss is far above the limit in a long enough run.

    `SAME_LOSS_AS` are the kinds of rules that claim the same time as this one. If the report lists
    a finding of one of those first, this rule claims no time.
    """

    __name__: str
    """Its last part, the name of the file, is the kind of the findings."""
    RANK: int
    """Order among findings of the same severity that could save the same time: the smallest rank
    comes first. Each rule has a different rank."""
    SEVERITY: str
    """Severity of its findings, for docs/rules.md."""
    THRESHOLDS: Mapping[str, Threshold]
    """The shipped limits, by name."""

    def judge(self, context: ProgramContext) -> Iterable[Located]:
        """Yield findings about a run.

        None if all is well or the question does not apply. The context notes which signals were
        missing: without a finding, they make an abstention.
        """
        ...


def kind_of(rule: Rule) -> str:
    """Return the kind of a rule's findings: the name of its file."""
    return rule.__name__.rpartition(".")[2]
