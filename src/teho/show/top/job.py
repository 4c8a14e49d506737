"""A job: one line for each node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from teho.explain.now import busy_percent, fullest_percent, known, total_power_w
from teho.model.live import NOT_RECORDED, GpuNow, NodeNow
from teho.show.cells import plain, quantity
from teho.show.top.rows import DIM, NEW_S, WARNING, Row, View, cell, cut, percent
from teho.units import format_bytes, format_duration

__all__ = ["JobLines"]

_MOST_CORES = 64
"""Largest number of cores that the line of a node shows."""
_MOST_NAME = 24
_SHARE, _AGE = "  MEM %", "     AGE"
"""Headings of the last columns."""


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
        longest = max((len(_label(node, _MOST_NAME)) for node in nodes), default=4)
        name = max(4, longest)
        gpus = any(node.gpus for node in nodes)
        title = Text(f"{'NODE':<{name}}", "bold")
        cells = _cells(nodes)
        title.append(f"  {'GPUS, ×10 %' if gpus else 'CORES, ×10 %':<{cells}}")
        if gpus:
            title.append(f"  {'GPU MEM':>7}  {'POWER':>9}")
        title.append(f"  {'CORES':>6}  {'MEMORY':>9}")
        # If a line is too long, it has no share of the memory: the age is more important.
        has_share = title.cell_len + len(_SHARE + _AGE) <= width
        title.append(f"{_SHARE if has_share else ''}{_AGE}")
        rows = [self._row(node, name, cells, width, has_share=has_share) for node in nodes]
        if not rows and pattern:
            rows = [Row(cut(Text(f"No node has “{plain(pattern)}” in its name."), width))]
        return View(cut(title, width), rows)

    def _row(self, node: NodeNow, name: int, cells: int, width: int, *, has_share: bool) -> Row:
        # A sample has its own object of values.
        made_of = (node.values, _age_in_line(node), name, cells, width, has_share)
        kept = self._rows.get(node.node.name)
        if kept is not None and kept[0] is made_of[0] and kept[1:-1] == made_of[1:]:
            row: Row = kept[-1]
            return row
        row = Row(cut(_node_line(node, name, cells, has_share=has_share), width), node.node.name)
        self._rows[node.node.name] = (*made_of, row)
        return row


def _label(node: NodeNow, width: int) -> str:
    """Return the name of a node, with a mark if one of its GPUs has a fault."""
    name = plain(node.node.name)
    if node.is_silent or not node.has_fault:
        return name[:width]
    return f"{name[: width - 1]}!"


def _age_in_line(node: NodeNow) -> str:
    if node.age_s is None:
        return "has sent no sample" if node.is_recorded else NOT_RECORDED
    if node.is_silent and node.has_ended:
        return f"sent its last sample {format_duration(node.age_s)} before the end of the run"
    if node.is_silent:
        return f"has sent nothing for {format_duration(node.age_s)}"
    if node.age_s < NEW_S:
        return "at end" if node.has_ended else "now"
    return f"{node.age_s:.0f} s"


def _cells(nodes: Sequence[NodeNow]) -> int:
    """Return the width of the column with a cell for each GPU, or for each core without GPUs."""
    gpus = max((2 * len(node.gpus) - 1 for node in nodes), default=0)
    cores = max((len(node.cores_percent) for node in nodes), default=0)
    return max(16, gpus if gpus > 0 else min(cores, _MOST_CORES))


def _node_line(node: NodeNow, name: int, cells: int, *, has_share: bool) -> Text:
    line = Text(f"{_label(node, name):<{name}}")
    if node.is_silent:
        return line.append(f"  {_age_in_line(node)}", WARNING)
    line.append("  ")
    begin = line.cell_len
    if node.gpus:
        for gpu in node.gpus:
            line.append(" " if gpu.position else "").append(*_heat(gpu))
    else:
        for core in node.cores_percent[:_MOST_CORES]:
            line.append(*cell(core))
    line.append(" " * (begin + cells - line.cell_len))
    cores = known(node.values, "cpu_busy_percent")
    memory = known(node.values, "job_memory_bytes")
    limit = node.node.allocation.memory_limit_bytes
    share = "" if memory is None or not limit else quantity(100 * memory / limit, "%")
    if node.gpus:
        power_w = total_power_w(node)
        power = "–" if power_w is None else quantity(power_w, "W")
        line.append(f"  {percent(fullest_percent(node)):>7}  {power:>9}")
    line.append(f"  {percent(cores):>6}")
    line.append(f"  {'–' if memory is None else format_bytes(memory):>9}")
    line.append(f"{share:>{len(_SHARE)}}" if has_share else "")
    return line.append(f"  {_age_in_line(node):>6}", DIM)


def _heat(gpu: GpuNow) -> tuple[str, str]:
    """Return a cell: the tens of the busy share, on a colour; a dot if the value is missing."""
    busy = busy_percent(gpu)
    return ("·", DIM) if busy is None else cell(busy)
