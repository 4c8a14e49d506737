"""One frame of `teho top`: the report until now, and the newest values of all devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from teho.model.document import Cell, Report, Table
from teho.model.live import NOT_RECORDED, GpuNow, NodeNow
from teho.model.missing import Missing, Reason
from teho.show.build.layout import column, table
from teho.show.cells import BUSY_MEANS

__all__ = ["now_tables", "top_document"]


def top_document(report: Report, nodes: Sequence[NodeNow], notes: Iterable[str] = ()) -> Report:
    """Return the document of one frame; without tables if a run that has ended has no values.

    Args:
        report: on the run until now.
        nodes: the newest values, or the last values of a run that has ended.
        notes: remarks on the present moment, and on how the values came.
    """
    tables = now_tables(nodes)
    if report.state != "running" and all(node.is_silent for node in nodes):
        tables, notes = [], [f"The run has ended: `teho report {report.run_id}` prints the report."]
    return msgspec.structs.replace(
        report,
        facts=tuple(fact for fact in report.facts if not fact.aside),
        tables=tuple(tables),
        findings=report.findings,
        abstentions=(),
        notes=tuple(notes),
        plots=(),
        heat_map=None,
        rooflines=(),
    )


def now_tables(nodes: Sequence[NodeNow]) -> list[Table]:
    """Return the newest values of all GPUs and nodes as tables."""
    gpus = [(node, gpu) for node in nodes for gpu in node.gpus]
    when = "at the end" if any(node.has_ended for node in nodes) else "now"
    return [*([_gpus(gpus, when)] if gpus else []), _nodes(nodes, when)]


def _of(metric: str) -> Callable[[NodeNow], Cell]:
    return lambda node: _fresh(node, node.values.get(metric))


def _of_gpu(metric: str) -> Callable[[tuple[NodeNow, GpuNow]], Cell]:
    return lambda pair: _fresh(pair[0], pair[1].values.get(metric))


def _fresh(node: NodeNow, value: Cell) -> Cell:
    """Return a value, or why it is not shown: the value of a silent node may have changed."""
    if node.age_s is None:
        why = "has sent no sample" if node.is_recorded else NOT_RECORDED
        return Missing(Reason.UNRECORDED, f"this node {why}")
    if node.is_silent and node.has_ended:
        last = f"this node sent its last sample {node.age_s:.0f} s before the end of the run"
        return Missing(Reason.UNRECORDED, last)
    if node.is_silent:
        return Missing(Reason.UNRECORDED, f"this node has sent nothing for {node.age_s:.0f} s")
    return value


def _gpus(gpus: Sequence[tuple[NodeNow, GpuNow]], when: str) -> Table:
    return table(
        "gpus_now",
        f"GPUs {when}",
        gpus,
        column("node", "Node", lambda pair: pair[0].node.name),
        column("gpu", "GPU", lambda pair: pair[1].position),
        column("busy", "Busy", _of_gpu("gpu_busy_percent"), unit="%", decimals=0),
        column("sm_active", "SM active", _of_gpu("gpu_sm_active_percent"), unit="%", decimals=0),
        column("tensor", "Tensor", _of_gpu("gpu_tensor_percent"), unit="%", decimals=0),
        column("memory", "Memory", _of_gpu("gpu_memory_used_bytes"), unit="bytes"),
        column("power", "Power", _of_gpu("gpu_power_w"), unit="W", decimals=0),
        column("temperature", "Temperature", _of_gpu("gpu_temperature_c"), unit="°C", decimals=0),
        note=BUSY_MEANS,
        only_known=True,
    )


def _nodes(nodes: Sequence[NodeNow], when: str) -> Table:
    until = "the end of the run" if when != "now" else "now"
    return table(
        "nodes_now",
        f"Nodes {when}",
        nodes,
        column("node", "Node", lambda node: node.node.name),
        column("age", "Age", lambda node: node.age_s, unit="s"),
        column("way", "Samples by", lambda node: node.way),
        column("cpu", "Cores busy", _of("cpu_busy_percent"), unit="%", decimals=0),
        column("used", "Used by program", _of("job_cpu_s"), decimals=2),
        column("memory", "Memory", _of("job_memory_bytes"), unit="bytes"),
        column("read", "Read", _of("job_read_bytes"), unit="bytes/s"),
        column("written", "Written", _of("job_write_bytes"), unit="bytes/s"),
        column("received", "In", _of("net_receive_bytes"), unit="bytes/s"),
        note=f"The column Age shows the time from the newest sample of the node to {until}. The "
        "column Samples by says how this sample came: over a connection, in a file, or as rows of "
        "the recording.",
    )
