"""Rows of processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from teho.model.live import NodeNow, ProcessNow
from teho.show.cells import plain
from teho.show.top.rows import Row, percent
from teho.units import format_bytes

__all__ = ["gpus_of", "process_rows"]


def process_rows(node: NodeNow, processes: Sequence[ProcessNow]) -> Iterable[Row]:
    """Yield a heading, and a row for each of some processes of a node."""
    ranks = any(one.rank is not None for one in processes)
    gpus = any(one.gpu_memory_bytes for one in processes)
    title = f"{'PID':>7}  {'RANK  ' if ranks else ''}{'CPU':>6}  {'MEMORY':>9}  "
    title += f"{'GPU':>5}  {'GPU MEM':>9}  " if gpus else ""
    yield Row(Text(f"{title}{'THREADS':>7}  COMMAND", "bold"))
    for one in processes:
        rank = "–" if one.rank is None else str(one.rank)
        line = f"{one.pid:>7}  {f'{rank:>4}  ' if ranks else ''}{percent(one.cpu_percent):>6}  "
        line += f"{format_bytes(one.resident_bytes):>9}  "
        if gpus:
            numbers, memory = gpus_of(node, one)
            line += f"{numbers:>5}  {memory:>9}  "
        yield Row(Text(f"{line}{one.threads:>7}  {plain(one.command)}"), f"process {one.pid}")


def gpus_of(node: NodeNow, process: ProcessNow) -> tuple[str, str]:
    """Return the numbers of the GPUs that a process uses, and its memory on them."""
    used = [str(gpu.position) for gpu in node.gpus if gpu.device.id in process.gpu_memory_bytes]
    total_bytes = process.gpu_total_bytes
    unknown = "–" if used else ""
    return ",".join(used), unknown if total_bytes is None else format_bytes(total_bytes)
