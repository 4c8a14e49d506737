"""The memory in use of a node or a GPU grew at a steady rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from teho.explain.places import NodeGpu, Place, each_of, name_all, per_column
from teho.explain.rule import Findings, Located, RuleContext, Severity, Threshold, chosen
from teho.explain.trend import TrendPoint, thinned, trend_of
from teho.explain.wording import span
from teho.model.missing import Missing, Reason
from teho.model.summary import NodeSummary, Stat

RANK = 440
SEVERITY = "critical, warning, remark"
THRESHOLDS = {
    "elapsed_min_s": Threshold(
        60.0,
        "s",
        "as in the rule job_too_short: in the first minute, a program still loads libraries and "
        "data",
    ),
    "warm_up_percent": chosen(
        20.0,
        "%",
        "in the first fifth of the run, a program still imports libraries, loads data and "
        "allocates memory",
    ),
    "ending_percent": chosen(5.0, "%", "in the last 5 % of the run, a program frees memory"),
    "points_min": chosen(
        20.0,
        "points",
        "each quarter of the run needs at least five values of the memory for a reliable growth "
        "rate",
    ),
    "rising_percent": Threshold(
        90.0,
        "%",
        "Mann-Kendall test for a trend: the later value is higher in at least 90 % of all pairs "
        "of values; without a trend, the later value is higher in 50 % of the pairs",
    ),
    "part_percent": chosen(
        50.0,
        "%",
        "Teho computes the mean growth of the four quarters of the run; the growth is steady if "
        "the growth in each quarter is at least half of this mean",
    ),
    "growth_percent": chosen(
        5.0,
        "%",
        "if the memory grows by less than 5 % of the limit, a run that is 14 times as long would "
        "not reach the limit",
    ),
    "critical_times": chosen(
        1.0, "runs", "a run that is twice as long would reach the memory limit"
    ),
    "warning_times": chosen(
        4.0, "runs", "a run that is five times as long would reach the memory limit"
    ),
    "usual_hours": chosen(
        24.0, "hours", "if the time limit of the job is not known, Teho assumes one day"
    ),
}
MUTES = ("memory_near_limit", "memory_overasked", "batch_small")
MUTES_BECAUSE = "the next run may need more or less memory, depending on its length"

_QUARTERS = 4
_MINUTE_S, _HOUR_S = 60.0, 3600.0
_KEPT = (
    "Find what the training loop keeps in memory. Add `loss.item()` to sums and lists, not `loss`. "
    "Use `.detach()` for outputs that you keep. Limit the size of lists and caches."
)


class _Growth(NamedTuple):
    place: Place
    metric: str
    first_bin: int
    last_bin: int
    per_s: float
    first: float
    last: float
    limit: float
    left_s: float
    """From the end of the run until the memory is full at this rate."""


def judge(context: RuleContext) -> Findings:
    """Find nodes and GPUs whose used memory grew steadily from the warm-up to the end.

    A curve that becomes flat, falls, jumps once or is noisy is not steady growth. Page cache is not
    counted: the kernel frees it.
    """
    if context.summary.elapsed_s < context.limit("elapsed_min_s"):
        return
    nodes = [growth for node in context.summary.nodes if (growth := _of_node(context, node))]
    gpus = [growth for gpu in context.gpus if (growth := _of_gpu(context, gpu))]
    for severity in Severity:
        for alike in (nodes, gpus):
            if band := [one for one in alike if _severity(context, one) is severity]:
                yield _finding(context, severity, band)


def _of_node(context: RuleContext, node: NodeSummary) -> _Growth | None:
    return _growth(context, node, "job_memory_bytes", "memory limit", node.memory_limit_bytes)


def _of_gpu(context: RuleContext, gpu: NodeGpu) -> _Growth | None:
    # Other users may have memory on the GPU; not every GPU reports whose memory it is.
    by_job = isinstance(gpu.gpu.stats.get("gpu_job_memory_bytes"), Stat)
    metric = "gpu_job_memory_bytes" if by_job else "gpu_memory_used_bytes"
    size = gpu.gpu.device.memory_bytes or Missing(Reason.UNSUPPORTED)
    return _growth(context, gpu, metric, "GPU memory, total", size)


def _growth(
    context: RuleContext, place: Place, metric: str, limit_label: str, limit: float | Missing
) -> _Growth | None:
    series = context.series(place, metric)
    if series is None:
        return None
    count, bin_s = len(series), context.summary.bin_s
    begin = context.limit("warm_up_percent") / 100 * count
    end = (1 - context.limit("ending_percent") / 100) * count
    points = [
        TrendPoint((number + 0.5) * bin_s, value)
        for number, value in enumerate(series)
        if value is not None and begin <= number < end
    ]
    per_s = _slope(context, thinned(points)) if len(points) >= context.limit("points_min") else None
    most = context.figure(place, limit_label, limit) if per_s else None
    if not per_s or not most:
        return None
    gained = per_s * (points[-1].at_s - points[0].at_s)
    if gained < context.limit("growth_percent") / 100 * most:
        return None
    full_s = points[-1].at_s + (most - points[-1].value) / per_s
    left_s = max(0.0, full_s - context.summary.elapsed_s)
    first_bin, last_bin = (int(points[at].at_s / bin_s) for at in (0, -1))
    return _Growth(
        place, metric, first_bin, last_bin, per_s, points[0].value, points[-1].value, most, left_s
    )


def _slope(context: RuleContext, points: Sequence[TrendPoint]) -> float | None:
    """Return how much a curve rises per second; None if it does not rise steadily."""
    whole = trend_of(points) if points[-1].value > points[0].value else None
    if whole is None or whole.rising_percent < context.limit("rising_percent") or whole.per_s <= 0:
        return None
    least = context.limit("part_percent") / 100 * whole.per_s
    for quarter in range(_QUARTERS):
        first, last = (len(points) * (quarter + end) // _QUARTERS for end in (0, 1))
        part = trend_of(points[first:last])
        if part is None or part.per_s < least:
            return None
    return whole.per_s


def _severity(context: RuleContext, growth: _Growth) -> Severity:
    elapsed_s, left_s = context.summary.elapsed_s, growth.left_s
    given_s = context.run.limit_s
    in_time = elapsed_s + left_s <= (given_s or context.limit("usual_hours") * _HOUR_S)
    in_danger = given_s is not None and in_time and context.run.end is None
    if left_s <= context.limit("critical_times") * elapsed_s or in_danger:
        return Severity.CRITICAL
    if left_s <= context.limit("warning_times") * elapsed_s or in_time:
        return Severity.WARNING
    return Severity.REMARK


def _finding(context: RuleContext, severity: Severity, growths: Sequence[_Growth]) -> Located:
    places = [growth.place for growth in growths]
    nodes = [place for place in places if isinstance(place, NodeSummary)]
    rate = span([_MINUTE_S * growth.per_s for growth in growths], "bytes")
    left = span([growth.left_s for growth in growths], "s")
    count = context.summary.bin_count
    return context.finding(
        severity,
        f"Memory use on {each_of(nodes) if nodes else name_all(places)} grew by {rate} per minute: "
        + (
            f"at this rate, the memory limit will be reached {left} after the last sample."
            if context.run.end is None
            else "if the run had continued at this rate, it would have reached the memory limit "
            f"{left} later."
        ),
        evidence=(
            *per_column(
                [(one.place, one.first, one.last, one.limit) for one in growths],
                ("memory used after the warm-up", "bytes"),
                ("memory used near the end", "bytes"),
                ("memory limit", "bytes"),
            ),
        ),
        judged_by=[
            "growth_percent", "rising_percent", "part_percent", "critical_times", "warning_times",
            "usual_hours",
        ],
        action=_action(on_gpu=not nodes),
        subjects=places,
        moments=context.moments_in(
            growths[0].metric,
            [(one.place, [one.first_bin <= bin_ <= one.last_bin for bin_ in range(count)])
             for one in growths],
        ),
    )  # fmt: skip


def _action(*, on_gpu: bool) -> str:
    if on_gpu:
        return (
            f"{_KEPT} If you must keep tensors, move them to the node's memory: `.cpu()`. Print "
            "`torch.cuda.memory_allocated()` every 100 steps to see whether tensors accumulate."
        )
    return (
        f"{_KEPT} If loader workers read Python lists, keep these data in NumPy arrays: each "
        "worker gets a copy of the lists that it reads. Python's `tracemalloc` finds the lines of "
        "your code that allocate Python objects and NumPy arrays (not tensors) in the main "
        "process: call `tracemalloc.start()` once, and every 100 steps print "
        "`tracemalloc.take_snapshot().statistics('lineno')[:10]`. `tracemalloc` slows the program."
    )
