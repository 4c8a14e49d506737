"""The GPUs of one run do not have the same work."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from teho.explain.context import NodeGpu, RuleContext, Series, known, name_all, per_place, span
from teho.explain.step import rank_at
from teho.explain.wording import listed
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "rank_imbalance"
RANK = 360
SAYS = "a GPU did more or less than other GPUs of its model, most of the time"
SEVERITY = "warning"
THRESHOLDS = {
    "time_percent": Threshold(
        50.0, "%", "as SageMaker's profiler rules: more than 50 % of the time"
    ),
    "working_percent": Threshold(
        25.0,
        "%",
        "as gpu_one_idle: below it no GPU of the run is at work, and power is that of idling",
    ),
    "power_percent": Threshold(
        20.0,
        "%",
        "TraceML: 20 % of a step is critical; GPUs of one model at the same work differ by less",
    ),
    "busy_points": Threshold(
        20.0, "%", "TraceML: a rank that is off by 20 % of a step is critical"
    ),
}


class _Signal(NamedTuple):
    """What a GPU's load is judged by."""

    metric: str
    unit: str
    limit: str
    """Name of its threshold."""
    does: str
    """What one GPU did; `{}` is the figure."""
    do: str
    """The same of several."""


_POWER = _Signal("gpu_power_w", "W", "power_percent", "drew {}", "drew {}")
_MEMORY = _Signal(
    "gpu_memory_busy_percent", "%", "busy_points",
    "used its memory {} of the time", "used their memory {} of the time",
)  # fmt: skip
_BUSY = _Signal(
    "gpu_busy_percent", "%", "busy_points",
    "was busy {} of the time", "were busy {} of the time",
)  # fmt: skip

_Rows = list[tuple[NodeGpu, Series]]


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Compare GPUs of one model with each other, bin by bin.

    A GPU is off where it lies far from the median of its like for most of the time in which
    the run is at work. The busy share alone can accuse and not acquit: a rank that waits for
    the others runs a communication kernel meanwhile, and is busy. So power is looked at first,
    or how busy the memory was; without both the rule abstains.
    """
    findings = [_of_alike(context, gpus) for gpus in _alike(context.gpus)]
    return context.outcome([finding for finding in findings if finding is not None])


def _alike(gpus: Iterable[NodeGpu]) -> list[list[NodeGpu]]:
    models: dict[str, list[NodeGpu]] = {}
    for of in gpus:
        models.setdefault(of.gpu.device.name, []).append(of)
    return [group for group in models.values() if len(group) > 1]


def _of_alike(context: RuleContext, gpus: list[NodeGpu]) -> Finding | None:
    busy: _Rows = [
        (of, series)
        for of in gpus
        if (series := context.series(of, "gpu_busy_percent")) is not None
    ]
    if len(busy) < 2:
        return None
    working = _working(context, busy)
    hidden = _hidden(context, [of for of, _ in busy])
    for signal, rows in ([hidden] if hidden else []) + [(_BUSY, busy)]:
        shares = _shares_off(context, signal, rows, working)
        low = [(of, below) for (of, _), (below, _) in zip(rows, shares, strict=True)]
        high = [(of, above) for (of, _), (_, above) in zip(rows, shares, strict=True)]
        for side in (low, high):
            off = [(of, share) for of, share in side if share > context.limit("time_percent")]
            if off:
                return _uneven(context, signal, [of for of, _ in rows], off)
    return None


def _working(context: RuleContext, busy: _Rows) -> list[bool]:
    """Say for each bin whether any of the GPUs was at work (bins,)."""
    least = context.limit("working_percent")
    columns = zip(*(series for _, series in busy), strict=True)
    return [any(share is not None and share >= least for share in column) for column in columns]


def _hidden(context: RuleContext, gpus: list[NodeGpu]) -> tuple[_Signal, _Rows] | None:
    """Return a signal that shows load where all GPUs are busy; None, and noted, without one."""
    for signal in (_POWER, _MEMORY):
        rows = [(of, of.gpu.series[signal.metric]) for of in gpus if _has(context, of, signal)]
        if len(rows) == len(gpus):
            return signal, rows
    for of in gpus:
        context.series(of, _POWER.metric)
    return None


def _has(context: RuleContext, of: NodeGpu, signal: _Signal) -> bool:
    return len(of.gpu.series.get(signal.metric, ())) == context.summary.bin_count


def _shares_off(
    context: RuleContext, signal: _Signal, rows: _Rows, working: list[bool]
) -> list[tuple[float, float]]:
    """Return for each GPU how much of the working time it lay far below and above, in %."""
    below, above, seen = ([0] * len(rows) for _ in range(3))
    for number, at_work in enumerate(working):
        values = [series[number] for _, series in rows]
        there = [value for value in values if value is not None]
        if not at_work or len(there) < 2:
            continue
        middle = median(there)
        far = _far(context, signal, middle)
        low, high = middle - far, middle + far
        for place, value in enumerate(values):
            if value is None:
                continue
            seen[place] += 1
            if value < low:
                below[place] += 1
            elif value > high:
                above[place] += 1
    return [
        (100 * under / count, 100 * over / count) if count else (0.0, 0.0)
        for under, over, count in zip(below, above, seen, strict=True)
    ]


def _far(context: RuleContext, signal: _Signal, middle: float) -> float:
    """Return how far from the middle is too far: a part of it for power, points for shares."""
    if signal is _POWER:
        return context.limit("power_percent") / 100 * middle
    return context.limit("busy_points")


def _uneven(
    context: RuleContext, signal: _Signal, gpus: list[NodeGpu], off: list[tuple[NodeGpu, float]]
) -> Finding:
    places = [of for of, _ in off]
    keys = {of.key for of in places}
    others = [of for of in gpus if of.key not in keys]
    figures, usual = (
        [mean for _, mean in known(those, signal.metric, "mean")] for those in (places, others)
    )
    did = (signal.does if len(places) == 1 else signal.do).format(span(figures, signal.unit))
    like = "" if len(gpus) == len(context.gpus) else " of that model"
    rest = f"the other {f'{len(others)} GPUs' if len(others) > 1 else 'GPU'}{like}"
    metrics = (_POWER.metric, _BUSY.metric, _MEMORY.metric)
    return context.finding(
        Severity.WARNING,
        f"{name_all(places)} {did}, {rest} {span(usual, signal.unit)}: the load is uneven.",
        evidence=(
            *per_place("time far from the others", "%", off),
            *(item for metric in metrics for item in _compared(metric, places, others)),
            *(Evidence(f"rank by its place, {of.name}", f"{rank}") for of in places[:4]
              if (rank := rank_at(context.run, of.node.name, of.gpu.position)) is not None),
        ),
        judged_by=["time_percent", signal.limit, "working_percent"],
        action=_action(places),
        subjects=places,
    )  # fmt: skip


def _compared(metric: str, places: list[NodeGpu], others: list[NodeGpu]) -> Iterable[Evidence]:
    label, unit = {
        _POWER.metric: ("GPU power", "W"),
        _BUSY.metric: ("GPU busy", "%"),
        _MEMORY.metric: ("GPU memory busy", "%"),
    }[metric]
    yield from per_place(f"{label}, mean", unit, known(places, metric, "mean"))
    usual = [mean for _, mean in known(others, metric, "mean")]
    if usual:
        yield Evidence(f"{label}, median of the others", median(usual), unit)


def _action(places: list[NodeGpu]) -> str:
    nodes = listed(list(dict.fromkeys(of.node.name for of in places)))
    return (
        "Give all ranks the same amount of work, `DistributedSampler(dataset, drop_last=True)`, in "
        "samples of like length, and see what the odd process does, `py-spy top --pid PID` on "
        f"{nodes}. A rank that works more keeps the others waiting. A rank that works less waits "
        "for them, or for its own data."
    )
