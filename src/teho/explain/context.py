"""What a rule needs to read a summary: signals with their gaps, and places with their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple, TypeVar, Union

import msgspec

from teho.explain.at_work import bins_at_work, mean_in
from teho.explain.cores import cores_given
from teho.explain.wording import MOST_NAMED, joined, listed, numbered, span
from teho.model.allocation import Allocation
from teho.model.finding import Abstention, Evidence, Finding, Lack, Severity, Threshold
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import Figure, GpuSummary, NodeSummary, Stat, Summary
from teho.model.watched import Frame
from teho.schedulers.advice import Advice
from teho.schedulers.registry import scheduler_or_none
from teho.units import format_duration

__all__ = [
    "GpuUse",
    "Located",
    "NodeGpu",
    "Place",
    "RuleContext",
    "Series",
    "allocation_of",
    "cores_of_job",
    "each_of",
    "ever",
    "highest_use",
    "in_lines",
    "known",
    "name_all",
    "per_place",
    "span",
    "the_gpus",
]

Series = list[Union[float, None]]
_LINES = 2
_T = TypeVar("_T")
_P = TypeVar("_P", bound="Place")


class Located(Finding, frozen=True, kw_only=True):
    """A finding that knows which nodes and GPUs it speaks of, so that others can give way."""

    subjects: tuple[str, ...] = ()
    """Keys of nodes and GPUs; empty: the whole run."""
    mutes: bool = True
    """Whether other rules give way to it, as `SUPPRESSIONS` says."""


class NodeGpu(NamedTuple):
    """One GPU with the node that it sits in."""

    node: NodeSummary
    gpu: GpuSummary

    @property
    def key(self) -> str:
        """Name of this GPU among the subjects of findings."""
        return f"{self.node.name}/{self.gpu.device.id}"

    @property
    def name(self) -> str:
        """How a sentence calls it."""
        return f"GPU {self.gpu.position} on {self.node.name}"


Place = Union[NodeGpu, NodeSummary]
"""What a figure is about."""


class GpuUse(NamedTuple):
    """How much a GPU was used, by the measure that there is of it."""

    label: str
    stat: Stat
    is_busy_share: bool

    def was_none(self, busy_below: float) -> bool:
        """Return whether it was never used: busy for less than this share of any sample's time.

        Of multiprocessors a single small kernel takes less than a hundredth: any of them is some.
        """
        return self.stat.max < busy_below if self.is_busy_share else self.stat.max == 0


class RuleContext:
    """One rule's look at a run; it remembers what the rule looked for and did not find."""

    def __init__(
        self, kind: str, run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
    ) -> None:
        self.kind = kind
        self.run = run
        self.summary = summary
        self.thresholds = thresholds
        self._lacks: dict[tuple[str, str, Missing], Place] = {}

    @property
    def gpus(self) -> list[NodeGpu]:
        """Every GPU of the run, node by node."""
        return [NodeGpu(node, gpu) for node in self.summary.nodes for gpu in node.gpus]

    @property
    def scheduler(self) -> str | None:
        """Such as `slurm`; None if the run was not in a job."""
        given = (node.allocation.scheduler for node in self.run.nodes)
        return next((scheduler for scheduler in given if scheduler), None)

    @property
    def scheduler_advice(self) -> Advice:
        """What to do, in the options and commands of the run's scheduler."""
        return scheduler_or_none(self.scheduler).advice

    def period_s(self, node_name: str) -> float:
        """Return the time between two samples on a node, in seconds."""
        given = (part.period_s for part in self.run.nodes if part.name == node_name)
        return next(given, self.run.period_s)

    def limit(self, name: str) -> float:
        """Return the value of one of the rule's thresholds, in its own unit."""
        return self.thresholds[name].value

    def stat(self, of: Place, metric: str) -> Stat | None:
        """Return a gauge's figures; None, and noted, where they are missing or cover too little."""
        found = _stats(of).get(metric, Missing(Reason.UNRECORDED))
        if isinstance(found, Stat):
            found = self._covered(found, found.covered_s)
        return self._noted(of, METRICS_BY_NAME[metric].label, found)

    def use(self, of: NodeGpu) -> GpuUse | None:
        """Return how much a GPU was used; None, and noted, where nobody knows.

        A MIG instance has no busy share. How many of its multiprocessors had work is told of some.
        """
        told = isinstance(_stats(of).get("gpu_sm_active_percent"), Stat)
        is_busy_share = of.gpu.device.parent_id is None or not told
        metric = "gpu_busy_percent" if is_busy_share else "gpu_sm_active_percent"
        stat = self.stat(of, metric)
        return GpuUse(METRICS_BY_NAME[metric].label, stat, is_busy_share) if stat else None

    def figure(self, of: Place, what: str, found: Figure) -> float | None:
        """Return a number; None, and noted, where it is missing."""
        return self._noted(of, what, found)

    def series(self, of: Place, metric: str) -> Series | None:
        """Return bin means (bins,); None, and noted, where they are missing or too few."""
        series = (of.gpu.series if isinstance(of, NodeGpu) else of.series).get(metric, [])
        seen = len(series) - (series.count(None) if None in series else 0)
        if len(series) == self.summary.bin_count and seen:
            found = self._covered(series, seen * self.summary.bin_s)
        else:
            found = _why_missing(of, metric)
        return self._noted(of, METRICS_BY_NAME[metric].label, found)

    def while_working(self, of: NodeGpu, metric: str) -> float | None:
        """Return a gauge's mean over the time in which the GPU was at work.

        None if it was at work for too little of the time to ask, and where the gauge is
        missing, which is noted.
        """
        bins = bins_at_work(
            of.gpu,
            self.summary.bin_count,
            busy_percent=self.limit("at_work_percent"),
            time_percent=self.limit("at_work_time_percent"),
        )
        values = self.series(of, metric) if bins else None
        if values is None:
            return None
        mean = mean_in(bins, values)
        unseen = Missing(Reason.UNRECORDED, "not recorded while the GPU was at work")
        return self.figure(of, METRICS_BY_NAME[metric].label, unseen if mean is None else mean)

    def busiest_gpu(self, node: NodeSummary) -> Series | None:
        """Return the busy share of the node's busiest GPU, bin by bin (bins,).

        A bin in which any of the GPUs was not seen is None: the unseen one may have
        been the busy one.
        """
        seen = [self.series(NodeGpu(node, gpu), "gpu_busy_percent") for gpu in node.gpus]
        known = [series for series in seen if series is not None]
        if not known or len(known) < len(seen):
            return None
        return [
            max(value for value in values if value is not None) if None not in values else None
            for values in zip(*known, strict=True)
        ]

    def gpu_used(self, node: NodeSummary) -> bool | None:
        """Return whether any GPU of the node ever got as busy as `gpu_used_percent`.

        None, and noted, where none did and one was not seen.
        """
        gpus = [NodeGpu(node, gpu) for gpu in node.gpus]
        peaks = known(gpus, "gpu_busy_percent", "max")
        if any(peak >= self.limit("gpu_used_percent") for _, peak in peaks):
            return True
        return None if None in [self.stat(of, "gpu_busy_percent") for of in gpus] else False

    def finding(
        self,
        severity: Severity,
        sentence: str,
        *,
        evidence: Iterable[Evidence],
        judged_by: Sequence[str],
        action: str,
        subjects: Iterable[Place] = (),
        regain_percent: tuple[float, float] | None = None,
        mutes: bool = True,
    ) -> Located:
        """Build a finding; `judged_by` names the thresholds behind it."""
        return Located(
            kind=self.kind,
            severity=severity,
            sentence=sentence,
            evidence=tuple(evidence),
            thresholds=tuple(self.thresholds[name] for name in judged_by),
            action=action,
            subjects=tuple(of.key if isinstance(of, NodeGpu) else of.name for of in subjects),
            regain_percent=regain_percent,
            mutes=mutes,
        )

    def outcome(self, findings: Sequence[Finding]) -> list[Finding] | Abstention:
        """Return the findings, with what was not judged among the first one's evidence.

        Without findings, anything that was looked for in vain makes an abstention:
        what was not seen cannot be called well.
        """
        if not self._lacks:
            return list(findings)
        if not findings:
            lacks = tuple(self._grouped_lacks())
            said = "; ".join(f"{lack.what} of {lack.where}: {lack.why}" for lack in lacks)
            return Abstention(kind=self.kind, lacked=said, lacks=lacks)
        unseen = tuple(
            Evidence(f"not judged: {what}, {place}", missing)
            for what, place, missing in islice(self._lacks, MOST_NAMED)
        )
        first = msgspec.structs.replace(findings[0], evidence=findings[0].evidence + unseen)
        return [first, *findings[1:]]

    def _covered(self, found: _T, covered_s: float) -> _T | Missing:
        whole_s = self.summary.elapsed_s
        if covered_s > 0 and covered_s >= whole_s * self.limit("covered_percent_min") / 100:
            return found
        seen = f"recorded for {format_duration(covered_s)} of {format_duration(whole_s)}"
        return Missing(Reason.UNRECORDED, seen)

    def _noted(self, of: Place, what: str, found: _T | Missing) -> _T | None:
        if not isinstance(found, Missing):
            return found
        self._lacks[what, of.name, found] = of
        return None

    def _grouped_lacks(self) -> Iterable[Lack]:
        places: dict[tuple[str, str], list[Place]] = {}
        for (what, _, missing), of in self._lacks.items():
            why = missing.detail or str(missing)
            places.setdefault((what, why), []).append(of)
        for (what, why), alike in places.items():
            yield Lack(what, name_all(alike), why)


def known(
    places: Iterable[Place], metric: str, part: Literal["mean", "max"]
) -> list[tuple[Place, float]]:
    """Return a gauge's mean or maximum where it was recorded at all, as further evidence."""
    stats = [(of, _stats(of).get(metric)) for of in places]
    return [(of, getattr(stat, part)) for of, stat in stats if isinstance(stat, Stat)]


def ever(of: Place, metric: str) -> bool:
    """Return whether a gauge is known to have been above zero at any time."""
    return any(most > 0 for _, most in known([of], metric, "max"))


def highest_use(uses: Sequence[tuple[NodeGpu, GpuUse]]) -> tuple[Evidence, ...]:
    """Give the most that each GPU was ever used, by its own measure."""
    labels = dict.fromkeys(use.label for _, use in uses)
    return tuple(
        item
        for label in labels
        for item in per_place(
            f"{label}, highest", "%", [(of, use.stat.max) for of, use in uses if use.label == label]
        )
    )


def _why_missing(of: Place, metric: str) -> Missing:
    figures: Mapping[str, Stat | Figure] = _stats(of)
    if isinstance(of, NodeSummary) and metric in of.totals:
        figures = of.totals
    figure = figures.get(metric)
    return figure if isinstance(figure, Missing) else Missing(Reason.UNRECORDED)


def _stats(of: Place) -> Mapping[str, Stat | Missing]:
    return of.gpu.stats if isinstance(of, NodeGpu) else of.stats


def allocation_of(run: Run, node_name: str) -> Allocation:
    """Return what the job was given on a node; nothing known where the node is not."""
    return next((node.allocation for node in run.nodes if node.name == node_name), Allocation())


def cores_of_job(run: Run, of: NodeSummary) -> int:
    """Return how many cores the job has on a node, by what was recorded or by the scheduler."""
    node = next((node for node in run.nodes if node.name == of.name), None)
    given = cores_given(run, node) if node else None
    return max(of.cores, given or 0)


def name_all(places: Sequence[Place]) -> str:
    """Name GPUs or nodes in a sentence.

    `GPUs 0–3 on r01g01`, `GPUs 1 and 2 on each of r01g01 and r01g02`, `r01g01, … and 12 more`.
    """
    gpus = [place for place in places if isinstance(place, NodeGpu)]
    if not gpus:
        return listed([place.name for place in places])
    positions: dict[str, list[int]] = {}
    for of in gpus:
        positions.setdefault(of.node.name, []).append(of.gpu.position)
    alike: dict[tuple[int, ...], list[str]] = {}
    for node, numbers in positions.items():
        alike.setdefault(tuple(numbers), []).append(node)
    groups = [_gpus_on(at, nodes) for at, nodes in alike.items()]
    left = sum(len(at) * len(nodes) for at, nodes in list(alike.items())[MOST_NAMED:])
    return joined([*groups[:MOST_NAMED], *([f"{left} more"] if left else [])])


def _gpus_on(numbers: Sequence[int], nodes: Sequence[str]) -> str:
    several = "s" if len(numbers) > 1 else ""
    each = "each of " if len(nodes) > 1 else ""
    return f"GPU{several} {numbered(numbers)} on {each}{listed(nodes, 'nodes')}"


def each_of(nodes: Sequence[NodeSummary]) -> str:
    """Name nodes that a figure holds for one by one: `r01g01`, `each of r01g01 and r01g02`."""
    return f"{'each of ' if len(nodes) > 1 else ''}{name_all(nodes)}"


def the_gpus(nodes: Sequence[NodeSummary]) -> str:
    """Begin a sentence about all GPUs of these nodes."""
    return f"The GPU{'' if [len(of.gpus) for of in nodes] == [1] else 's'} on {name_all(nodes)}"


def per_place(label: str, unit: str, values: Sequence[tuple[_P, float]]) -> tuple[Evidence, ...]:
    """Give each place's figure; of more than four places only the lowest and the highest."""
    if len(values) <= MOST_NAMED:
        return tuple(Evidence(f"{label}, {place.name}", value, unit) for place, value in values)
    figures = [value for _, value in values]
    if min(figures) == max(figures):
        return (Evidence(f"{label}, each of {len(values)}", figures[0], unit),)
    return (
        Evidence(f"{label}, lowest of {len(values)}", min(figures), unit),
        Evidence(f"{label}, highest of {len(values)}", max(figures), unit),
    )


def in_lines(lines: Sequence[tuple[Frame, float]]) -> tuple[Evidence, ...]:
    """Name the lines of a program that most of something was in: `train.py:12  loss.item()`."""
    return tuple(
        Evidence(
            "and" if number else "most of it in",
            f"{frame.file.rpartition('/')[2]}:{frame.line}  {frame.text or frame.function}",
        )
        for number, (frame, _) in enumerate(lines[:_LINES])
    )
