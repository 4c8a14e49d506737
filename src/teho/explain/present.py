"""What is wrong at the present moment: idle GPUs beside working GPUs, and waiting for input."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from teho.explain.lines import sections_s
from teho.explain.now import known
from teho.explain.pace import recent_pace
from teho.explain.shared_thresholds import PRESENT
from teho.explain.step import rank_at
from teho.explain.where import LOADER_FILES, spent_by
from teho.explain.wording import listed, numbered
from teho.model.live import GpuNow, NodeNow
from teho.model.program import Doing, Program, Section
from teho.model.run import Run
from teho.model.summary import GpuSummary, Summary
from teho.model.watched import WatchedProcess
from teho.units import format_duration

if TYPE_CHECKING:  # it loads all rules
    from teho.explain.policy import Policy

__all__ = ["IdleGpus", "IdleLimits", "InputWait", "input_wait"]

_IDLE_RULE = "gpu_one_idle"
"""The report's rule about a GPU that is idle while another one works; its limits count here too."""
_USED_BY = ("gpu_job_processes", "gpu_job_memory_bytes")
_GAP_S = 60.0
"""After a longer time without a sample, it is not known whether a GPU was idle all the time."""
_NEARLY_MINUTE_S = 55.0
_Key = tuple[str, int]
"""Node, and position of the GPU on it."""


class _Reading(NamedTuple):
    key: _Key
    at_s: float
    """Seconds after the start of the run."""
    busy_percent: float | None
    is_used: bool | None
    """Whether a process of the job uses the GPU; None: not known."""


class _Gpu:
    """What is known of one GPU."""

    def __init__(self, at_s: float) -> None:
        self.first_s = self.at_s = at_s
        self.busy_percent: float | None = None
        self.is_used: bool | None = None
        self.was_used = False
        self.since_s: float | None = None
        """Since when it has been idle without a break."""
        self.beside_s = 0.0
        """Part of this time in which most of the other GPUs worked."""


class IdleLimits(NamedTuple):
    """The thresholds of idle GPUs."""

    idle_below_percent: float
    works_from_percent: float
    least_s: float

    @classmethod
    def of(cls, policy: Policy) -> IdleLimits:
        """Return these thresholds of a policy."""
        rule = policy.of(_IDLE_RULE)
        least_s = policy.thresholds[PRESENT]["gpu_idle_min_s"].value
        return cls(rule["idle_below_percent"].value, rule["others_busy_percent"].value, least_s)


class IdleGpus:
    """GPUs that are idle while most of the others work, and since when.

    At the start of a program and in an evaluation, all GPUs may be idle: this time does not count.
    The GPU of a rank that has ended is not reported. A MIG slice has no busy share, and is not
    judged.

    Args:
        limits: from which values on a GPU is idle, or works.
        earlier: what a report has of the time before the first sample.
    """

    def __init__(self, limits: IdleLimits, earlier: IdleGpus | None = None) -> None:
        self.limits = limits
        self._gpus: dict[_Key, _Gpu] = {}
        self._seen_s: dict[str, float] = {}
        self._works = False
        self._earlier = earlier
        self._gap_s = _GAP_S

    @classmethod
    def of_report(cls, summary: Summary, policy: Policy) -> IdleGpus:
        """Return the GPUs that are idle at the end of a report, by its time bins.

        Args:
            summary: the figures of the report.
            policy: the thresholds.
        """
        found = cls(IdleLimits.of(policy))
        found._gap_s += 2 * summary.bin_s
        series = [
            ((node.name, gpu.position), _recorded_bins(gpu), _used_bins(gpu))
            for node in summary.nodes
            for gpu in node.gpus
        ]
        for place in range(summary.bin_count):
            at_s = (place + 1) * summary.bin_s
            found._take(
                _Reading(key, at_s, busy[place], used.get(place))
                for key, busy, used in series
                if place < len(busy)
            )
        return found

    def add(self, nodes: Sequence[NodeNow]) -> None:
        """Take the newest samples of nodes."""
        readings = []
        for node in nodes:
            if node.is_silent or node.elapsed_s is None:
                for gpu in node.gpus if self._seen_s.pop(node.node.name, None) else ():
                    self._gpus.pop((node.node.name, gpu.position), None)
            elif node.gpus and node.elapsed_s > self._seen_s.get(node.node.name, -1.0):
                self._seen_s[node.node.name] = node.elapsed_s
                readings += [_reading(node.node.name, node.elapsed_s, gpu) for gpu in node.gpus]
        self._take(readings)
        if self._earlier is not None and self._gpus:
            self._join(self._earlier)
            self._earlier = None

    def sentence(self, run: Run) -> str:
        """Return which GPUs have been idle for minutes; empty if none has."""
        late = [
            (name, position, gpu)
            for (name, position), gpu in self._gpus.items()
            if gpu.since_s is not None and gpu.beside_s >= self.limits.least_s
        ]
        if not late or not self._works:
            return ""
        ended = {task.rank for task in run.tasks if task.end is not None}
        found: dict[str, list[int]] = defaultdict(list)
        times_s = []
        for name, position, gpu in late:
            has_ended = (gpu.was_used and gpu.is_used is False) or (
                bool(ended) and rank_at(run, name, position) in ended
            )
            if gpu.since_s is not None and not has_ended:
                found[name].append(position)
                times_s.append(gpu.at_s - gpu.since_s)
        if not found:
            return ""
        counts = Counter(name for name, _ in self._gpus)
        places = [
            _named(name, positions, counts[name]) for name, positions in sorted(found.items())
        ]
        whom = listed(places, "nodes")
        has = "has" if len(times_s) == 1 else "have"
        minutes = format_duration(60.0 * int(min(times_s) / 60))
        return f"{whom[:1].upper()}{whom[1:]} {has} been idle for {minutes}."

    def _take(self, readings: Iterable[_Reading]) -> None:
        """Take readings of one moment, or of the newest samples of some nodes."""
        fresh = list(readings)
        for key, at_s, busy, is_used in fresh:
            gpu = self._gpus.setdefault(key, _Gpu(at_s))
            gpu.busy_percent, gpu.is_used = busy, is_used
            gpu.was_used = gpu.was_used or bool(is_used)
        if fresh:
            shares = [gpu.busy_percent for gpu in self._gpus.values()]
            values = [share for share in shares if share is not None]
            working = sum(share >= self.limits.works_from_percent for share in values)
            idle = sum(share < self.limits.idle_below_percent for share in values)
            # If only one rank evaluates, most GPUs wait for it.
            self._works = working > 0 and working >= idle
        for key, at_s, busy, _ in fresh:
            gpu = self._gpus[key]
            passed_s, gpu.at_s = at_s - gpu.at_s, at_s
            if busy is None or busy >= self.limits.idle_below_percent:
                gpu.since_s = None
            elif gpu.since_s is None or passed_s > self._gap_s:
                # A reading is the mean since the reading before.
                gpu.since_s = at_s if passed_s > self._gap_s else at_s - passed_s
                gpu.beside_s = 0.0
            elif self._works:
                gpu.beside_s += passed_s

    def _join(self, earlier: IdleGpus) -> None:
        """Add what the report had of the time before the first sample of each GPU."""
        for key, gpu in self._gpus.items():
            old = earlier._gpus.get(key)
            if old is None:
                continue
            gpu.was_used = gpu.was_used or old.was_used
            is_idle = gpu.since_s is not None and gpu.since_s <= gpu.first_s
            if is_idle and old.since_s is not None and gpu.first_s - old.at_s <= earlier._gap_s:
                gpu.since_s = min(old.since_s, gpu.first_s)
                gpu.beside_s += old.beside_s


def _named(name: str, positions: Sequence[int], count: int) -> str:
    if len(positions) == count > 1:
        return f"all GPUs on {name}"
    return f"{'GPU' if len(positions) == 1 else 'GPUs'} {numbered(positions)} on {name}"


def _reading(name: str, at_s: float, gpu: GpuNow) -> _Reading:
    used = [value for metric in _USED_BY if (value := known(gpu.values, metric)) is not None]
    is_used = any(value > 0 for value in used) if used else None
    busy = known(gpu.values, "gpu_busy_percent")
    return _Reading((name, gpu.position), at_s, busy, is_used)


def _recorded_bins(gpu: GpuSummary) -> Sequence[float | None]:
    """Return the busy share in each time bin, up to the newest row of the GPU."""
    busy = gpu.series.get("gpu_busy_percent", [])
    end = next((end for end in range(len(busy), 0, -1) if busy[end - 1] is not None), 0)
    return busy[:end]


def _used_bins(gpu: GpuSummary) -> Mapping[int, bool]:
    """Return for each known time bin whether a process of the job used the GPU."""
    found: dict[int, bool] = {}
    for metric in _USED_BY:
        for place, value in enumerate(gpu.series.get(metric, [])):
            if value is not None:
                found[place] = found.get(place, False) or value > 0
    return found


class InputWait(NamedTuple):
    """Waiting for input at the end of what is known of a program."""

    share_percent: float
    """Of the main threads' time."""
    of_s: float
    """The time, about a minute."""

    def sentence(self, policy: Policy) -> str:
        """Return a sentence about it; empty if it is shorter than the threshold."""
        if self.share_percent < policy.thresholds[PRESENT]["input_wait_percent"].value:
            return ""
        length = "minute" if self.of_s >= _NEARLY_MINUTE_S else f"{self.of_s:.0f} s"
        return f"Waiting for input {self.share_percent:.0f} % of the last {length}."


def input_wait(program: Program | None) -> InputWait | None:
    """Return how long the main threads waited for input in the last minute.

    None: not known, or it says nothing yet. At the start of a program, its first batches take
    longer than others; in an evaluation, the program reads other data.
    """
    waits = [
        wait
        for main in (program.mains if program else ())
        if (wait := _input_wait(main.process)) is not None
    ]
    if not waits:
        return None
    return InputWait(fmean(one.share_percent for one in waits), fmean(one.of_s for one in waits))


def _input_wait(process: WatchedProcess) -> InputWait | None:
    if not process.progress or not recent_pace(process):
        return None
    is_older = process.until_s - process.at_end_until_s > _GAP_S
    if process.at_end_s > 2 * _GAP_S or is_older:
        return None  # in a long run, the newest stacks are of a longer time
    whole_s = sum(seen.wall_s for seen in process.at_end)
    if not whole_s or 2 * _evaluated_s(process) >= whole_s:
        return None
    recent = msgspec.structs.replace(process, stacks=process.at_end, set_up=(), parts=())
    waited_s = sum(one.wall_s for one in spent_by(recent) if one.doing is Doing.LOADING)
    return InputWait(100 * waited_s / whole_s, whole_s)


def _evaluated_s(process: WatchedProcess) -> float:
    """Return the time of the last minute in an evaluation, with the time in its data loader."""
    stacks = tuple(
        msgspec.structs.replace(
            seen,
            frames=tuple(one for one in seen.frames if not LOADER_FILES.search(one.file)),
        )
        for seen in process.at_end
    )
    recent = msgspec.structs.replace(process, stacks=stacks, set_up=(), parts=())
    return sections_s(recent).get(Section.EVALUATION, 0.0)
