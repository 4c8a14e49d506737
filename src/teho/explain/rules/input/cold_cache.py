"""The first steps were slower than the last steps, and read much more from storage."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, Threshold, chosen
from teho.explain.step import offset_s
from teho.model.missing import Missing, Reason
from teho.model.program import Doing
from teho.model.summary import NodeSummary
from teho.model.watched import Progress
from teho.units import format_duration

RANK = 210
SEVERITY = "remark"
THRESHOLDS = {
    "pace_times": Threshold(
        1.3,
        "times",
        "gpuprof, a profiler, reports a cold cache if steps in the last third of the run are "
        "1.3 times as fast as in the first third",
    ),
    "read_times": Threshold(
        3.0,
        "times",
        "gpuprof, a profiler, reports a cold cache if the first third of the run reads 3 "
        "times as much from disk as the last third",
    ),
    "read_min_mb_per_s": chosen(
        1.0,
        "MB/s",
        "1 MB/s is 250 blocks of 4 kB per second; if a program reads less than this, it "
        "waits only for a short time",
    ),
    "stepping_min_s": Threshold(
        60.0, "s", "as in the rule job_too_short: a shorter run cannot be judged"
    ),
}


def judge(context: ProgramContext) -> Findings:
    """Compare the first third of the time in which a program made steps with the last third."""
    for main in context.mains:
        node = context.node_of(main)
        steps = main.process.progress[-1] if main.process.progress else None
        if node is None or steps is None or not steps.steps_per_s:
            continue
        stepping_s = steps.last_s - steps.first_s
        slow, fast = _paces(main.process.progress)
        if (
            stepping_s < context.limit("stepping_min_s")
            or fast < context.limit("pace_times") * slow
        ):
            continue
        lost_s = stepping_s - (steps.steps - 1) / fast if fast > 0 else 0.0
        # Waiting for data must explain the loss, if the wait is known; compiling must not.
        waited_s = main.feed.wait_s if main.feed.loader else lost_s
        if lost_s <= 0 or min(waited_s, lost_s - main.seconds(Doing.COMPILING)) < lost_s / 2:
            continue
        read = _read(context, node, steps.first_s, stepping_s / 3)
        later = _read(context, node, steps.last_s - stepping_s / 3, stepping_s / 3)
        if read is None or later is None or read < context.limit("read_times") * later:
            continue
        if read < context.limit("read_min_mb_per_s") * 1e6:
            continue
        context.forget_lacks()
        yield context.finding(
            Severity.REMARK,
            f"The program made {slow:.3g} steps/s in its first {format_duration(stepping_s / 3)} "
            f"and {fast:.3g} steps/s at the end: at first the data came from storage (slow), and "
            "later from memory (fast).",
            evidence=(
                Evidence("step rate in the first third of the training", slow, "steps/s"),
                Evidence("step rate in the last third of the training", fast, "steps/s"),
                Evidence("reads from storage in the first third of the training", read, "bytes/s"),
                Evidence("reads from storage in the last third of the training", later, "bytes/s"),
            ),
            action=(
                "If you measure the time of a step, leave out the first epoch. If your runs are "
                "short, pack the data into a few large files. At the start of the job, copy "
                "these files to the node's own disk or to `/dev/shm`, and read the data from there."
            ),
            regain_percent=(0.0, min(100.0, 100 * lost_s / main.process.wall_s)),
        )
        return


def _paces(progress: Sequence[Progress]) -> tuple[float, float]:
    """Return the steps per second in the first and in the last third of their time."""
    last = progress[-1]
    # If a program reports its steps itself, the count starts again.
    same = [one for one in progress if one.first_s == last.first_s]
    points = [(last.first_s, 1), *((one.last_s, one.steps) for one in same)]
    third_s = (last.last_s - last.first_s) / 3
    early = _steps_at(last.first_s + third_s, points)
    late = _steps_at(last.last_s - third_s, points)
    return (early - 1) / third_s, (last.steps - late) / third_s


def _steps_at(at_s: float, points: Sequence[tuple[float, int]]) -> float:
    """Return the number of steps at a time, interpolated between the recorded times."""
    for (from_s, before), (until_s, after) in pairwise(points):
        if from_s < at_s <= until_s:
            return before + (after - before) * (at_s - from_s) / (until_s - from_s)
    return points[-1][1]


def _read(context: ProgramContext, node: NodeSummary, from_s: float, span_s: float) -> float | None:
    """Return the bytes read per second from a monotonic time on; None, and noted, if unknown."""
    of_job = context.series(node, "job_read_bytes")
    recorded = context.run.node(node.name)
    unknown = Missing(Reason.UNRECORDED)
    clock_s = recorded.started_s if recorded else None
    began_s = context.figure(node, "monotonic time", unknown if clock_s is None else clock_s)
    if of_job is None or began_s is None or recorded is None:
        return None
    from_s += offset_s(context.run, recorded) - began_s
    # Both count what is read from NFS.
    network = node.series.get("netfs_read_bytes", [None] * len(of_job))
    rates = [
        max(rate, more or 0.0)
        for number, (rate, more) in enumerate(zip(of_job, network, strict=True))
        if rate is not None and from_s <= (number + 0.5) * context.summary.bin_s < from_s + span_s
    ]
    return context.figure(node, "read from storage", statistics.fmean(rates) if rates else unknown)
