"""The first steps were slow because their data came from storage, and not from memory yet."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise

from teho.explain.causes._watch import Watch
from teho.explain.step import offset_s
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary
from teho.model.watched import Progress
from teho.units import format_duration

__all__ = ["KIND", "judge"]

KIND = "cold_cache"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Compare the first third of the time in which a program made steps with the last third."""
    watch = Watch(KIND, run, summary, thresholds)
    for main in watch.mains:
        node = watch.node_of(main)
        steps = main.process.progress[-1] if main.process.progress else None
        if node is None or steps is None or not steps.steps_per_s:
            continue
        stepping_s = steps.last_s - steps.first_s
        slow, fast = _paces(main.process.progress)
        if stepping_s < watch.limit("stepping_min_s") or fast < watch.limit("pace_times") * slow:
            continue
        lost_s = stepping_s - (steps.steps - 1) / fast if fast > 0 else 0.0
        # Waiting for data must account for it, where that is known, and compiling must not.
        waited_s = main.feed.wait_s if main.feed.loader else lost_s
        if lost_s <= 0 or min(waited_s, lost_s - main.seconds(Doing.COMPILING)) < lost_s / 2:
            continue
        read = _read(watch, node, steps.first_s, stepping_s / 3)
        later = _read(watch, node, steps.last_s - stepping_s / 3, stepping_s / 3)
        if read is None or later is None or read < watch.limit("read_times") * later:
            continue
        if read < watch.limit("read_min_mb_per_s") * 1e6:
            continue
        return [
            watch.finding(
                Severity.REMARK,
                f"The program made {slow:.3g} steps a second in its first "
                f"{format_duration(stepping_s / 3)}, and {fast:.3g} in its last: at first the data "
                "came from storage, later from memory.",
                evidence=(
                    Evidence("pace, first third", slow, "step/s"),
                    Evidence("pace, last third", fast, "step/s"),
                    Evidence("read from storage, first third", read, "bytes/s"),
                    Evidence("read from storage, last third", later, "bytes/s"),
                ),
                judged_by=["pace_times", "read_times", "read_min_mb_per_s", "stepping_min_s"],
                action=(
                    "Take the time of a step after the first epoch. Where runs are short, copy the "
                    "data to the node's own disk or `/dev/shm` at the job's start, as few large "
                    "files, and read them there."
                ),
                regain_percent=(0.0, min(100.0, 100 * lost_s / main.process.wall_s)),
            )
        ]
    return watch.outcome([])


def _paces(progress: Sequence[Progress]) -> tuple[float, float]:
    """Return the steps a second of the first and of the last third of their time."""
    last = progress[-1]
    # A program that tells its steps itself begins to count anew.
    told = [one for one in progress if one.first_s == last.first_s]
    points = [(last.first_s, 1), *((one.last_s, one.steps) for one in told)]
    third_s = (last.last_s - last.first_s) / 3
    early = _steps_at(last.first_s + third_s, points)
    late = _steps_at(last.last_s - third_s, points)
    return (early - 1) / third_s, (last.steps - late) / third_s


def _steps_at(at_s: float, points: Sequence[tuple[float, int]]) -> float:
    """Return how many steps were done, by the moments at which that was written down."""
    for (from_s, before), (until_s, after) in pairwise(points):
        if from_s < at_s <= until_s:
            return before + (after - before) * (at_s - from_s) / (until_s - from_s)
    return points[-1][1]


def _read(watch: Watch, node: NodeSummary, from_s: float, span_s: float) -> float | None:
    """Return the bytes read a second from a monotonic time on; None, and noted, where unknown."""
    own = watch.series(node, "job_read_bytes")
    of_run = next(one for one in watch.run.nodes if one.name == node.name)
    unknown = Missing(Reason.UNRECORDED)
    clock_s = unknown if of_run.started_s is None else of_run.started_s
    began_s = watch.figure(node, "monotonic time", clock_s)
    if own is None or began_s is None:
        return None
    from_s += offset_s(watch.run, of_run) - began_s
    # What NFS brings stands in both.
    shared = node.series.get("netfs_read_bytes", [None] * len(own))
    rates = [
        max(rate, more or 0.0)
        for number, (rate, more) in enumerate(zip(own, shared, strict=True))
        if rate is not None and from_s <= (number + 0.5) * watch.summary.bin_s < from_s + span_s
    ]
    return watch.figure(node, "read from storage", statistics.fmean(rates) if rates else unknown)
