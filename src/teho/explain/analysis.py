"""What is known about a run: its description, figures and findings, before a report shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from teho.config.electricity import Electricity
from teho.explain.policy import Policy, load_policy
from teho.model.finding import Abstention, Finding, Severity
from teho.model.run import Run, RunState
from teho.model.summary import Summary
from teho.model.trace import Profiled
from teho.model.watched import WatchedProcess

__all__ = ["Analysis"]


@dataclass(frozen=True)
class Analysis:
    """What is known about a run."""

    run: Run
    """The description of the recording."""
    state: RunState
    """Whether the run still runs, has finished or was interrupted."""
    summary: Summary
    """Its figures."""
    findings: Sequence[Finding] = ()
    """Findings of the rules, most important first."""
    abstentions: Sequence[Abstention] = ()
    """Rules that could not judge the run."""
    problems: Sequence[str] = ()
    """Sentences about rows that could not be read."""
    policy: Policy = field(default_factory=load_policy)
    """The thresholds of the verdict, of outliers and of rooflines."""
    electricity: Electricity = field(default_factory=Electricity)
    """Price and carbon emission of a kWh, each missing if it is not known."""
    processes: Sequence[WatchedProcess] = ()
    """What the probe recorded of Python processes."""
    profiled: Profiled | None = None
    """The newest traces of `teho profile`, with which the findings were compared; None: there are
    none, or they cannot be read."""
    trace_problem: str = ""
    """Why the newest traces cannot be read; may be empty."""

    @property
    def hints(self) -> list[Finding]:
        """The findings that are only hints."""
        return [finding for finding in self.findings if finding.severity is Severity.HINT]

    @property
    def main_findings(self) -> list[Finding]:
        """The findings that are more than hints."""
        return [finding for finding in self.findings if finding.severity is not Severity.HINT]
