"""A node: its GPUs, its cores, memory and traffic, and its processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.text import Text

from teho.explain.now import known, power_reported_by
from teho.model.live import GpuNow, NodeNow
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing
from teho.show.cells import plain, quantity
from teho.show.live_text import PCI_ADDRESS, device_facts, gpus_with, p_state_text
from teho.show.top.frame import Frame
from teho.show.top.orders import PROCESS_ORDERS
from teho.show.top.processes import process_rows
from teho.show.top.rows import DIM, WARNING, Row, View, age, bar, cell, percent
from teho.units import format_bytes

__all__ = ["GPU_COLUMNS", "node_view"]

GPU_COLUMNS = (
    "gpu_busy_percent",
    "gpu_sm_active_percent",
    "gpu_tensor_percent",
    "gpu_memory_used_bytes",
    "gpu_power_w",
    "gpu_temperature_c",
    "gpu_thermal_throttle_percent",
    "gpu_power_throttle_percent",
    "gpu_sm_clock_mhz",
    "gpu_ecc_uncorrected",
    "gpu_pcie_receive_bytes_per_s",
    "gpu_pcie_send_bytes_per_s",
)
"""Metrics in the row of a GPU. The last ones are only in a wide row."""

_NONE = "–"
"""Text of a missing value."""
_SLOWING = {
    "gpu_thermal_throttle_percent": "Slowed by heat",
    "gpu_power_throttle_percent": "Slowed by the power cap",
}
_ERRORS = {"gpu_ecc_uncorrected": "Uncorrected memory errors", "gpu_xid_errors": "Xid errors"}
_HOST = (
    ("cpu_busy_percent", "Cores busy"),
    ("job_cpu_s", "Cores used by the program"),
    ("cpu_iowait_percent", "I/O wait"),
    ("job_memory_bytes", "Memory"),
    ("job_threads", "Threads"),
    ("job_read_bytes", "Read by the program"),
    ("job_write_bytes", "Written by the program"),
    ("netfs_read_bytes", "Read from network file systems"),
    ("net_receive_bytes", "Network in"),
    ("net_send_bytes", "Network out"),
)


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
        missing = Row(Text("The run has no node of this name."))
        return View(Text(f"node {name}"), [missing]).cut(width)
    title = Text(f"node {plain(name)}", "bold")
    title.append(f"  {age(node)}", DIM)
    rows: list[Row] = []
    if node.is_silent:
        rows.append(
            Row(
                Text(
                    "The newest sample of this node is missing or too old, so no values are shown.",
                    WARNING,
                )
            )
        )
        return View(title, rows).cut(width)
    if node.gpus:
        heading = Text(
            "GPU  BUSY                     SM  TENSOR     MEMORY        POWER    TEMP  P  ", "bold"
        )
        more = _fitting(node, width - heading.cell_len)
        for one in more:
            heading.append(f"  {one.title:>{one.width}}")
        rows.append(Row(heading))
        lines = [_gpu_line(node, gpu, more) for gpu in node.gpus]
        names = [f"  {plain(gpu.device.name)}" for gpu in node.gpus]
        longest = max(line.cell_len + len(name) for line, name in zip(lines, names, strict=True))
        # Names that do not fit are below the lines.
        is_wide = longest <= width
        rows += [
            Row(line.append(name if is_wide else "", DIM), f"gpu {gpu.position}")
            for gpu, line, name in zip(node.gpus, lines, names, strict=True)
        ]
        rows += _fault_rows(node, has_slowing=_SLOWED in more)
        rows += [Row(Text()), *_fact_rows(node, with_names=not is_wide), Row(Text())]
    rows += _host_rows(node, width)
    if node.processes:
        shown = [one for one in node.processes if pattern.lower() in one.command.lower()]
        processes = PROCESS_ORDERS[order].sorted(shown)
        rows += [Row(Text()), *process_rows(node, processes, frame.owner, width)]
        if not shown:
            rows.append(Row(Text(f"No process has “{plain(pattern)}” in its command.")))
    return View(title, rows).cut(width)


class _Column(NamedTuple):
    """A column that only a wide screen has."""

    title: str
    width: int
    text: Callable[[GpuNow], str]


def _fitting(node: NodeNow, room: int) -> Sequence[_Column]:
    """Return the further columns that fit and have a value, the most important ones first."""
    shown = []
    for one in _COLUMNS:
        if all(one.text(gpu) == _NONE for gpu in node.gpus):
            continue
        room -= one.width + 2
        if room < 0:
            break
        shown.append(one)
    return shown


def _slowed(gpu: GpuNow) -> str:
    """Return what slowed a GPU most, and the share of samples."""
    shares = {
        "heat": known(gpu.values, "gpu_thermal_throttle_percent"),
        "cap": known(gpu.values, "gpu_power_throttle_percent"),
    }
    found = {why: share for why, share in shares.items() if share is not None}
    if not found:
        return _NONE
    why = max(found, key=lambda one: found[one])
    return f"{why} {quantity(found[why], '%')}" if found[why] > 0 else "no"


def _count(gpu: GpuNow, metric: str) -> str:
    """Return the number of errors since the start of the recording; empty if it is not known."""
    count = gpu.errors.get(metric)
    return "" if count is None else f"{count:.0f}"


_SLOWED = _Column("SLOWED BY", 10, _slowed)
_COLUMNS = (
    _SLOWED,
    _Column("CLOCK", 9, lambda gpu: _short(gpu, "gpu_sm_clock_mhz")),
    _Column("ECC", 3, lambda gpu: _count(gpu, "gpu_ecc_uncorrected") or _NONE),
    _Column("PCIE IN", 10, lambda gpu: _short(gpu, "gpu_pcie_receive_bytes_per_s")),
    _Column("PCIE OUT", 10, lambda gpu: _short(gpu, "gpu_pcie_send_bytes_per_s")),
)


def _power(node: NodeNow, gpu: GpuNow) -> str:
    """Return the power of a GPU and its cap, or the GPU that reports the power of their card."""
    if other := power_reported_by(node, gpu):
        return f"with {other.position}"
    text, cap_w = _short(gpu, "gpu_power_w"), gpu.device.power_limit_w
    if cap_w and text.endswith(" W"):
        return f"{text.removesuffix(' W')}/{cap_w:.0f} W"
    return text


def _gpu_line(node: NodeNow, gpu: GpuNow, more: Sequence[_Column]) -> Text:
    busy = known(gpu.values, "gpu_busy_percent")
    line = Text(f"{gpu.position:>3}  ")
    line.append_text(bar(None if busy is None else busy / 100, 14))
    line.append(f" {percent(busy):>5}")
    line.append(f"  {_short(gpu, 'gpu_sm_active_percent'):>5}")
    line.append(f"  {_short(gpu, 'gpu_tensor_percent'):>6}")
    line.append(f"  {_short(gpu, 'gpu_memory_used_bytes'):>9}")
    line.append(f"  {_power(node, gpu):>11}")
    line.append(f"  {_short(gpu, 'gpu_temperature_c'):>6}")
    p_state = p_state_text(gpu.p_state)
    line.append(f"  {_NONE if isinstance(p_state, Missing) else p_state:<3}")
    for one in more:
        line.append(f"  {one.text(gpu):>{one.width}}")
    return line


def _fault_rows(node: NodeNow, *, has_slowing: bool) -> Iterable[Row]:
    """Yield what is wrong with GPUs of a node.

    Args:
        node: the node.
        has_slowing: whether the lines of the GPUs say what slows them.
    """
    texts: dict[str, dict[str, str]] = {}
    for gpu in node.gpus:
        for metric, label in _SLOWING.items():
            share = known(gpu.values, metric)
            if share and not has_slowing:
                texts.setdefault(label, {})[gpu.device.id] = quantity(share, "%")
        for metric, label in _ERRORS.items():
            if (count := _count(gpu, metric)) not in {"", "0"}:
                texts.setdefault(label, {})[gpu.device.id] = count
    for label, by_gpu in texts.items():
        having = [gpu for gpu in node.gpus if gpu.device.id in by_gpu]
        yield Row(Text(f"{label:<32}{gpus_with(having, by_gpu, is_part=True)}", WARNING))


def _fact_rows(node: NodeNow, *, with_names: bool) -> Iterable[Row]:
    """Yield the facts of the node's GPUs. Facts that are missing for one reason share a line."""
    facts = {gpu.device.id: device_facts(gpu.device) for gpu in node.gpus}
    if with_names:
        facts = {
            gpu.device.id: {"Model": gpu.device.name, **facts[gpu.device.id]} for gpu in node.gpus
        }
    labels: dict[str, list[str]] = {}
    for label in dict.fromkeys(label for own in facts.values() for label in own):
        if label == PCI_ADDRESS:
            continue
        having = [gpu for gpu in node.gpus if label in facts[gpu.device.id]]
        texts = {gpu.device.id: facts[gpu.device.id][label] for gpu in having}
        text = gpus_with(having, texts, is_part=len(having) < len(node.gpus))
        same = labels.setdefault(plain(text), [])
        same.append(label.lower() if same else label)
    for text, names in labels.items():
        yield Row(Text(f"{', '.join(names):<32}{text}"))


def _short(gpu: GpuNow, metric: str) -> str:
    value = known(gpu.values, metric)
    return _NONE if value is None else quantity(value, METRICS_BY_NAME[metric].shown_unit)


def _host_rows(node: NodeNow, width: int) -> Iterable[Row]:
    if node.cores_percent:
        room = max(8, min(64, width - 32))
        for first in range(0, len(node.cores_percent), room):
            text = Text(f"{'' if first else 'Each core, ×10 %':<32}")
            for share in node.cores_percent[first : first + room]:
                text.append(*cell(share))
            yield Row(text)
    for metric, label in _HOST:
        value = node.values.get(metric)
        if value is None:
            continue
        text = Text(f"{label:<32}")
        if isinstance(value, Missing):
            text.append(f"{value}{': ' if value.detail else ''}{plain(value.detail)}", DIM)
        else:
            text.append(quantity(value, METRICS_BY_NAME[metric].shown_unit))
            limit = node.node.allocation.memory_limit_bytes
            if metric == "job_memory_bytes" and limit:
                text.append(f" of {format_bytes(limit)}")
        yield Row(text)
