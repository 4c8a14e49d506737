"""Rows of processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from teho.explain.wording import short_numbers
from teho.model.live import GpuNow, NodeNow, ProcessNow
from teho.model.missing import Missing
from teho.show.cells import plain
from teho.show.live_text import type_letters, user_of
from teho.show.top.rows import Row, percent
from teho.units import format_bytes

__all__ = ["gpu_process_rows", "gpus_of", "process_rows", "user_text"]

_WIDE = 109
"""Columns from which the processes of a node have their user and type."""
_LONGEST_USER = 12


def process_rows(
    node: NodeNow, processes: Sequence[ProcessNow], own: str, width: int
) -> Iterable[Row]:
    """Yield a heading, and a row for each of some processes of a node.

    Args:
        node: the node.
        processes: those that are shown.
        own: name of the user who owns the recording.
        width: columns of the terminal.
    """
    ranks = any(one.rank is not None for one in processes)
    gpus = any(one.gpu_memory_bytes for one in processes)
    is_wide = width >= _WIDE
    # The processes of other users are an exception that a narrow screen shows too.
    users = _Users(processes, own) if is_wide or _has_others(processes) else None
    title = f"{'PID':>7}  {users.heading if users else ''}"
    title += f"{'RANK  ' if ranks else ''}{'CPU':>6}  {'MEMORY':>9}  "
    title += f"{'TYPE   ' if is_wide else ''}{'GPU':>5}  {'GPU MEM':>9}  " if gpus else ""
    yield Row(Text(f"{title}{'THREADS':>7}  COMMAND", "bold"))
    for one in processes:
        rank = "–" if one.rank is None else str(one.rank)
        line = f"{one.pid:>7}  {users.cell(one) if users else ''}"
        line += f"{f'{rank:>4}  ' if ranks else ''}{percent(one.cpu_percent):>6}  "
        line += f"{format_bytes(one.resident_bytes):>9}  "
        if gpus:
            numbers, memory = gpus_of(node, one)
            kinds = {kind for types in one.gpu_types.values() for kind in types}
            line += f"{type_letters(kinds):<5}  " if is_wide else ""
            line += f"{numbers:>5}  {memory:>9}  "
        yield Row(Text(f"{line}{one.threads:>7}  {plain(one.command)}"), f"process {one.pid}")


def gpu_process_rows(gpu: GpuNow, processes: Sequence[ProcessNow], own: str) -> Iterable[Row]:
    """Yield a heading, and a row for each of some processes that use a GPU.

    Args:
        gpu: the GPU.
        processes: those that are shown.
        own: name of the user who owns the recording.
    """
    ranks = any(one.rank is not None for one in processes)
    users = _Users(processes, own)
    title = f"{'PID':>7}  {users.heading}{'TYPE ':<7}{'GPU MEM':>9}  {'CPU':>6}  "
    yield Row(Text(f"{title}{'RANK  ' if ranks else ''}COMMAND", "bold"))
    for one in processes:
        rank = "–" if one.rank is None else str(one.rank)
        memory = one.gpu_memory_bytes.get(gpu.device.id)
        kinds = type_letters(one.gpu_types.get(gpu.device.id, ())) or "–"
        line = f"{one.pid:>7}  {users.cell(one)}{kinds:<5}  "
        line += f"{'–' if memory is None else format_bytes(memory):>9}  "
        line += f"{percent(one.cpu_percent):>6}  {f'{rank:>4}  ' if ranks else ''}"
        yield Row(Text(f"{line}{plain(one.command)}"), f"process {one.pid}")


class _Users:
    """The column with the users of processes."""

    def __init__(self, processes: Sequence[ProcessNow], own: str) -> None:
        self._own = own
        longest = max((len(user_text(one, own)) for one in processes), default=0)
        self._width = max(4, min(longest, _LONGEST_USER))
        self.heading = f"{'USER':<{self._width}}  "

    def cell(self, process: ProcessNow) -> str:
        """Return the cell of a process."""
        name = user_text(process, self._own)
        if len(name) > self._width:
            name = f"{name[: self._width - 1]}…"
        return f"{name:<{self._width}}  "


def user_text(process: ProcessNow, own: str) -> str:
    """Return the user of a process; a dash if it is not known."""
    user = user_of(process, own)
    return "–" if isinstance(user, Missing) else plain(user)


def _has_others(processes: Sequence[ProcessNow]) -> bool:
    return any(one.owner not in {"own", None} for one in processes)


def gpus_of(node: NodeNow, process: ProcessNow) -> tuple[str, str]:
    """Return the numbers of the GPUs that a process uses, and its memory on them."""
    used = [gpu.position for gpu in node.gpus if gpu.device.id in process.gpu_memory_bytes]
    total_bytes = process.gpu_total_bytes
    unknown = "–" if used else ""
    return short_numbers(used), unknown if total_bytes is None else format_bytes(total_bytes)
