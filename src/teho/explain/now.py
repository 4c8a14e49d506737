"""The newest values of all devices of a run, with their age and the reasons of gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from teho.explain.step import offset_s
from teho.model.live import LATE_S, SILENT_S, GpuNow, LiveSample, NodeNow, file_period_s
from teho.model.metric import METRICS_BY_NAME, Scope, metrics_of
from teho.model.missing import Missing, Reason
from teho.model.run import Node, Run
from teho.model.summary import Figure
from teho.observe.viewer import Received

__all__ = [
    "FAULTS",
    "NewestValues",
    "busy_percent",
    "fullest_percent",
    "known",
    "power_reported_by",
    "total_power_w",
    "worst_first_key",
]

_NO_SAMPLE = Missing(Reason.UNRECORDED, "this node has sent no sample")
_NAMES: Mapping[Scope, Mapping[str, None]] = {
    scope: {metric.name: None for metric in metrics_of(scope) if not metric.per_core}
    for scope in ("node", "gpu")
}
"""The metrics of a device that have one value, in their order."""
_NOT_IN_SAMPLE = Missing(Reason.UNRECORDED, "the newest sample does not contain the necessary data")
_ERRORS = ("gpu_ecc_corrected", "gpu_ecc_uncorrected", "gpu_xid_errors")
FAULTS = (*_ERRORS, "gpu_thermal_throttle_percent")
"""The metrics that say whether a GPU has a fault. They are read for each GPU of a run."""
_HEAT_PERCENT = 5.0
"""A GPU that heat slows for less is not worth a warning: the limit of the rule `gpu_throttled`."""
_ONLY_LIVE = Missing(
    Reason.UNRECORDED,
    "the rows of a recording do not contain it; it is shown only while the run is running",
)


class NewestValues:
    """The newest values of a run; values of a sample are computed once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[LiveSample | None, Node, NodeNow]] = {}

    def nodes(
        self,
        run: Run,
        newest: Mapping[str, Received],
        now_s: float,
        ended_s: float | None = None,
    ) -> tuple[NodeNow, ...]:
        """Return each node of a run with its newest values.

        Args:
            run: the description of the recording.
            newest: node -> its newest sample.
            now_s: monotonic time.
            ended_s: end of the run, in seconds after its start; None: it has not ended. The values
                of a run that has ended do not grow older.
        """
        found = []
        for node in run.nodes:
            received = newest.get(node.name)
            sample = received.sample if received else None
            known = self._known.get(node.name)
            if known is not None and known[0] is sample and known[1] is node:
                now = known[2]
            else:
                now = _node(run, node, received)
                self._known[node.name] = sample, node, now
            age_s = now_s - received.at_s if received else None
            if ended_s is not None and now.elapsed_s is not None:
                age_s = max(0.0, ended_s - now.elapsed_s)
            now = msgspec.structs.replace(now, age_s=age_s, has_ended=ended_s is not None)
            if ended_s is not None and received and not now.processes:
                now = msgspec.structs.replace(now, processes=tuple(received.processes))
            found.append(now)
        return tuple(found)


def _silent_after_s(run: Run, node: Node, received: Received) -> float:
    """Return the age from which the values of a node are not shown."""
    limit_s = SILENT_S
    if received.way == "file":
        limit_s = max(LATE_S, 2 * file_period_s(len(run.nodes)))
    elif received.way == "recording":
        # In a long run, a row covers more time, and is written when it is complete.
        spans_s = [row.get("span_s") or 0.0 for row in received.sample.rows]
        limit_s = LATE_S + 2 * max(spans_s, default=0.0)
    return max(limit_s, 2 * node.period_s)


def _node(run: Run, node: Node, received: Received | None) -> NodeNow:
    sample = received.sample if received else None
    before = _rows(received.before) if received and received.before else {}
    rows = _rows(sample) if sample else {}
    span_s = (
        sample.elapsed_s - received.before.elapsed_s
        if sample and received and received.before
        else 0.0
    )
    nothing = _NOT_IN_SAMPLE if sample else _NO_SAMPLE
    without_state = _ONLY_LIVE if received and received.way == "recording" else nothing
    absences = {(one.device, one.metric): one.missing for one in node.absences}

    def values(scope: Scope, device: str) -> Mapping[str, Figure]:
        return _Values(
            scope, device, rows.get(device, {}), before.get(device, {}), span_s, absences, nothing
        )

    return NodeNow(
        node=node,
        elapsed_s=sample.elapsed_s + offset_s(run, node) if sample else None,
        way=received.way if received else None,
        silent_after_s=_silent_after_s(run, node, received) if received else SILENT_S,
        values=values("node", "node"),
        cores_percent=tuple(rows.get("node", {}).get("core_busy_percent", ())),
        processes=tuple(sample.processes) if sample else (),
        has_fault=any(_has_fault(rows.get(device.id, {})) for device in node.devices),
        gpus=tuple(
            GpuNow(
                node=node.name,
                device=device,
                position=position,
                values=values("gpu", device.id),
                p_state=state.p_state if state else without_state,
                errors=_errors(rows.get(device.id, {})),
                unlisted=state.unlisted if state else {},
            )
            for position, device in enumerate(node.devices)
            for state in [sample.gpus.get(device.id) if sample else None]
        ),
    )


def _errors(row: Mapping[str, Any]) -> Mapping[str, float]:
    return {name: row[name] for name in _ERRORS if row.get(name) is not None}


def _has_fault(row: Mapping[str, Any]) -> bool:
    """Return whether heat slows a GPU, or it had an uncorrected memory error or an Xid error."""
    heat_percent = row.get("gpu_thermal_throttle_percent") or 0.0
    errors = (row.get("gpu_ecc_uncorrected") or 0.0) + (row.get("gpu_xid_errors") or 0.0)
    return heat_percent >= _HEAT_PERCENT or errors > 0


class _Values(Mapping[str, Figure]):
    """Metric -> its newest value. Of many GPUs only a few values are shown, and computed."""

    def __init__(
        self,
        scope: Scope,
        device: str,
        row: Mapping[str, Any],
        earlier: Mapping[str, Any],
        span_s: float,
        absences: Mapping[tuple[str, str], Missing],
        nothing: Missing,
    ) -> None:
        self._names = _NAMES[scope]
        self._device = device
        self._row = row
        self._earlier = earlier
        self._span_s = span_s
        self._absences = absences
        self._nothing = nothing

    def __getitem__(self, name: str) -> Figure:
        if name not in self._names:
            raise KeyError(name)
        value = _value(name, self._row, self._earlier, self._span_s)
        return self._absences.get((self._device, name), self._nothing) if value is None else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _rows(sample: LiveSample) -> dict[str, Mapping[str, Any]]:
    return {row["device"]: row for row in sample.rows}


def _value(
    name: str, row: Mapping[str, Any], earlier: Mapping[str, Any], span_s: float
) -> float | None:
    """Return a gauge, or the increase of a counter per second; None if it is not known."""
    value: float | None = row.get(name)
    if value is None or METRICS_BY_NAME[name].kind == "gauge":
        return value
    first = earlier.get(name)
    return (value - first) / span_s if first is not None and span_s > 0 else None


def known(values: Mapping[str, Figure], metric: str) -> float | None:
    """Return the value of a metric; None if it is missing."""
    value = values.get(metric)
    return None if value is None or isinstance(value, Missing) else value


def busy_percent(gpu: GpuNow) -> float | None:
    """Return the busy share of a GPU; in MIG mode, the share of its active SMs."""
    busy = known(gpu.values, "gpu_busy_percent")
    return known(gpu.values, "gpu_sm_active_percent") if busy is None else busy


def fullest_percent(node: NodeNow) -> float | None:
    """Return the used share of the fullest GPU memory of a node; None if it is not known."""
    shares = [
        100 * used / gpu.device.memory_bytes
        for gpu in node.gpus
        if (used := known(gpu.values, "gpu_memory_used_bytes")) is not None
        and gpu.device.memory_bytes
    ]
    return max(shares, default=None)


def total_power_w(node: NodeNow) -> float | None:
    """Return the power of all GPUs of a node; None if the power of one is not known.

    One GPU of a card may report the power of all GPUs of this card.
    """
    cards: dict[str, list[float]] = {}
    for gpu in node.gpus:
        power_w = known(gpu.values, "gpu_power_w")
        card = cards.setdefault(gpu.device.package_id or gpu.device.id, [])
        card += [] if power_w is None else [power_w]
    return sum(map(sum, cards.values())) if cards and all(cards.values()) else None


def power_reported_by(node: NodeNow, gpu: GpuNow) -> GpuNow | None:
    """Return the GPU of the same card that reports the power of this GPU; None: there is none."""
    if gpu.device.package_id is None or known(gpu.values, "gpu_power_w") is not None:
        return None
    return next(
        (
            other
            for other in node.gpus
            if other.device.package_id == gpu.device.package_id
            and known(other.values, "gpu_power_w") is not None
        ),
        None,
    )


def worst_first_key(node: NodeNow) -> tuple[int, float, str]:
    """Return a key that sorts silent nodes first, then nodes with a GPU that cannot be read.

    Nodes with a GPU that has a fault follow. The other nodes are in the order of their least busy
    GPU, or of their busy cores.
    """
    if node.is_silent:
        return 0, 0.0, node.node.name
    shares = [busy_percent(gpu) for gpu in node.gpus]
    least = [share for share in shares if share is not None]
    if 0 < len(least) < len(shares):
        return 1, 0.0, node.node.name  # a GPU was lost
    if node.has_fault:
        return 2, 0.0, node.node.name
    cores = known(node.values, "cpu_busy_percent")
    worst = min(least, default=101.0 if cores is None else cores)
    # By tens of a percent, so that nodes do not change places at each sample.
    return 3, float(int(worst // 10)), node.node.name
