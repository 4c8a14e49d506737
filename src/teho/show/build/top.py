"""One frame of `teho top`: the report until now, and the newest values of all devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from teho.explain.wording import short_numbers
from teho.model.document import Cell, Report, Table
from teho.model.live import NOT_RECORDED, GpuNow, NodeNow, ProcessNow
from teho.model.missing import Missing, Reason
from teho.show.build.layout import column, table
from teho.show.cells import BUSY_MEANS
from teho.show.live_text import fact_or_why, p_state_text, slice_of, type_letters, user_of

__all__ = ["now_tables", "process_tables", "top_document"]

_WITH_REASON = frozenset({"left_s"})
"""Facts that the JSON has also if they are missing: it then says why."""

_MOST_PROCESSES = 1000
"""Processes of a job in one document, at most."""
_FROM_ROWS = (
    "Some values are from the rows of the recording, because no newer sample has come yet. These "
    "rows have no P-states and no processes."
)
_SHOWN_PROCESSES = 20
"""Processes in the output as text, at most."""


def has_old_rows(nodes: Sequence[NodeNow]) -> bool:
    """Return whether a node still runs, and its values are from the rows of the recording."""
    return any(node.way == "recording" and not (node.is_silent or node.has_ended) for node in nodes)


def top_document(
    report: Report, nodes: Sequence[NodeNow], notes: Iterable[str] = (), owner: str = ""
) -> Report:
    """Return the document of one frame; without tables if a run that has ended has no values.

    Args:
        report: on the run until now.
        nodes: the newest values, or the last values of a run that has ended.
        notes: remarks on how the values came.
        owner: name of the user who owns the recording.
    """
    tables = [*now_tables(nodes), *process_tables(nodes, owner)]
    if has_old_rows(nodes):
        notes = [*notes, _FROM_ROWS]
    if report.state != "running" and all(node.is_silent for node in nodes):
        tables, notes = [], [f"The run has ended: `teho report {report.run_id}` prints the report."]
    return msgspec.structs.replace(
        report,
        facts=tuple(fact for fact in report.facts if not fact.aside or fact.key in _WITH_REASON),
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
    when = _when(nodes)
    return [*([_gpus(gpus, when)] if gpus else []), _nodes(nodes, when)]


def _when(nodes: Sequence[NodeNow]) -> str:
    return "at the end" if any(node.has_ended for node in nodes) else "now"


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
        column("clock", "Clock", _of_gpu("gpu_sm_clock_mhz"), unit="MHz", decimals=0),
        column("heat", "Slowed by heat", _of_gpu("gpu_thermal_throttle_percent"), unit="%",
               decimals=0),
        column("cap", "Slowed by cap", _of_gpu("gpu_power_throttle_percent"), unit="%",
               decimals=0),
        column("pcie_in", "PCIe in", _of_gpu("gpu_pcie_receive_bytes_per_s"), unit="bytes/s"),
        column("pcie_out", "PCIe out", _of_gpu("gpu_pcie_send_bytes_per_s"), unit="bytes/s"),
        column("uncorrected", "ECC errors", lambda pair: _uncorrected(*pair)),
        column("p_state", "P-state", lambda pair: _fresh(pair[0], p_state_text(pair[1].p_state))),
        column("driver", "Driver", lambda pair: fact_or_why(pair[1].device.driver)),
        column("platform", "Platform", lambda pair: fact_or_why(pair[1].device.platform)),
        column("compute_mode", "Compute mode",
               lambda pair: fact_or_why(pair[1].device.compute_mode)),
        column("slice_of", "MIG slice of", lambda pair: slice_of(pair[1].device) or None),
        note=BUSY_MEANS,
        only_known=True,
    )  # fmt: skip


def _uncorrected(node: NodeNow, gpu: GpuNow) -> Cell:
    """Return the number of uncorrected memory errors since the recording began."""
    return _fresh(node, gpu.errors.get("gpu_ecc_uncorrected"))


def process_tables(
    nodes: Sequence[NodeNow], owner: str | None, most: int = _MOST_PROCESSES
) -> Iterable[Table]:
    """Yield the table of the processes, if there are any.

    Args:
        nodes: the newest values.
        owner: name of the user who owns the recording; None: the table has no users.
        most: number of rows, at most.
    """
    found = [(node, one) for node in nodes if not node.is_silent for one in node.processes]
    found.sort(key=lambda pair: (not pair[1].gpu_memory_bytes, -(pair[1].cpu_percent or 0.0)))
    if not found:
        return
    made = table(
        "processes_now",
        f"Processes {_when(nodes)}",
        found[:most],
        column("node", "Node", lambda pair: pair[0].node.name),
        column("pid", "PID", lambda pair: str(pair[1].pid)),
        None if owner is None else column("user", "User", lambda pair: user_of(pair[1], owner)),
        column("rank", "Rank", lambda pair: pair[1].rank),
        column("type", "Type", lambda pair: _types(pair[1])),
        column("gpus", "GPU", lambda pair: _numbers(*pair)),
        column("gpu_memory", "GPU memory", lambda pair: pair[1].gpu_total_bytes, unit="bytes"),
        column("cpu", "CPU", lambda pair: pair[1].cpu_percent, unit="%", decimals=0),
        column("memory", "Memory", lambda pair: pair[1].resident_bytes, unit="bytes"),
        column("line", "Line", lambda pair: _line(pair[1])),
        column("command", "Command", lambda pair: pair[1].command),
        note="The processes that use a GPU come first, and then those with the most CPU time. The "
        "column Type has the letters of nvidia-smi: C computes, G draws graphics, M uses MPS.",
        only_known=True,
    )
    more = len(found) - _SHOWN_PROCESSES
    if more > 0:
        rest = f"and {more} more process{'es' if more > 1 else ''}"
        made = msgspec.structs.replace(made, shown=tuple(range(_SHOWN_PROCESSES)), rest=rest)
    yield made


def _line(process: ProcessNow) -> str | None:
    """Return where the main thread of a process is; None if this is not known."""
    if process.line is None or not process.line.frames:
        return None
    frame = process.line.frames[-1]
    return f"{frame.short_place} {frame.short_text}"


def _types(process: ProcessNow) -> str | None:
    return type_letters({kind for kinds in process.gpu_types.values() for kind in kinds}) or None


def _numbers(node: NodeNow, process: ProcessNow) -> str | None:
    used = [gpu.position for gpu in node.gpus if gpu.device.id in process.gpu_memory_bytes]
    return short_numbers(used) or None


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
