"""What one frame of `teho top` shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from teho.model.document import Fact, Report
from teho.model.live import NodeNow
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern
from teho.show.loaded import LoadedRun

__all__ = ["CURVES", "KEPT", "Answer", "Curve", "Frame", "Source", "report_of", "unjudged"]

_BELOW = lazy_pattern(r" (\d+ (?:more finding|remark)s?) below\.$")
CURVES = {
    "gpu_busy_percent": 100.0,
    "gpu_sm_active_percent": 100.0,
    "gpu_memory_used_bytes": None,
    "gpu_power_w": None,
}
"""Metric of a curve -> its largest value; None: the limit of the device."""
KEPT = 600
"""Samples of a curve."""


class Curve(NamedTuple):
    """One metric of one device over the last minutes."""

    metric: str
    times_s: Sequence[float]
    """Seconds after the start of the program."""
    values: Sequence[float | None]


class Answer(NamedTuple):
    """What the scheduler reports of a job that Teho does not record."""

    by: str
    """Its commands."""
    age_s: float
    """Time since they were asked."""
    elapsed_s: float
    """Time since the start of the job."""


class Frame(NamedTuple):
    """The state of a run at one moment."""

    report: Report
    """On the run until now."""
    nodes: tuple[NodeNow, ...]
    limit_s: float | None = None
    """Seconds from the start of the program until the scheduler ends the job."""
    notes: tuple[str, ...] = ()
    """How the values came, if they are old or incomplete."""
    replayed_s: float | None = None
    """Moment of a replay, in seconds after the start of the program; None: it is no replay."""
    answer: Answer | None = None
    """None: the nodes have samples."""
    owner: str = ""
    """Name of the user who owns the recording; empty if it is not known."""
    ended_s: float | None = None
    """End of the run, in seconds after the start of the program; None: it has not ended."""
    alert: str = ""
    """A sentence about the present moment that is more important than the verdict; may be empty."""

    @property
    def elapsed_s(self) -> float:
        """Time since the start of the program, by the newest sample."""
        for moment_s in (self.replayed_s, self.ended_s):
            if moment_s is not None:
                return moment_s
        if self.answer is not None:
            return self.answer.elapsed_s
        return max((node.elapsed_s for node in self.nodes if node.elapsed_s), default=0.0)

    @property
    def until_limit_s(self) -> float | None:
        """Time until the scheduler ends the job; None: it is not known, or the run has ended."""
        if self.report.state != "running" or not self.limit_s:
            return None
        return max(0.0, self.limit_s - self.elapsed_s)

    @property
    def headed(self) -> Report:
        """The report, with what the head of the screen adds to it.

        The sentence about the present moment is in front of the verdict. A fact is the time until
        the time limit.
        """
        report, left_s = self.report, self.until_limit_s
        if left_s is not None:
            fact = Fact("until_limit_s", "Until the time limit", left_s, "s")
            report = msgspec.structs.replace(report, facts=(*report.facts, fact))
        if not self.alert:
            return report
        return msgspec.structs.replace(report, verdict=f"{self.alert} {report.verdict}")

    def node(self, name: str) -> NodeNow | None:
        """Return a node; None if the run has no node of this name."""
        return next((node for node in self.nodes if node.node.name == name), None)


class Source(Protocol):
    """Where the frames come from: a run that continues, or a recording."""

    def poll(self, *, reads_all: bool = False) -> None:
        """Take what has come, without waiting.

        Args:
            reads_all: whether all nodes are read that are not read yet; if not, a call reads as
                many as it can in a part of a second.
        """

    def frame(self) -> Frame:
        """Return the present state."""

    def curves(self, node: str, position: int) -> Sequence[Curve]:
        """Return the metrics of a GPU over the last minutes."""

    def process(self, node: str, pid: int) -> WatchedProcess | None:
        """Return what the probe recorded of a process; None: nothing."""

    def close(self) -> None:
        """End watching."""

    @property
    def awaits_report(self) -> bool:
        """Whether the first report is being made; the screen looks for it more often."""


def report_of(loaded: LoadedRun) -> Report:
    """Return the report on a run. A frame has its own tables, and shows only the first finding."""
    report = loaded.short_view
    verdict = _BELOW.sub(rf" \1: `teho report {loaded.run.id}`.", report.verdict)
    return msgspec.structs.replace(report, verdict=verdict)


def unjudged(loaded: LoadedRun, why: str) -> Report:
    """Return a report without figures, for the head of the screen.

    Args:
        loaded: the run.
        why: a sentence in place of the verdict.
    """
    run = loaded.run
    jobs = [node.allocation.job_id for node in run.nodes if node.allocation.job_id]
    return Report(
        title=run.name or run.id,
        run_id=run.id,
        name=run.name,
        command=shlex.join(run.command),
        state=loaded.state.value,
        verdict=why,
        verdict_severity="unknown",
        facts=tuple(Fact("job_id", "Job", job) for job in jobs[:1]),
        tables=(),
        findings=(),
        abstentions=(),
    )
