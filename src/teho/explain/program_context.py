"""What the rules on a program's time have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from teho.explain.context import Located, NodeGpu, RuleContext, in_lines
from teho.launchers.registry import launchers
from teho.model.finding import Evidence, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.program import Doing, MainProcess, Part
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary
from teho.model.watched import Frame, Loader, Wait
from teho.units import format_bytes

__all__ = [
    "ProgramContext",
    "Waiting",
    "data_size",
    "in_loader",
    "is_on_gpu",
    "is_python",
    "median_place",
    "more_workers",
    "waited",
]

_NEAR_PERCENT = 5.0


class Waiting(NamedTuple):
    """A process that waits for its data for a good part of its time."""

    main: MainProcess
    share_percent: float
    settings: dict[str, Any]
    """Of its loader."""
    cores: int
    """That it has for itself and its workers."""

    @property
    def workers(self) -> int:
        """How many it was told to start."""
        return int(self.settings.get("num_workers") or 0)

    @property
    def is_in_memory(self) -> bool:
        """Whether its data set is one of tensors, and nothing is done to them before the batch."""
        return self.settings.get("dataset") == "torch.utils.data.dataset.TensorDataset"

    def percent(self, *parts: Part) -> float:
        """Return which share of its waiting the main thread spent on these itself."""
        return 100 * sum(self.main.feed.main_s.get(part, 0.0) for part in parts) / self.wait_s

    def worked_percent(self, *parts: Part) -> float:
        """Return which share of their work the workers, or without any it, spent on these."""
        by_part = self.main.feed.workers_s if self.main.feed.workers else self.main.feed.main_s
        whole_s = sum(s for part, s in by_part.items() if part is not Part.IDLE)
        return 100 * sum(by_part.get(part, 0.0) for part in parts) / whole_s if whole_s else 0.0

    @property
    def work_s(self) -> float:
        """For how long its data were worked on, by whoever did."""
        feed = self.main.feed
        working = (Part.FETCHING, Part.OPENING, Part.COLLATING)
        by_part = feed.workers_s if feed.workers else feed.main_s
        return sum(by_part.get(part, 0.0) for part in working)

    @property
    def wait_s(self) -> float:
        """For how long it waited."""
        return self.main.feed.wait_s


class ProgramContext(RuleContext):
    """A rule's look at a program's time."""

    def __init__(
        self, kind: str, run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
    ) -> None:
        super().__init__(kind, run, summary, thresholds)
        self.mains = summary.program.mains if summary.program else ()

    def work_s(self, main: MainProcess) -> float:
        """Return for how long a process did more than to begin: to import and to compile.

        All of its time counts where the rest is too short to judge.
        """
        rest_s = main.process.wall_s - main.seconds(Doing.IMPORTING, Doing.COMPILING)
        return rest_s if rest_s > self.limit("work_min_s") else main.process.wall_s

    def is_loss(self, seconds: float, main: MainProcess) -> bool:
        """Return whether so much lost time of a process is worth a word."""
        share = 100 * seconds / self.work_s(main)
        enough = share >= self.limit("lost_percent") and seconds >= self.limit("lost_min_s")
        return enough and seconds > 0

    def waiting(self) -> Waiting | None:
        """Return the process that waits for its data the longest, if it is worth a word."""
        waits = [main for main in self.mains if self.is_loss(main.feed.wait_s, main)]
        if not waits:
            return None
        main = max(waits, key=lambda one: one.feed.wait_s / one.process.wall_s)
        loader = self.loader_of(main)
        if loader is None:
            return None
        share = 100 * main.feed.wait_s / main.process.wall_s
        return Waiting(main, share, loader.settings, self.cores_of(main))

    def loader_of(self, main: MainProcess) -> Loader | None:
        """Return what gave a process its batches; None if those were too few to judge."""
        loader = main.feed.loader
        return loader if loader and loader.batches >= self.limit("batches_min") else None

    def node_of(self, main: MainProcess) -> NodeSummary | None:
        """Return where a process ran; None if nothing was recorded there."""
        return next((one for one in self.summary.nodes if one.name == main.process.node), None)

    def gpu_busy_percent(self, main: MainProcess) -> float | None:
        """Return the mean busy share of the busiest GPU beside a process; None if unknown."""
        stats = [self.stat(of, "gpu_busy_percent") for of in self.gpus_beside(main)]
        return max((stat.mean for stat in stats if stat is not None), default=None)

    def gpus_beside(self, main: MainProcess) -> list[NodeGpu]:
        """Return the GPUs of a process's node: which of them are its own is not known."""
        return [of for of in self.gpus if of.node.name == main.process.node]

    def gpu_memory_bytes(self, main: MainProcess) -> tuple[float, float] | None:
        """Return the most that was used, and all, of the fullest GPU's memory beside a process.

        None, and noted, where either is not known of any of them.
        """
        seen: list[tuple[float, float]] = []
        gpus = self.gpus_beside(main)
        for of in gpus:
            used = self.stat(of, "gpu_memory_used_bytes")
            size = of.gpu.device.memory_bytes or Missing(Reason.UNSUPPORTED)
            total = self.figure(of, "GPU memory, total", size)
            if used is not None and total is not None:
                seen.append((used.max, total))
        if not gpus or len(seen) < len(gpus):
            return None
        return max(seen, key=lambda one: one[0] / one[1])

    def ranks_beside(self, main: MainProcess) -> int:
        """Return how many processes did the program's work on its node, while it did."""
        begin, end = main.process.began_s, main.process.until_s
        return sum(
            one.process.node == main.process.node
            and min(end, one.process.until_s) - max(begin, one.process.began_s) > (end - begin) / 2
            for one in self.mains
        )

    def cores_of(self, main: MainProcess) -> int:
        """Return how many cores of its node's are a process's share; at least one."""
        node = self.node_of(main)
        cores = node.cores if node else len(main.process.cores or ())
        return max(1, cores // max(1, self.ranks_beside(main)))

    def keeping(self, main: MainProcess) -> str:
        """Advise to keep a process's data where its part of the memory that stayed free holds them.

        Empty if it does not, or where nobody knows how large they are.
        """
        size, node = data_size(main), self.node_of(main)
        if not size:
            return ""
        if (
            node is None
            or isinstance(limit := node.memory_limit_bytes, Missing)
            or isinstance(peak := node.memory_peak_bytes, Missing)
        ):
            return f"keep them, if {format_bytes(size)} fit into memory"
        free = (limit - peak) / max(1, self.ranks_beside(main))
        if size > free:
            return ""
        of = f"{format_bytes(size)} fit into the {format_bytes(free)}"
        return f"keep them in memory: {of} that stayed free"

    def by_workers(self, waiting: Waiting, workers: int) -> tuple[float, float]:
        """Return which share of the time so many workers could return, in %.

        At the most, all work on data is done by the workers, while the program does the rest.
        At the least, what all of it computes together has the process's cores and no more.
        """
        wall_s = waiting.main.process.wall_s
        best_s = max(wall_s - waiting.wait_s, waiting.work_s / workers)
        most = _regain(best_s, wall_s)
        node = self.node_of(waiting.main)
        used = node.cpu_cores_used if node else None
        ranks = max(1, self.ranks_beside(waiting.main))
        bound_s = used * wall_s / ranks / waiting.cores if isinstance(used, float) else wall_s
        # What it costs to hand batches over is not known before it is tried.
        return min(_regain(max(best_s, bound_s), wall_s), most / 2), most

    def best_workers(self, waiting: Waiting) -> int:
        """Return the fewest workers that are within a twentieth of the best, a core for each."""
        regained = {n: self.by_workers(waiting, n)[1] for n in range(1, waiting.cores + 1)}
        best = max(regained.values())
        return next(n for n, percent in regained.items() if percent >= best - _NEAR_PERCENT)

    def lost(
        self,
        sentence: str,
        *,
        share_percent: float,
        evidence: Iterable[Evidence],
        action: str,
        regain_percent: tuple[float, float],
        judged_by: Sequence[str] = (),
        lines: Sequence[tuple[Frame, float]] = (),
    ) -> Located:
        """Build a finding about lost time; it is critical where half of it is, in a job."""
        limit = self.limit("lost_critical_percent")
        if self.gpus:
            limit = self.limit("lost_beside_gpus_percent")
        critical = (self.scheduler or self.gpus) and share_percent >= limit
        return self.finding(
            Severity.CRITICAL if critical else Severity.WARNING,
            sentence,
            evidence=(*evidence, *in_lines(lines)),
            judged_by=["lost_percent", *judged_by],
            action=action,
            regain_percent=regain_percent,
        )


def _regain(left_s: float, wall_s: float) -> float:
    return max(0.0, 100 * (1 - left_s / wall_s))


def more_workers(waiting: Waiting, workers: int, *further: str) -> str:
    """Write how to start so many workers."""
    split = (
        ", each of which must then read a part of its own, by `torch.utils.data.get_worker_info()`"
    )
    is_iterable = workers > 1 and waiting.settings.get("is_iterable")
    return in_loader(waiting, f"num_workers={workers}", *further) + (split if is_iterable else "")


def in_loader(waiting: Waiting, *arguments: str) -> str:
    """Write the change of a loader's arguments, and where: ready to be copied."""
    made_at = waiting.main.feed.loader.made_at if waiting.main.feed.loader else None
    at = f" in {made_at.file.rpartition('/')[2]}:{made_at.line}" if made_at else ""
    return f"`DataLoader(…, {', '.join(arguments)})`{at}"


def is_python(command: Sequence[str]) -> bool:
    """Return whether a command starts a Python program, as far as it shows."""
    name = command[0].rpartition("/")[2] if command else ""
    launcher = launchers().get(name)
    starts_python = launcher is not None and launcher.own_processes
    return name.startswith("python") or name.endswith(".py") or starts_python


def waited(waiting: Waiting) -> str:
    """Begin a sentence on waiting for data."""
    ranks = waiting.main.library.get("world_size")
    who = f"Rank {waiting.main.library.get('rank')}" if ranks and ranks != 1 else "The program"
    return f"{who} waited for its data for {waiting.share_percent:.0f} % of the time"


def data_size(main: MainProcess) -> int | None:
    """Return the bytes of all samples, as batches hold them; None if that is not known."""
    loader = main.feed.loader
    if loader is None:
        return None
    samples, batch = loader.settings.get("samples"), loader.settings.get("batch_size")
    size = loader.batch.get("bytes")
    return int(samples * size / batch) if samples and batch and size else None


def median_place(waits: Mapping[int, Wait]) -> int:
    """Return where the median is among waits of 2^(n - 1) to 2^n µs: its n; 0 without any."""
    count = sum(wait.count for wait in waits.values())
    seen = 0
    for place, wait in sorted(waits.items()):
        seen += wait.count
        if 2 * seen >= count:
            return place
    return 0


def is_on_gpu(main: MainProcess) -> bool:
    """Return whether any of the parameters that a process trains is known to be on a GPU."""
    devices = main.library.get("devices")
    return isinstance(devices, list) and any(str(one).startswith("cuda") for one in devices)
