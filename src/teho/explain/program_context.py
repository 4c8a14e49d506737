"""What the rules about a program's time have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import Any, NamedTuple

from teho.explain.activities import ActivityTime, loading_activity
from teho.explain.context import Located, RuleContext
from teho.explain.loader_words import loader_call
from teho.explain.moments import Shows
from teho.explain.places import NodeGpu, gpus_of
from teho.explain.time_bins import TimeBins
from teho.model.finding import Certainty, Evidence, Severity
from teho.model.missing import Missing
from teho.model.program import Doing, MainProcess, Part
from teho.model.stack import Frame
from teho.model.summary import NodeSummary
from teho.model.watched import Loader, Wait
from teho.units import format_bytes

__all__ = [
    "GpuUse",
    "ProgramContext",
    "Waiting",
    "data_bytes",
    "in_lines",
    "is_on_gpu",
    "median_place",
    "mostly",
    "slow_loading",
    "worker_call",
]

_NEAR_PERCENT = 5.0
_MOST_LINES = 2
_LEAST_BINS = 3
"""Time bins of the steps or of the work from which on their mean replaces the mean of the run."""
_MOST = 0.5
"""Share of a time from which a known activity is named."""
_SLEEPING = "sleeping"
"""The activity of a program that sleeps, by its name in activities.toml."""


class GpuUse(NamedTuple):
    """How busy the busiest GPU of a process's node was, while the process worked with it."""

    busy_percent: float
    idle_percent: float
    """Time in which the GPU was idle meanwhile, as a share of the process's time."""
    during: str
    """When, to follow a figure: ` during the steps`; empty if the whole run counts."""

    @property
    def evidence(self) -> Evidence:
        """The busy share, with its name."""
        return Evidence(f"GPU busy{self.during or ', mean'}", self.busy_percent, "%")


class Waiting(NamedTuple):
    """A process that waits for data for a large part of its time."""

    main: MainProcess
    share_percent: float
    loader: Loader
    cores: int
    """Cores of the process and its workers."""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of its loader."""
        return self.loader.settings

    @property
    def workers(self) -> int:
        """Number of workers in the loader's settings."""
        return int(self.settings.get("num_workers") or 0)

    @property
    def is_in_memory(self) -> bool:
        """Whether the data set consists of tensors that are used as they are."""
        return self.settings.get("dataset") == "torch.utils.data.dataset.TensorDataset"

    @property
    def wait_s(self) -> float:
        """Time for which the process waited."""
        return self.main.feed.wait_s

    @property
    def loading_s(self) -> Mapping[Part, float]:
        """Time of each part of loading: in the workers, or without workers in the process."""
        feed = self.main.feed
        return feed.workers_s if feed.workers else feed.main_s

    @property
    def work_s(self) -> float:
        """Time for which the data were worked on."""
        working = (Part.FETCHING, Part.OPENING, Part.COLLATING)
        return sum(self.loading_s.get(part, 0.0) for part in working)

    def worked_percent(self, part: Part) -> float:
        """Return the share of the loading time that a part took."""
        whole_s = sum(s for one, s in self.loading_s.items() if one is not Part.IDLE)
        return 100 * self.loading_s.get(part, 0.0) / whole_s if whole_s else 0.0


class ProgramContext(RuleContext):
    """A run as a rule about the program's time reads it."""

    def work_s(self, main: MainProcess) -> float:
        """Return the time of a process without imports and compiling.

        If the rest is too short to judge, all of the time counts.
        """
        rest_s = main.process.wall_s - main.seconds(Doing.IMPORTING, Doing.COMPILING)
        return rest_s if rest_s > self.limit("work_min_s") else main.process.wall_s

    def is_loss(self, seconds: float, main: MainProcess) -> bool:
        """Return whether a process lost enough time to report it."""
        share = 100 * seconds / self.work_s(main)
        enough = share >= self.limit("lost_percent") and seconds >= self.limit("lost_min_s")
        return enough and seconds > 0

    def are_small_messages(self, bytes_per_s: float, switches_per_s: float) -> bool:
        """Return whether processes pass many small messages to each other.

        Args:
            bytes_per_s: what all processes read or wrote while they passed messages.
            switches_per_s: context switches of the node.
        """
        is_small = bytes_per_s < 1e6 * self.limit("small_messages_mb_per_s")
        return is_small and switches_per_s >= self.limit("switches_per_s_min")

    def losses(self, *doings: Doing) -> Iterator[tuple[MainProcess, float]]:
        """Yield the processes that lost time with these activities, and the share of their time."""
        for main in self.mains:
            if self.is_loss(main.seconds(*doings), main):
                yield main, main.percent(*doings)

    def waiting(self) -> Waiting | None:
        """Return the process that waits for data the longest; None if none waits long enough."""
        waits = [main for main in self.mains if self.is_loss(main.feed.wait_s, main)]
        main = max(waits, key=lambda one: one.feed.wait_s / one.process.wall_s, default=None)
        loader = self.loader_of(main) if main else None
        if main is None or loader is None:
            return None
        return self.waiting_of(main, loader)

    def waiting_of(self, main: MainProcess, loader: Loader) -> Waiting:
        """Return how a process waits for data."""
        share = 100 * main.feed.wait_s / main.process.wall_s
        return Waiting(main, share, loader, self.cores_of(main))

    def loader_of(self, main: MainProcess) -> Loader | None:
        """Return the loader of a process; None if it gave too few batches to judge."""
        loader = main.feed.loader
        return loader if loader and loader.batches >= self.limit("batches_min") else None

    def node_of(self, main: MainProcess) -> NodeSummary | None:
        """Return the node of a process; None if the node was not recorded."""
        return next((one for one in self.summary.nodes if one.name == main.process.node), None)

    def gpus_beside(self, main: MainProcess) -> list[NodeGpu]:
        """Return the GPUs of a process's node: it is not known which GPUs the process uses."""
        return self._gpus_by_node.get(main.process.node, [])

    @cached_property
    def _gpus_by_node(self) -> dict[str, list[NodeGpu]]:
        return {node.name: list(gpus_of(node)) for node in self.summary.nodes}

    def gpu_use(self, main: MainProcess) -> GpuUse | None:
        """Return how busy the busiest GPU of a process's node was; None, and noted, if unknown.

        During the steps: a GPU has no work while a program starts, and in a short run the start
        takes much of the time. If the steps are not known, from the first to the last work of the
        GPU, but not before the end of imports and compiling. If this is too short, the whole run
        counts.
        """
        gpus = self.gpus_beside(main)
        means = [mean for gpu in gpus if (mean := self.mean(gpu, "gpu_busy_percent")) is not None]
        if not means:
            return None
        series = [gpu.gpu.series.get("gpu_busy_percent", []) for gpu in gpus]
        at, least = TimeBins(self.run, self.summary), self.limit("at_work_percent")
        for bins, during in (
            (at.stepping(main), " during the steps"),
            (at.working(main, series, least), " after the start"),
        ):
            inside = [
                [one for one in each[bins.start : bins.stop] if one is not None] for each in series
            ]
            known = [fmean(values) for values in inside if len(values) >= _LEAST_BINS]
            if len(known) >= len(means):
                busy, wall_s = max(known), main.process.wall_s
                idle_s = (1 - busy / 100) * len(bins) * self.summary.bin_s
                return GpuUse(busy, min(100 - busy, 100 * idle_s / wall_s), during)
        return GpuUse(max(means), 100 - max(means), "")

    def without_start(self, node: NodeSummary, bins: Shows) -> Shows:
        """Return what holds in each time bin, and None while a node's main processes start.

        The processes start if they import and compile; if this takes all bins, it is left in.
        """
        at = TimeBins(self.run, self.summary)
        starts = [at.start(main) for main in self.mains if main.process.node == node.name]
        start = min((one for one in starts if one is not None), default=0)
        return [None] * start + list(bins[start:]) if start < len(bins) else bins

    def gpu_memory_bytes(self, main: MainProcess) -> tuple[float, float] | None:
        """Return the peak and the size of the fullest GPU memory of a process's node.

        None, and noted, if one of the two is not known for any of the GPUs.
        """
        known: list[tuple[float, float]] = []
        gpus = self.gpus_beside(main)
        for gpu in gpus:
            used = self.stat(gpu, "gpu_memory_used_bytes")
            total = self.gpu_memory_total(gpu)
            if used is not None and total is not None:
                known.append((used.max, total))
        if not gpus or len(known) < len(gpus):
            return None
        return max(known, key=lambda one: one[0] / one[1])

    def ranks_beside(self, main: MainProcess) -> int:
        """Return the number of main processes on a process's node during most of its time."""
        begin, end = main.process.began_s, main.process.until_s
        return sum(
            one.process.node == main.process.node
            and min(end, one.process.until_s) - max(begin, one.process.began_s) > (end - begin) / 2
            for one in self.mains
        )

    def cores_of(self, main: MainProcess) -> int:
        """Return a process's share of the cores of its node; at least one."""
        node = self.node_of(main)
        cores = node.cores if node else len(main.process.cores or ())
        return max(1, cores // max(1, self.ranks_beside(main)))

    def or_keep_data(self, main: MainProcess) -> str:
        """Return the advice `. Or keep the data in memory`, with sizes.

        Empty if the process's share of the free memory is too small, or the size is not known.
        """
        size = data_bytes(main)
        if not size:
            return ""
        free = self.free_bytes(main)
        if free is None:
            return f". Or keep the data in memory, if there is room for {format_bytes(size)}"
        if size > free:
            return ""
        sizes = f"the data need {format_bytes(size)}, and {format_bytes(free)} stayed free"
        return f". Or keep the data in memory: {sizes}"

    def free_bytes(self, main: MainProcess) -> float | None:
        """Return a process's share of the memory that stayed free; None if it is not known."""
        node = self.node_of(main)
        if (
            node is None
            or isinstance(limit := node.memory_limit_bytes, Missing)
            or isinstance(peak := node.memory_peak_bytes, Missing)
        ):
            return None
        return (limit - peak) / max(1, self.ranks_beside(main))

    def by_workers(self, waiting: Waiting, workers: int) -> tuple[float, float]:
        """Return the share of the time that this number of workers could save, in %.

        At most, the workers do all work on data while the program does the rest. At least, all
        computation shares the process's cores.
        """
        wall_s = waiting.main.process.wall_s
        best_s = max(wall_s - waiting.wait_s, waiting.work_s / workers)
        most = _saved_percent(best_s, wall_s)
        node = self.node_of(waiting.main)
        used = node.cpu_cores_used if node else None
        ranks = max(1, self.ranks_beside(waiting.main))
        bound_s = used * wall_s / ranks / waiting.cores if isinstance(used, float) else wall_s
        # The cost of passing batches between processes is not known before it is tried.
        return min(_saved_percent(max(best_s, bound_s), wall_s), most / 2), most

    def best_workers(self, waiting: Waiting) -> int:
        """Return the smallest number of workers within 5 % of the best, at most one per core."""
        saved = {n: self.by_workers(waiting, n)[1] for n in range(1, waiting.cores + 1)}
        best = max(saved.values())
        return next(n for n, percent in saved.items() if percent >= best - _NEAR_PERCENT)

    def lost(
        self,
        sentence: str,
        *,
        share_percent: float,
        evidence: Iterable[Evidence],
        action: str,
        regain_percent: tuple[float, float],
        judged_by: Iterable[str] | None = None,
        lines: Sequence[tuple[Frame, float]] = (),
        mutes: bool = True,
        certainty: Certainty | None = None,
    ) -> Located:
        """Build a finding about lost time.

        It is sure if the loss is twice the limit or more, and the run was long enough. It is
        critical in a job or beside GPUs, if enough of the time was lost.
        """
        limit = self.limit("lost_critical_percent")
        if self.gpus:
            limit = self.limit("lost_beside_gpus_percent")
        critical = (self.scheduler or self.gpus) and share_percent >= limit
        return self.finding(
            Severity.CRITICAL if critical else Severity.WARNING,
            sentence,
            evidence=(*evidence, *in_lines(lines)),
            judged_by=["lost_percent", *(self.own_thresholds if judged_by is None else judged_by)],
            action=action,
            regain_percent=regain_percent,
            mutes=mutes,
            certainty=certainty or self._certainty(share_percent),
        )

    def _certainty(self, share_percent: float) -> Certainty:
        is_far = share_percent >= 2 * self.limit("lost_percent")
        is_long = self.summary.elapsed_s >= self.limit("work_min_s")
        return Certainty.SURE if is_far and is_long else Certainty.LIKELY

    def lost_waiting(
        self,
        waiting: Waiting,
        rest: str,
        *,
        evidence: Iterable[Evidence],
        action: str,
        regain_percent: tuple[float, float],
        lines: Sequence[tuple[Frame, float]] | None = None,
        mutes: bool = True,
        certainty: Certainty | None = None,
    ) -> Located:
        """Build a finding about time lost in waiting for data.

        Args:
            waiting: the process that waited.
            rest: the sentence behind `The program waited for data 77 % of the time`.
            evidence: beside the share of the time.
            action: the advice.
            regain_percent: what could be saved.
            lines: the slowest lines, if they are not the lines that loaded data.
            mutes: whether the rules that this rule mutes are muted.
            certainty: how sure the cause is, if the loss itself is sure.
        """
        library = waiting.main.library
        several = (library.get("world_size") or 1) != 1
        who = f"Rank {library.get('rank')}" if several else "The program"
        return self.lost(
            f"{who} waited for data {waiting.share_percent:.0f} % of the time{rest}",
            share_percent=waiting.share_percent,
            evidence=(Evidence("waiting for data", waiting.share_percent, "%"), *evidence),
            action=action,
            regain_percent=regain_percent,
            lines=waiting.main.feed.lines if lines is None else lines,
            mutes=mutes,
            certainty=certainty,
        )


def _saved_percent(left_s: float, wall_s: float) -> float:
    return max(0.0, 100 * (1 - left_s / wall_s))


def mostly(found: tuple[ActivityTime, float] | None) -> tuple[str, str]:
    """Return a sentence about an activity that takes most of something, and its advice.

    Both are empty if the activity does not take most of it. A finding has at most five lines, so
    the advice is only its first sentence, without a full stop.

    Args:
        found: the activity, and its share.
    """
    if found is None or found[1] < _MOST:
        return "", ""
    time = found[0]
    frame = time.lines[0][0] if time.lines else None
    place = f" ({frame.short_place})" if frame else ""
    advice = time.activity.advice.partition(". ")[0].rstrip(".")
    return f" Most of this time was spent on {time.activity.what}{place}.", advice


def slow_loading(waiting: Waiting) -> tuple[str, str]:
    """Return a sentence about what loading mostly does, and how it could be faster."""
    found = loading_activity(waiting.main)
    sentence, advice = mostly(found)
    if found and found[0].activity.name == _SLEEPING:
        advice = ""  # they compute nothing: workers sleep at the same time
    return sentence, f" Also make the loading faster. {advice}." if advice else ""


def worker_call(waiting: Waiting, workers: int, **further: object) -> str:
    """Return the call of the loader with this number of workers, and its line."""
    split = (
        "; each worker must then read a different part of the data: "
        "`torch.utils.data.get_worker_info()`"
    )
    is_iterable = workers > 1 and waiting.settings.get("is_iterable")
    call = loader_call(waiting.loader, num_workers=workers, **further)
    return call + (split if is_iterable else "")


def in_lines(lines: Sequence[tuple[Frame, float]]) -> tuple[Evidence, ...]:
    """Return the slowest lines as evidence: `train.py:12  loss.item()`."""
    return tuple(
        Evidence(
            "second slowest line" if number else "slowest line",
            f"{frame.short_place}  {frame.short_text}",
        )
        for number, (frame, _) in enumerate(lines[:_MOST_LINES])
    )


def data_bytes(main: MainProcess) -> int | None:
    """Return the size of all samples, as batches contain them; None if it is not known."""
    loader = main.feed.loader
    if loader is None:
        return None
    samples, batch = loader.settings.get("samples"), loader.settings.get("batch_size")
    size = loader.batch.get("bytes")
    return int(samples * size / batch) if samples and batch and size else None


def median_place(waits: Mapping[int, Wait]) -> int:
    """Return n if the median wait is between 2^(n - 1) and 2^n µs; 0 without any wait."""
    count = sum(wait.count for wait in waits.values())
    seen = 0
    for place, wait in sorted(waits.items()):
        seen += wait.count
        if 2 * seen >= count:
            return place
    return 0


def is_on_gpu(main: MainProcess) -> bool:
    """Return whether a process is known to train parameters on a GPU."""
    devices = main.library.get("devices")
    return isinstance(devices, list) and any(str(one).startswith("cuda") for one in devices)
