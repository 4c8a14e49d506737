"""For most of the time, a GPU did more work, or less work, than other GPUs of the same type."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from teho.explain.context import bins_that_hold, share_of
from teho.explain.moments import Shows
from teho.explain.places import NodeGpu, gauges, name_all, per_place, recorded
from teho.explain.rule import Evidence, Findings, Located, RuleContext, Severity, Threshold
from teho.explain.shared_thresholds import MOST_OF_THE_TIME
from teho.explain.step import rank_at
from teho.explain.wording import MOST_NAMED, listed, span
from teho.model.metric import METRICS_BY_NAME
from teho.model.summary import Series

RANK = 360
SEVERITY = "warning"
THRESHOLDS = {
    "time_percent": MOST_OF_THE_TIME,
    "working_percent": Threshold(
        25.0,
        "%",
        "if all GPUs are busy for less than this share of a short period, no GPU has much work, "
        "and Teho does not compare the GPUs in this period (the rule gpu_one_idle has the same "
        "threshold)",
    ),
    "power_percent": Threshold(
        20.0,
        "%",
        "if equal GPUs have the same work, their power normally differs by less than 20 %. "
        "TraceML, a profiler for training, has the same threshold: a difference of 20 % of the "
        "step time is critical",
    ),
    "busy_points": Threshold(
        20.0,
        "%",
        "TraceML, a profiler for training, calls a difference of 20 % of the step time between "
        "one rank and the others critical",
    ),
}


class _Signal(NamedTuple):
    """A gauge that shows the load of a GPU."""

    metric: str
    limit: str
    """Name of its threshold."""
    does: str
    """What one GPU did; `{}` is the figure."""
    do: str
    """What several GPUs did."""

    @property
    def unit(self) -> str:
        return METRICS_BY_NAME[self.metric].unit


_POWER = _Signal("gpu_power_w", "power_percent", "used {}", "used {}")
_MEMORY = _Signal(
    "gpu_memory_busy_percent", "busy_points",
    "used its memory {} of the time", "used their memory {} of the time",
)  # fmt: skip
_BUSY = _Signal(
    "gpu_busy_percent", "busy_points", "was busy {} of the time", "were busy {} of the time"
)

_Rows = list[tuple[NodeGpu, Series]]


def judge(context: RuleContext) -> Findings:
    """Compare GPUs of one model with each other, bin by bin.

    A GPU differs if it is far from the median of its model for most of the time in which the run is
    at work. A high busy share proves nothing: a rank that waits for others runs a communication
    kernel and counts as busy. So the rule reads the power first, or how busy the memory was.
    Without both it abstains.
    """
    models: dict[str, list[NodeGpu]] = {}
    for gpu in context.gpus:
        models.setdefault(gpu.gpu.device.name, []).append(gpu)
    for gpus in models.values():
        if len(gpus) > 1:
            yield from _among(context, gpus)


def _among(context: RuleContext, gpus: list[NodeGpu]) -> Findings:
    busy: _Rows = [
        (gpu, series)
        for gpu in gpus
        if (series := context.series(gpu, "gpu_busy_percent")) is not None
    ]
    if len(busy) < 2:
        return
    working = _working(context, busy)
    load = _load(context, [gpu for gpu, _ in busy])
    for signal, rows in ([load] if load else []) + [(_BUSY, busy)]:
        for far in _far(context, signal, rows, working):
            if far and len(far) < len(rows):
                yield _uneven(context, signal, [gpu for gpu, _ in rows], far)
                return


def _working(context: RuleContext, busy: _Rows) -> list[bool]:
    """Return for each bin whether any of the GPUs was at work (bins,)."""
    least = context.limit("working_percent")
    columns = zip(*(series for _, series in busy), strict=True)
    return [any(share is not None and share >= least for share in column) for column in columns]


def _load(context: RuleContext, gpus: list[NodeGpu]) -> tuple[_Signal, _Rows] | None:
    """Return a signal that shows the load of busy GPUs; None, and noted, if there is none."""
    for signal in (_POWER, _MEMORY):
        rows = [(gpu, gpu.gpu.series.get(signal.metric, [])) for gpu in gpus]
        if all(len(series) == context.summary.bin_count for _, series in rows):
            return signal, rows
    for gpu in gpus:
        context.series(gpu, _POWER.metric)
    return None


def _far(
    context: RuleContext, signal: _Signal, rows: _Rows, working: list[bool]
) -> Iterator[list[tuple[NodeGpu, Shows]]]:
    """Yield the GPUs that were far below, and far above, the median for most of the working time.

    Each with the bins in which it was.
    """
    columns = zip(*(series for _, series in rows), strict=True)
    known = [[value for value in column if value is not None] for column in columns]
    middles = [
        median(values) if at_work and len(values) > 1 else None
        for at_work, values in zip(working, known, strict=True)
    ]
    limit = context.limit("time_percent")
    part, points = context.limit("power_percent") / 100, context.limit("busy_points")

    def bounds(sign: int) -> Series:
        # Power differs by a part of the median, a share by percentage points.
        return [
            None
            if middle is None
            else middle + sign * (part * middle if signal is _POWER else points)
            for middle in middles
        ]

    for is_far, limits in ((operator.lt, bounds(-1)), (operator.gt, bounds(1))):
        bins = [(gpu, bins_that_hold(is_far, series, limits)) for gpu, series in rows]
        yield [(gpu, own) for gpu, own in bins if (share_of(own) or 0.0) > limit]


def _uneven(
    context: RuleContext, signal: _Signal, gpus: list[NodeGpu], far: list[tuple[NodeGpu, Shows]]
) -> Located:
    odd = [gpu for gpu, _ in far]
    keys = {gpu.key for gpu in odd}
    others = [gpu for gpu in gpus if gpu.key not in keys]
    did, usually = (_did(signal, group) for group in (odd, others))
    model = "" if len(gpus) == len(context.gpus) else " of the same type"
    rest = f"the other {f'{len(others)} GPUs' if len(others) > 1 else 'GPU'}{model}"
    shares = [(gpu, share_of(bins) or 0.0) for gpu, bins in far]
    nodes = listed(list(dict.fromkeys(gpu.node.name for gpu in odd)))
    process = "the process on this GPU does"
    if len(odd) > 1:
        process = "the processes on these GPUs do"
    return context.finding(
        Severity.WARNING,
        f"{name_all(odd)} {did}, but {rest} {usually}: the work is not equally divided.",
        evidence=(
            *per_place("time in which the GPU differed much from the other GPUs", "%", shares),
            *(item for one in (_POWER, _BUSY, _MEMORY) for item in _compared(one, odd, others)),
            *(Evidence(f"{gpu.name} is probably used by rank", str(rank))
              for gpu in odd[:MOST_NAMED]
              if (rank := rank_at(context.run, gpu.node.name, gpu.gpu.position)) is not None),
        ),
        judged_by=["time_percent", signal.limit, "working_percent"],
        action=(
            "Give all ranks the same amount of work: samples of similar length, and the same "
            "number of samples, with `DistributedSampler(dataset, drop_last=True)`. Check what "
            f"{process}: `py-spy top --pid PID` on {nodes}. A GPU that uses less power than the "
            "others probably waits for data or for the other ranks. If a GPU uses more power than "
            "the others, its rank probably has more work, and all other ranks wait for this rank."
        ),
        subjects=odd,
        moments=context.moments_in(signal.metric, far),
    )  # fmt: skip


def _did(signal: _Signal, gpus: list[NodeGpu]) -> str:
    """Return what these GPUs did, with the range of their means."""
    means = [mean for _, mean in recorded(gpus, signal.metric)]
    return (signal.does if len(gpus) == 1 else signal.do).format(span(means, signal.unit))


def _compared(signal: _Signal, odd: list[NodeGpu], others: list[NodeGpu]) -> Iterator[Evidence]:
    label = METRICS_BY_NAME[signal.metric].label
    yield from gauges(odd, signal.metric)
    usual = [mean for _, mean in recorded(others, signal.metric)]
    if usual:
        yield Evidence(f"{label}, median of the other GPUs", median(usual), signal.unit)
