"""The lines of `teho top`: a job, a node of it, or a GPU of this node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from rich.text import Text

from teho.explain.now import (
    busy_percent,
    fullest_percent,
    known,
    power_reported_by,
    total_power_w,
    worst_first_key,
)
from teho.explain.where import spent_by
from teho.model.document import Fact
from teho.model.live import GpuNow, NodeNow, ProcessNow
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing
from teho.model.watched import WatchedProcess
from teho.show.cells import MARKS, cell_text, plain, quantity
from teho.show.text.document import VERDICT_STYLES
from teho.show.text.flow import flow, words
from teho.show.top.braille import braille
from teho.show.top.frame import CURVES, Curve, Frame
from teho.units import format_bytes, format_duration

__all__ = [
    "NODE_ORDERS",
    "PROCESS_ORDERS",
    "JobLines",
    "Row",
    "View",
    "gpu_view",
    "head",
    "node_view",
    "process_view",
]

T = TypeVar("T")

_COLORS = tuple(f"color({number})" for number in (88, 124, 130, 94, 100, 64, 28, 29, 30, 24))
"""From an idle GPU to a busy GPU. The digit in the cell says the same without colour. Colours of
the table of 256 need half as many bytes as any colour, and white can be read on all of these."""
_ON_COLOR = "color(231)"
_CELLS = tuple((str(place), f"bold {_ON_COLOR} on {color}") for place, color in enumerate(_COLORS))
_MOST_LINES = 8
"""Activities and lines of a program that are shown."""
_LABEL = 17
"""Width of the labels of curves."""
_MOST_CORES = 64
"""Largest number of cores that the line of a node shows."""
_NEW_S = 2.5
"""Samples come each second; the age of a sample that is not older is not shown, because it would
change the line at each tick."""
_DIM = "dim"
_HEAD_FACTS = (
    "job_id", "steps_per_s", "steps_per_s_now", "cost", "cost_at_limit", "cost_unused",
    "gpu_energy_j",
)  # fmt: skip


class Order(NamedTuple):
    """An order of rows."""

    title: str
    """As the line with the keys names it."""
    key: Callable[[Any], Any]

    def sorted(self, rows: Iterable[T]) -> list[T]:
        """Return the rows in this order."""
        return sorted(rows, key=self.key)


def _down(value: float | None) -> float:
    """Return a key that sorts large values first, and missing values last."""
    return 1.0 if value is None else -value


def _of_node(value: Callable[[NodeNow], float | None]) -> Callable[[NodeNow], Any]:
    """Return a key for nodes; the values of a silent node may have changed, so it is last."""
    return lambda node: (_down(None if node.is_silent else value(node)), node.node.name)


NODE_ORDERS = {
    "worst": Order("worst first", worst_first_key),
    "name": Order("name", lambda node: node.node.name),
    "gpu_memory": Order("GPU memory", _of_node(fullest_percent)),
    "power": Order("power", _of_node(total_power_w)),
    "cores": Order("cores", _of_node(lambda node: known(node.values, "cpu_busy_percent"))),
    "memory": Order("memory", _of_node(lambda node: known(node.values, "job_memory_bytes"))),
}
"""Orders of the nodes. The key `s` selects the next one."""
PROCESS_ORDERS = {
    "cpu": Order("CPU", lambda one: (_down(one.cpu_percent), one.pid)),
    "memory": Order("memory", lambda one: (_down(one.resident_bytes), one.pid)),
    "gpu_memory": Order("GPU memory", lambda one: (_down(one.gpu_total_bytes), one.pid)),
    "rank": Order("rank", lambda one: (one.rank is None, one.rank or 0, one.pid)),
}
"""Orders of the processes of a node."""


class Row(NamedTuple):
    """One line of a list that can be chosen."""

    line: Text
    key: str = ""
    """What Enter opens; empty: the line cannot be chosen."""


class View(NamedTuple):
    """What is below the head."""

    title: Text
    rows: list[Row]

    def cut(self, width: int) -> View:
        """Return the view with lines of at most this many columns."""
        return View(
            _cut(self.title, width), [Row(_cut(row.line, width), row.key) for row in self.rows]
        )


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line


def head(frame: Frame, width: int) -> list[Text]:
    """Return the most important sentence, and the facts of the run in one line."""
    report = frame.report
    mark = MARKS[report.verdict_severity]
    style = VERDICT_STYLES[report.verdict_severity]
    sentence = flow(words(plain(report.verdict)), width, Text(f"{mark} ", style), hang=2)
    lines = sentence[:2]
    facts = " · ".join(_facts(frame))
    return [_cut(line, width) for line in (*lines, Text(facts))]


def _facts(frame: Frame) -> Iterable[str]:
    yield frame.report.state
    yield format_duration(frame.elapsed_s)
    if frame.report.state == "running" and frame.limit_s:
        left_s = max(0.0, frame.limit_s - frame.elapsed_s)
        yield f"{format_duration(left_s)} until the time limit"
    yield from frame.notes
    by_key = {fact.key: fact for fact in frame.report.facts}
    for key in _HEAD_FACTS:
        fact = by_key.get(key)
        if fact is not None and not isinstance(fact.value, Missing):
            yield _fact_text(fact)


def _fact_text(fact: Fact) -> str:
    return f"{fact.label} {cell_text(fact.value, fact.unit)}"


# A job


class JobLines:
    """The lines of a job, one for each node. A line is made again only if it has changed."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[Any, ...]] = {}

    def view(self, nodes: Sequence[NodeNow], width: int, pattern: str = "") -> View:
        """Return the lines of nodes.

        Args:
            nodes: in the order in which they are shown.
            width: columns of the terminal.
            pattern: text that these nodes have in their names.
        """
        longest = max((len(node.node.name) for node in nodes), default=4)
        name = max(4, min(longest, 24))
        gpus = any(node.gpus for node in nodes)
        title = Text(f"{'NODE':<{name}}", "bold")
        cells = _cells(nodes)
        title.append(f"  {'GPUS, ×10 %' if gpus else 'CORES, ×10 %':<{cells}}")
        if gpus:
            title.append(f"  {'GPU MEM':>7}  {'POWER':>9}")
        title.append(f"  {'CORES':>6}  {'MEMORY':>9}  {'MEM %':>5}  {'AGE':>6}")
        rows = [self._row(node, name, cells, width) for node in nodes]
        if not rows and pattern:
            rows = [Row(_cut(Text(f"No node has “{plain(pattern)}” in its name."), width))]
        return View(_cut(title, width), rows)

    def _row(self, node: NodeNow, name: int, cells: int, width: int) -> Row:
        # A sample has its own object of values.
        made_of = (node.values, _age_in_line(node), name, cells, width)
        kept = self._rows.get(node.node.name)
        if kept is not None and kept[0] is made_of[0] and kept[1:-1] == made_of[1:]:
            row: Row = kept[-1]
            return row
        row = Row(_cut(_node_line(node, name, cells), width), node.node.name)
        self._rows[node.node.name] = (*made_of, row)
        return row


def _age_in_line(node: NodeNow) -> str:
    if node.age_s is None:
        return "has sent no sample"
    if node.is_silent:
        return f"has sent nothing for {format_duration(node.age_s)}"
    return "now" if node.age_s < _NEW_S else f"{node.age_s:.0f} s"


def _cells(nodes: Sequence[NodeNow]) -> int:
    """Return the width of the column with a cell for each GPU, or for each core without GPUs."""
    gpus = max((2 * len(node.gpus) - 1 for node in nodes), default=0)
    cores = max((len(node.cores_percent) for node in nodes), default=0)
    return max(16, gpus if gpus > 0 else min(cores, _MOST_CORES))


def _node_line(node: NodeNow, name: int, cells: int) -> Text:
    line = Text(f"{plain(node.node.name)[:name]:<{name}}")
    if node.is_silent:
        return line.append(f"  {_age_in_line(node)}", "bold yellow")
    line.append("  ")
    begin = line.cell_len
    if node.gpus:
        for gpu in node.gpus:
            line.append(" " if gpu.position else "").append(*_heat(gpu))
    else:
        for core in node.cores_percent[:_MOST_CORES]:
            line.append(*_cell(core))
    line.append(" " * (begin + cells - line.cell_len))
    cores = known(node.values, "cpu_busy_percent")
    memory = known(node.values, "job_memory_bytes")
    limit = node.node.allocation.memory_limit_bytes
    share = "" if memory is None or not limit else f"{100 * memory / limit:.0f} %"
    if node.gpus:
        power_w = total_power_w(node)
        power = "–" if power_w is None else f"{power_w:,.0f} W"
        line.append(f"  {_percent(fullest_percent(node)):>7}  {power:>9}")
    line.append(f"  {_percent(cores):>6}")
    line.append(f"  {'–' if memory is None else format_bytes(memory):>9}  {share:>5}")
    return line.append(f"  {_age_in_line(node):>6}", _DIM)


def _heat(gpu: GpuNow) -> tuple[str, str]:
    """Return a cell: the tens of the busy share, on a colour; a dot if the value is missing."""
    busy = busy_percent(gpu)
    return ("·", _DIM) if busy is None else _cell(busy)


def _cell(share: float) -> tuple[str, str]:
    """Return the tens of a share in %, and the style of its colour."""
    place = min(9, max(0, int(share // 10)))
    return _CELLS[place]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} %"


def _bar(share: float | None, width: int) -> Text:
    """Return a bar; a missing value has a dash."""
    if share is None:
        return Text(f"{'–':<{width}}", _DIM)
    filled = round(max(0.0, min(1.0, share)) * width)
    place = min(9, max(0, int(share * 10)))
    bar = Text("━" * filled, _COLORS[place])
    bar.append("━" * (width - filled), "color(240)")
    return bar


# A node


def node_view(frame: Frame, name: str, width: int, order: str = "cpu", pattern: str = "") -> View:
    """Return the GPUs of a node, its cores, memory and traffic, and its processes.

    Args:
        frame: what is shown.
        name: of the node.
        width: columns of the terminal.
        order: of the processes; a key of `PROCESS_ORDERS`.
        pattern: only processes with this text in their command are shown.
    """
    node = frame.node(name)
    if node is None:
        said = Row(Text("The run has no node of this name."))
        return View(Text(f"node {name}"), [said]).cut(width)
    title = Text(f"node {plain(name)}", "bold")
    title.append(f"  {_age(node)}", _DIM)
    rows: list[Row] = []
    if node.is_silent:
        rows.append(
            Row(
                Text(
                    "The newest sample of this node is missing or too old, so no values are shown.",
                    "yellow",
                )
            )
        )
        return View(title, rows).cut(width)
    if node.gpus:
        heading = Text(
            "GPU  BUSY                    SM  TENSOR     MEMORY    POWER    TEMP", "bold"
        )
        rows.append(Row(heading))
        rows += [Row(_gpu_line(node, gpu), f"gpu {gpu.position}") for gpu in node.gpus]
        rows.append(Row(Text()))
    rows += _host_rows(node, width)
    if node.processes:
        shown = [one for one in node.processes if pattern.lower() in one.command.lower()]
        rows += [Row(Text()), *_process_rows(node, PROCESS_ORDERS[order].sorted(shown))]
        if not shown:
            rows.append(Row(Text(f"No process has “{plain(pattern)}” in its command.")))
    return View(title, rows).cut(width)


def _process_rows(node: NodeNow, processes: Sequence[ProcessNow]) -> Iterable[Row]:
    ranks = any(one.rank is not None for one in processes)
    gpus = any(one.gpu_memory_bytes for one in processes)
    title = f"{'PID':>7}  {'RANK  ' if ranks else ''}{'CPU':>6}  {'MEMORY':>9}  "
    title += f"{'GPU':>5}  {'GPU MEM':>9}  " if gpus else ""
    yield Row(Text(f"{title}{'THREADS':>7}  COMMAND", "bold"))
    for one in processes:
        rank = "–" if one.rank is None else str(one.rank)
        line = f"{one.pid:>7}  {f'{rank:>4}  ' if ranks else ''}{_percent(one.cpu_percent):>6}  "
        line += f"{format_bytes(one.resident_bytes):>9}  "
        if gpus:
            numbers, memory = _gpus_of(node, one)
            line += f"{numbers:>5}  {memory:>9}  "
        yield Row(Text(f"{line}{one.threads:>7}  {plain(one.command)}"), f"process {one.pid}")


def _gpus_of(node: NodeNow, process: ProcessNow) -> tuple[str, str]:
    """Return the numbers of the GPUs that a process uses, and its memory on them."""
    used = [str(gpu.position) for gpu in node.gpus if gpu.device.id in process.gpu_memory_bytes]
    total_bytes = process.gpu_total_bytes
    unknown = "–" if used else ""
    return ",".join(used), unknown if total_bytes is None else format_bytes(total_bytes)


def _age(node: NodeNow) -> str:
    if node.age_s is None:
        return "no sample"
    source = {"recording": ", from the recording", "file": ", received through a file"}.get(
        node.way, ""
    )
    return f"{node.age_s:.0f} s old{source}"


def _gpu_line(node: NodeNow, gpu: GpuNow) -> Text:
    busy = known(gpu.values, "gpu_busy_percent")
    line = Text(f"{gpu.position:>3}  ")
    line.append_text(_bar(None if busy is None else busy / 100, 14))
    line.append(f" {_percent(busy):>5}")
    line.append(f"  {_percent(known(gpu.values, 'gpu_sm_active_percent')):>5}")
    line.append(f"  {_percent(known(gpu.values, 'gpu_tensor_percent')):>6}")
    line.append(f"  {_short(gpu.values.get('gpu_memory_used_bytes'), 'gpu_memory_used_bytes'):>9}")
    other = power_reported_by(node, gpu)
    power = _short(gpu.values.get("gpu_power_w"), "gpu_power_w")
    line.append(f"  {power if other is None else f'with {other.position}':>7}")
    line.append(f"  {_short(gpu.values.get('gpu_temperature_c'), 'gpu_temperature_c'):>6}")
    line.append(f"  {plain(gpu.device.name)}", _DIM)
    return line


def _short(value: object, metric: str) -> str:
    if not isinstance(value, (int, float)):
        return "–"
    unit = METRICS_BY_NAME[metric].unit
    if unit == "bytes":
        return format_bytes(value)
    return f"{value:.0f} {unit}"


_HOST = (
    ("cpu_busy_percent", "Cores busy", ""),
    ("job_cpu_s", "Cores used by the program", "cores"),
    ("cpu_iowait_percent", "I/O wait", ""),
    ("job_memory_bytes", "Memory", ""),
    ("job_threads", "Threads", ""),
    ("job_read_bytes", "Read by the program", "bytes/s"),
    ("job_write_bytes", "Written by the program", "bytes/s"),
    ("netfs_read_bytes", "Read from network file systems", "bytes/s"),
    ("net_receive_bytes", "Network in", "bytes/s"),
    ("net_send_bytes", "Network out", "bytes/s"),
)


def _host_rows(node: NodeNow, width: int) -> Iterable[Row]:
    if node.cores_percent:
        room = max(8, min(64, width - 32))
        for first in range(0, len(node.cores_percent), room):
            text = Text(f"{'' if first else 'Each core, ×10 %':<32}")
            for share in node.cores_percent[first : first + room]:
                text.append(*_cell(share))
            yield Row(text)
    for metric, label, unit in _HOST:
        value = node.values.get(metric)
        if value is None:
            continue
        text = Text(f"{label:<32}")
        if isinstance(value, Missing):
            text.append(f"{value}{': ' if value.detail else ''}{plain(value.detail)}", _DIM)
        else:
            text.append(quantity(value, unit or METRICS_BY_NAME[metric].unit))
            limit = node.node.allocation.memory_limit_bytes
            if metric == "job_memory_bytes" and limit:
                text.append(f" of {format_bytes(limit)}")
        yield Row(text)


# A process


def process_view(
    frame: Frame, name: str, pid: int, watched: WatchedProcess | None, width: int
) -> View:
    """Return what a process uses, and what its main thread did in the last minute.

    Args:
        frame: what is shown.
        name: of its node.
        pid: its process id.
        watched: what the probe recorded of it; None: nothing.
        width: columns of the terminal.
    """
    node = frame.node(name)
    process = next((one for one in node.processes if one.pid == pid), None) if node else None
    title = Text(f"process {pid} on {plain(name)}", "bold")
    if process is None:
        return View(
            title, [Row(Text("This process has ended, or its node sends no samples."))]
        ).cut(width)
    rows = [
        Row(Text(f"{label:<12}{value}"))
        for label, value in (
            ("Command", plain(process.command)),
            ("Parent", str(process.parent)),
            *([] if process.rank is None else [("Rank", str(process.rank))]),
            ("CPU", f"{_percent(process.cpu_percent)} of one core"),
            ("Memory", format_bytes(process.resident_bytes)),
            ("Threads", str(process.threads)),
        )
    ]
    if node is not None and process.gpu_memory_bytes:
        numbers, memory = _gpus_of(node, process)
        rows.append(Row(Text(f"{'GPUs':<12}{numbers}, memory {memory}")))
    rows.append(Row(Text()))
    if watched is None:
        rows.append(Row(Text("The probe did not record this process.", _DIM)))
        return View(title, rows).cut(width)
    recent = watched
    if watched.at_end:
        recent = msgspec.structs.replace(watched, stacks=watched.at_end)
    spent = spent_by(recent)
    whole_s = sum(one.wall_s for one in spent)
    when = "in the last minute" if watched.at_end else "since its start"
    rows.append(Row(Text(f"Main thread {when}, % of the time", "bold")))
    doings = {one.doing.value: one.wall_s for one in spent}
    lines: dict[str, float] = {}
    for one in spent:
        for at, wall_s in one.lines:
            place = f"{at.file.rpartition('/')[2]}:{at.line}  {at.text}"
            lines[place] = lines.get(place, 0.0) + wall_s
    for sums in (doings, lines):
        ordered = sorted(sums.items(), key=lambda pair: -pair[1])[:_MOST_LINES]
        for text, wall_s in ordered:
            share = wall_s / whole_s if whole_s else 0.0
            line = Text(f"{100 * share:>4.0f} %  ")
            line.append_text(_bar(share, 10))
            line.append(f"  {plain(text)}")
            rows.append(Row(line))
        rows.append(Row(Text()))
    return View(title, rows).cut(width)


# A GPU


def gpu_view(
    frame: Frame, name: str, position: int, curves: Sequence[Curve], width: int, height: int
) -> View:
    """Return the curves of a GPU, and all its values.

    Args:
        frame: what is shown.
        name: of its node.
        position: its number among the job's GPUs on the node.
        curves: its metrics over the last minutes.
        width: columns of the terminal.
        height: lines below the title.
    """
    node = frame.node(name)
    if node is None or position >= len(node.gpus):
        said = Row(Text("The run has no such GPU."))
        return View(Text(f"GPU {position} of {name}"), [said]).cut(width)
    gpu = node.gpus[position]
    title = Text(f"GPU {position} of {plain(name)}", "bold")
    title.append(f"  {plain(gpu.device.name)}  {_age(node)}", _DIM)
    rows: list[Row] = []
    by_metric = {curve.metric: curve for curve in curves}
    for metric, top in CURVES.items():
        curve = by_metric.get(metric)
        if curve is not None and any(value is not None for value in curve.values):
            rows += _curve_rows(curve, gpu, top, width, 3 if height >= 24 else 2)
    rows.append(Row(Text()))
    missing: dict[Missing, list[str]] = {}
    for metric, value in gpu.values.items():
        about = METRICS_BY_NAME[metric]
        label = f"{about.label[:1].upper()}{about.label[1:]}"
        if metric == "gpu_energy_j":
            continue  # per second, it is the power
        if isinstance(value, Missing):
            missing.setdefault(value, []).append(label)
            continue
        text = Text(f"{label:<32}")
        text.append(quantity(value, about.unit if about.kind == "gauge" else _rate(about.unit)))
        if metric == "gpu_power_w" and gpu.device.power_limit_w:
            text.append(f" of {gpu.device.power_limit_w:.0f} W")
        if metric == "gpu_memory_used_bytes" and gpu.device.memory_bytes:
            text.append(f" of {format_bytes(gpu.device.memory_bytes)}")
        rows.append(Row(text))
    for why, labels in missing.items():
        lead = Text(f"{why}{': ' if why.detail else ''}{plain(why.detail)}: ", _DIM)
        sentence = flow(words(", ".join(labels)), width, lead, hang=2)
        rows += [Row(Text()), *map(Row, sentence)]
    return View(title, rows).cut(width)


def _rate(unit: str) -> str:
    return f"{unit or 'events'}/s"


def _curve_rows(
    curve: Curve, gpu: GpuNow, top: float | None, width: int, height: int
) -> Iterable[Row]:
    values = [value for value in curve.values if value is not None]
    limit = {
        "gpu_memory_used_bytes": gpu.device.memory_bytes,
        "gpu_power_w": gpu.device.power_limit_w,
    }.get(curve.metric)
    high = top or limit or max(values)
    metric = METRICS_BY_NAME[curve.metric]
    room = max(10, width - _LABEL)
    lines = braille(curve.values, room, height, 0.0, float(high))
    label = f"{metric.label[:1].upper()}{metric.label[1:]}"
    for number, line in enumerate(lines):
        said = (
            label[: _LABEL - 1] if number == 0
            else quantity(values[-1], metric.unit) if number == 1
            else ""
        )  # fmt: skip
        text = Text(f"{said:<{_LABEL}}", "" if number else "bold")
        text.append(line, "color(30)")
        yield Row(text)
