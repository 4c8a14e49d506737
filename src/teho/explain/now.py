"""The newest values of all devices of a run, with their age and the reasons of gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from teho.model.live import GpuNow, LiveSample, NodeNow
from teho.model.metric import METRICS_BY_NAME, Scope, metrics_of
from teho.model.missing import Missing, Reason
from teho.model.run import Node, Run
from teho.model.summary import Figure
from teho.observe.viewer import Received

__all__ = ["NewestValues"]

_NO_SAMPLE = Missing(Reason.UNRECORDED, "this node has sent no sample")
_NOT_IN_SAMPLE = Missing(Reason.UNRECORDED, "the newest sample does not have this value")


class NewestValues:
    """The newest values of a run; values of a sample are computed once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[LiveSample | None, Node, NodeNow]] = {}

    def nodes(self, run: Run, newest: Mapping[str, Received], now_s: float) -> tuple[NodeNow, ...]:
        """Return each node of a run with its newest values.

        Args:
            run: the description of the recording.
            newest: node -> its newest sample.
            now_s: monotonic time.
        """
        found = []
        for node in run.nodes:
            received = newest.get(node.name)
            sample = received.sample if received else None
            known = self._known.get(node.name)
            if known is not None and known[0] is sample and known[1] is node:
                age_s = now_s - received.at_s if received else None
                now = msgspec.structs.replace(known[2], age_s=age_s)
            else:
                now = _node(node, received, now_s)
                self._known[node.name] = sample, node, now
            found.append(now)
        return tuple(found)


def _node(node: Node, received: Received | None, now_s: float) -> NodeNow:
    sample = received.sample if received else None
    before = _rows(received.before) if received and received.before else {}
    rows = _rows(sample) if sample else {}
    span_s = (
        sample.elapsed_s - received.before.elapsed_s
        if sample and received and received.before
        else 0.0
    )
    nothing = _NOT_IN_SAMPLE if sample else _NO_SAMPLE
    absences = {(one.device, one.metric): one.missing for one in node.absences}

    def values(scope: Scope, device: str) -> dict[str, Figure]:
        row, earlier = rows.get(device, {}), before.get(device, {})
        found: dict[str, Figure] = {}
        for metric in metrics_of(scope):
            if metric.per_core:
                continue
            value = _value(metric.name, row, earlier, span_s)
            missing = absences.get((device, metric.name), nothing)
            found[metric.name] = missing if value is None else value
        return found

    return NodeNow(
        node=node,
        elapsed_s=sample.elapsed_s if sample else None,
        age_s=now_s - received.at_s if received else None,
        way=received.way if received else "",
        values=values("node", "node"),
        cores_percent=tuple(rows.get("node", {}).get("core_busy_percent", ())),
        processes=tuple(sample.processes) if sample else (),
        gpus=tuple(
            GpuNow(
                node=node.name,
                device=device,
                position=position,
                values=values("gpu", device.id),
            )
            for position, device in enumerate(node.devices)
        ),
    )


def _rows(sample: LiveSample) -> dict[str, dict[str, Any]]:
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
