"""What a rule reads from a run; it remembers which signals were missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import Literal, NamedTuple, TypeVar

import msgspec

from teho.explain.moments import Shows, bins_where, moments_of
from teho.explain.places import (
    NodeGpu,
    Place,
    gpus_of,
    key_of,
    known_part,
    name_all,
    per_place,
    recorded,
    series_of,
    stats_of,
)
from teho.explain.shared_thresholds import EVERY_RULE, SHARED
from teho.explain.wording import MOST_NAMED
from teho.model.finding import (
    Abstention,
    Certainty,
    Evidence,
    Finding,
    Lack,
    Moments,
    Severity,
    Threshold,
)
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import Figure, NodeSummary, PartlyKnown, Series, Stat, Summary
from teho.schedulers.advice import Advice
from teho.schedulers.registry import scheduler_or_none
from teho.units import format_duration

__all__ = [
    "GpuUse",
    "Located",
    "RuleContext",
    "bins_that_hold",
    "highest_use",
    "share_of",
]

_T = TypeVar("_T")


class Located(Finding, frozen=True, kw_only=True):
    """A finding with the nodes and GPUs that it is about."""

    subjects: tuple[str, ...] = ()
    """Keys of nodes and GPUs; empty: the whole run."""
    mutes: bool = True
    """Whether it mutes the rules that the `MUTES` of its rule names."""
    doubts: tuple[str, ...] = ()
    """Kinds of these rules that it does not mute: their findings become less certain."""
    explains_loading: bool = False
    """Whether it says what the program did while it loaded its data."""


class GpuUse(NamedTuple):
    """How much a GPU was used: its busy share, or for a MIG instance its SM activity."""

    label: str
    stat: Stat
    is_busy_share: bool

    def is_none(self, busy_below: float) -> bool:
        """Return whether the GPU was never used.

        The busy share must be below `busy_below` (in %) in each sample. A single small kernel uses
        less than a hundredth of the multiprocessors: any SM activity counts as use.
        """
        return self.stat.max < busy_below if self.is_busy_share else self.stat.max == 0


class WorkingBins(NamedTuple):
    """The time bins in which a GPU was at work."""

    bins: list[int]
    busy_percent: float | None
    """Mean busy share in these bins; None if it was not recorded."""


BinsAtWork = dict[tuple[str, int], WorkingBins]
"""By node and position of a GPU. All rules have the same thresholds for it."""


class RuleContext:
    """A run as one rule reads it; it notes what the rule needed and did not find."""

    def __init__(
        self,
        kind: str,
        run: Run,
        summary: Summary,
        thresholds: Mapping[str, Threshold],
        certainty: Certainty = Certainty.LIKELY,
        bins_at_work: BinsAtWork | None = None,
        of_rules: Mapping[str, Mapping[str, Threshold]] | None = None,
    ) -> None:
        self.kind = kind
        self.run = run
        self.summary = summary
        self.thresholds = thresholds
        self._of_rules = of_rules or {}
        self.certainty = certainty
        self.own_thresholds = [name for name in thresholds if name not in SHARED[EVERY_RULE]]
        self.mains = summary.program.mains if summary.program else ()
        self._lacks: dict[tuple[str, str, Missing], Place] = {}
        self._bins_at_work: BinsAtWork = {} if bins_at_work is None else bins_at_work

    @property
    def gpus(self) -> list[NodeGpu]:
        """Every GPU of the run, node by node."""
        return [place for node in self.summary.nodes for place in gpus_of(node)]

    @property
    def scheduler(self) -> str | None:
        """Such as `slurm`; None if the run was not in a job."""
        given = (node.allocation.scheduler for node in self.run.nodes)
        return next((scheduler for scheduler in given if scheduler), None)

    @property
    def scheduler_advice(self) -> Advice:
        """Advice with the options and commands of the run's scheduler."""
        return scheduler_or_none(self.scheduler).advice

    def samples(self, node_name: str, covered_s: float) -> float:
        """Return the number of samples in a time on a node."""
        node = self.run.node(node_name)
        return covered_s / (node.period_s if node else self.run.period_s)

    def limit(self, name: str, rule: str = "") -> float:
        """Return the value of a threshold of this rule or of another one, in its unit."""
        return (self._of_rules[rule] if rule else self.thresholds)[name].value

    def stat(self, place: Place, metric: str) -> Stat | None:
        """Return a gauge's figures; None, and noted, if they are missing or cover too little."""
        found = stats_of(place).get(metric, Missing(Reason.UNRECORDED))
        if isinstance(found, Stat):
            found = self._if_covered(found, found.covered_s)
        return self._note(place, METRICS_BY_NAME[metric].label, found)

    def mean(self, place: Place, metric: str) -> float | None:
        """Return a gauge's mean; None, and noted, if it is missing or covers too little."""
        return self._part(place, metric, "mean")

    def highest(self, place: Place, metric: str) -> float | None:
        """Return a gauge's maximum; None, and noted, if it is missing or covers too little."""
        return self._part(place, metric, "max")

    def _part(self, place: Place, metric: str, part: Literal["mean", "max"]) -> float | None:
        """Return a part of a gauge that may be the only part that is known."""
        found = stats_of(place).get(metric)
        value = known_part(found, part)
        if isinstance(found, PartlyKnown) and value is not None:
            label = METRICS_BY_NAME[metric].label
            return self._note(place, label, self._if_covered(value, found.covered_s))
        stat = self.stat(place, metric)
        return getattr(stat, part) if stat else None

    def means(self, metric: str) -> list[tuple[NodeGpu, float]]:
        """Return every GPU with a gauge's mean; a GPU without it is noted and left out."""
        means = [(gpu, self.mean(gpu, metric)) for gpu in self.gpus]
        return [(gpu, mean) for gpu, mean in means if mean is not None]

    def use(self, place: NodeGpu) -> GpuUse | None:
        """Return how much a GPU was used; None, and noted, if it is not known.

        A MIG instance has no busy share; some have an SM activity.
        """
        has_activity = isinstance(stats_of(place).get("gpu_sm_active_percent"), Stat)
        is_busy_share = place.gpu.device.parent_id is None or not has_activity
        metric = "gpu_busy_percent" if is_busy_share else "gpu_sm_active_percent"
        label = METRICS_BY_NAME[metric].label
        found = stats_of(place).get(metric)
        if isinstance(found, PartlyKnown) and found.mean == 0:
            # If the mean is 0, each sample is 0.
            never = Stat(mean=0.0, std=0.0, max=0.0, min=0.0, covered_s=found.covered_s)
            return GpuUse(label, never, is_busy_share)
        stat = self.stat(place, metric)
        return GpuUse(label, stat, is_busy_share) if stat else None

    def has_enough_samples(self, place: NodeGpu, use: GpuUse) -> bool:
        """Return whether a GPU's use was sampled `samples_min` times; noted if not."""
        samples = self.samples(place.node.name, use.stat.covered_s)
        if samples >= self.limit("samples_min"):
            return True
        too_few = Missing(Reason.UNRECORDED, f"only {samples:.0f} samples")
        return self.figure(place, use.label, too_few) is not None

    def total(self, node: NodeSummary, metric: str) -> float | None:
        """Return how much a counter grew; None, and noted, if it is missing."""
        found = node.totals.get(metric, Missing(Reason.UNRECORDED))
        return self._note(node, METRICS_BY_NAME[metric].label, found)

    def figure(self, place: Place, what: str, found: Figure) -> float | None:
        """Return a number; None, and noted, if it is missing."""
        return self._note(place, what, found)

    def gpu_memory_total(self, place: NodeGpu) -> float | None:
        """Return the size of a GPU's memory, in bytes; None, and noted, if it is not known."""
        size = place.gpu.device.memory_bytes or Missing(Reason.UNSUPPORTED)
        return self.figure(place, "GPU memory, total", size)

    def series(self, place: Place, metric: str) -> Series | None:
        """Return the means per time bin (bins,); None, and noted, if missing or too few."""
        series = series_of(place).get(metric, [])
        count = len(series) - series.count(None)
        found: Series | Missing
        if len(series) == self.summary.bin_count and count:
            found = self._if_covered(series, count * self.summary.bin_s)
        else:
            figure: object = stats_of(place).get(metric)
            if not isinstance(place, NodeGpu):
                figure = place.totals.get(metric, figure)
            found = figure if isinstance(figure, Missing) else Missing(Reason.UNRECORDED)
        return self._note(place, METRICS_BY_NAME[metric].label, found)

    def at_work(self, place: NodeGpu, metric: str) -> float | None:
        """Return the mean of a share of activity over the time in which the GPU was at work [%].

        A bin may have short pauses of the GPU, which are not work: the mean is divided by the busy
        share of the same bins. On an H200 with pauses of 0.1 s, this gave 99 % instead of 44 %
        (docs/gpu.md, `saw-0.2`).

        None if the GPU was at work for too little of the time from its first work to its last, or
        of the whole run: a program's start is no work. None, and noted, if the gauge is missing.
        Without a busy share, as on a MIG instance, all of the time counts.
        """
        busy = place.gpu.series.get("gpu_busy_percent", [])
        key = place.node.name, place.gpu.position
        if key not in self._bins_at_work:
            self._bins_at_work[key] = self._find_bins_at_work(busy)
        bins, busy_percent = self._bins_at_work[key]
        if not bins:
            return None
        series = self.series(place, metric)
        if series is None:
            return None
        values = [value for bin_ in bins if (value := series[bin_]) is not None]
        if not values:
            mean = Missing(Reason.UNRECORDED, "this signal was not recorded while the GPU was busy")
            return self.figure(place, METRICS_BY_NAME[metric].label, mean)
        if len(values) < len(bins) and busy_percent is not None:
            known = [bin_ for bin_ in bins if series[bin_] is not None]
            busy_percent = fmean(share for bin_ in known if (share := busy[bin_]) is not None)
        # Drivers report whole per cents.
        worked_percent = 100.0 if busy_percent is None else max(1.0, busy_percent)
        return min(100.0, 100 * fmean(values) / worked_percent)

    def _find_bins_at_work(self, busy: Series) -> WorkingBins:
        """Return the time bins in which a GPU was at work; none if it seldom was."""
        count = len(busy) - busy.count(None)
        if not count:
            return WorkingBins(list(range(self.summary.bin_count)), None)
        least = self.limit("at_work_percent")
        working = {
            bin_: share for bin_, share in enumerate(busy) if share is not None and share >= least
        }
        bins = list(working)
        if not self._is_mostly_at_work(busy, bins, count):
            return WorkingBins([], None)
        return WorkingBins(bins, fmean(working.values()))

    def low_at_work(self, place: NodeGpu, metric: str, limit: float) -> Shows:
        """Return the bins in which a share of activity was below a limit while the GPU worked."""
        busy: Sequence[float | None] = place.gpu.series.get("gpu_busy_percent", [])
        values = place.gpu.series.get(metric, [])
        least = self.limit("at_work_percent")
        return bins_that_hold(
            lambda share, value: share >= least and 100 * value < limit * share,
            busy or [100.0] * len(values),
            values,
        )

    def _is_mostly_at_work(self, busy: Series, bins: list[int], count: int) -> bool:
        if 100 * len(bins) <= self.limit("at_work_run_percent") * count:
            return False
        between = busy[bins[0] : bins[-1] + 1]
        recorded = len(between) - between.count(None)
        return 100 * len(bins) > self.limit("at_work_time_percent") * recorded

    def busiest_gpu(self, node: NodeSummary) -> Series | None:
        """Return the busy share of the node's busiest GPU in each time bin (bins,).

        A bin is None if it lacks any of the GPUs: the GPU that was not recorded may have been the
        busiest.
        """
        series = [self.series(place, "gpu_busy_percent") for place in gpus_of(node)]
        known = [one for one in series if one is not None]
        if not known or len(known) < len(series):
            return None
        return [
            max(value for value in values if value is not None) if None not in values else None
            for values in zip(*known, strict=True)
        ]

    def gpu_used(self, node: NodeSummary) -> bool | None:
        """Return whether any GPU of the node was once as busy as `gpu_used_percent`.

        None, and noted, if no GPU was and one of them was not recorded.
        """
        gpus = gpus_of(node)
        peaks = recorded(gpus, "gpu_busy_percent", "max")
        if any(peak >= self.limit("gpu_used_percent") for _, peak in peaks):
            return True
        return None if None in [self.stat(place, "gpu_busy_percent") for place in gpus] else False

    def finding(
        self,
        severity: Severity,
        sentence: str,
        *,
        evidence: Iterable[Evidence],
        action: str,
        judged_by: Iterable[str] | None = None,
        subjects: Iterable[Place] = (),
        regain_percent: tuple[float, float] | None = None,
        mutes: bool = True,
        doubts: tuple[str, ...] = (),
        certainty: Certainty | None = None,
        moments: Moments | None = None,
    ) -> Located:
        """Build a finding; `judged_by` names its thresholds, by default all of the rule's.

        Its certainty is that of the rule if none is given.
        """
        if judged_by is None:
            judged_by = self.own_thresholds
        return Located(
            kind=self.kind,
            severity=severity,
            sentence=sentence,
            evidence=tuple(evidence),
            thresholds=tuple(self.thresholds[name] for name in judged_by),
            action=action,
            subjects=tuple(key_of(place) for place in subjects),
            regain_percent=regain_percent,
            mutes=mutes,
            doubts=doubts,
            certainty=certainty or self.certainty,
            moments=moments,
        )

    def moments(
        self, metric: str, places: Iterable[Place], is_shown: Callable[[float], bool]
    ) -> Moments | None:
        """Return the times in which a condition holds for a metric of at least one place."""
        return self.moments_in(
            metric, [(place, bins_where(place, metric, is_shown)) for place in places]
        )

    def moments_in(self, metric: str, bins: Iterable[tuple[Place, Shows]]) -> Moments | None:
        """Return the times in which a metric showed something, from the bins of each place."""
        return moments_of(self.run, self.summary, metric, bins)

    def forget_lacks(self) -> None:
        """Forget what was missing so far: the rule can answer without it."""
        self._lacks.clear()

    def outcome(self, findings: Iterable[Located]) -> list[Located] | Abstention:
        """Return the findings; the evidence of the first one lists what was not judged.

        Without findings, a missing signal makes an abstention: what was not recorded cannot be
        called good.
        """
        found = list(findings)
        if not self._lacks:
            return found
        if not found:
            lacks = tuple(self._grouped_lacks())
            text = "; ".join(f"{lack.what} of {lack.where}: {lack.why}" for lack in lacks)
            return Abstention(kind=self.kind, lacked=text, lacks=lacks)
        unseen = tuple(
            Evidence(f"not judged: {what} ({place})", missing)
            for what, place, missing in islice(self._lacks, MOST_NAMED)
        )
        first = msgspec.structs.replace(found[0], evidence=found[0].evidence + unseen)
        return [first, *found[1:]]

    def _if_covered(self, found: _T, covered_s: float) -> _T | Missing:
        whole_s = self.summary.elapsed_s
        if covered_s > 0 and covered_s >= whole_s * self.limit("covered_percent_min") / 100:
            return found
        covered, whole = format_duration(covered_s), format_duration(whole_s)
        seen = f"this signal was recorded for only {covered} of {whole}"
        return Missing(Reason.UNRECORDED, seen)

    def _note(self, place: Place, what: str, found: _T | Missing) -> _T | None:
        if not isinstance(found, Missing):
            return found
        self._lacks[what, place.name, found] = place
        return None

    def _grouped_lacks(self) -> Iterator[Lack]:
        places: dict[tuple[str, str], list[Place]] = {}
        for (what, _, missing), place in self._lacks.items():
            why = missing.detail or str(missing)
            places.setdefault((what, why), []).append(place)
        for (what, why), alike in places.items():
            yield Lack(what, name_all(alike), why)


def bins_that_hold(holds: Callable[..., bool], *series: Sequence[float | None] | None) -> Shows:
    """Return for which bins a condition holds (bins,); empty if a series is not known.

    Args:
        holds: the condition for one value of each series.
        series: means per time bin; a bin that one of them lacks is None.
    """
    known = [one for one in series if one is not None]
    if len(known) < len(series):
        return []
    return [None if None in values else holds(*values) for values in zip(*known, strict=True)]


def share_of(bins: Shows) -> float | None:
    """Return the share of the known bins for which a condition holds, in %; None without any."""
    verdicts = [one for one in bins if one is not None]
    return 100 * sum(verdicts) / len(verdicts) if verdicts else None


def highest_use(uses: Sequence[tuple[NodeGpu, GpuUse]]) -> tuple[Evidence, ...]:
    """Return the highest use of each GPU as evidence."""
    labels = dict.fromkeys(use.label for _, use in uses)
    return tuple(
        evidence
        for label in labels
        for evidence in per_place(
            f"{label}, highest",
            "%",
            [(gpu, use.stat.max) for gpu, use in uses if use.label == label],
        )
    )
