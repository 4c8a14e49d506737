"""A process: what it uses, and what its main thread did."""

from __future__ import annotations

import msgspec
from rich.text import Text

from teho.explain.lines import own_lines
from teho.explain.where import spent_by
from teho.model.live import NodeNow, ProcessNow
from teho.model.stack import Frame as CodeFrame
from teho.model.watched import WatchedProcess
from teho.show.build.report.time import NOT_SAMPLED, is_partly_sampled
from teho.show.cells import plain
from teho.show.live_text import gpus_with
from teho.show.top.frame import Frame
from teho.show.top.processes import gpus_of, user_text
from teho.show.top.rows import DIM, Row, View, bar, percent
from teho.units import format_bytes, format_duration

__all__ = ["process_view"]

_OLD_S = 20.0
"""Samples are at most this old in a short run: their age is then not shown."""
_MOST_LINES = 8
"""Activities and lines of a program that are shown."""


def process_view(
    frame: Frame, name: str, pid: int, watched: WatchedProcess | None, width: int
) -> View:
    """Return what a process uses, and what its main thread did at last, with the true time.

    In a long run, this time is longer than in a short run: the samples are added up for longer.

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
            ("User", user_text(process, frame.owner)),
            *([] if process.rank is None else [("Rank", str(process.rank))]),
            ("CPU", f"{percent(process.cpu_percent)} of one core"),
            ("Memory", format_bytes(process.resident_bytes)),
            ("Threads", str(process.threads)),
        )
    ]
    if node is not None and process.gpu_memory_bytes:
        numbers, memory = gpus_of(node, process)
        rows.append(Row(Text(f"{'GPUs':<12}{numbers}, memory {memory}")))
        if types := _types(node, process):
            rows.append(Row(Text(f"{'Type':<12}{types}")))
    rows.append(Row(Text()))
    if watched is None:
        rows.append(Row(Text("The probe did not record this process.", DIM)))
        return View(title, rows).cut(width)
    recent = watched
    if watched.at_end:
        recent = msgspec.structs.replace(watched, stacks=watched.at_end, set_up=(), parts=())
    # The report has shares of the whole run time.
    whole_s = recent.seen_s if watched.at_end else watched.wall_s
    when = _when(watched) if watched.at_end else "since its start"
    rows.append(Row(Text(f"Main thread {when}, % of the time", "bold")))
    doings = [(one.doing.value, one.wall_s) for one in spent_by(recent)]
    if not watched.at_end and is_partly_sampled(watched):
        doings.append((NOT_SAMPLED, watched.not_sampled_s))
    lines = [(_place(one.frame), one.own_s) for one in own_lines(recent) if one.own_s > 0]
    for parts in (doings, lines):
        for text, wall_s in parts[:_MOST_LINES]:
            share = wall_s / whole_s if whole_s else 0.0
            line = Text(f"{100 * share:>4.0f} %  ")
            line.append_text(bar(share, 10))
            line.append(f"  {plain(text)}")
            rows.append(Row(line))
        rows.append(Row(Text()))
    return View(title, rows).cut(width)


def _types(node: NodeNow, process: ProcessNow) -> str:
    """Return how the process uses its GPUs, such as `MPS and compute`; empty if not known."""
    texts = {
        device: " and ".join(sorted(types)) for device, types in process.gpu_types.items() if types
    }
    return gpus_with([gpu for gpu in node.gpus if gpu.device.id in texts], texts) if texts else ""


def _when(watched: WatchedProcess) -> str:
    """Return of which time the last samples of a process are: how long it is, and how old."""
    length = format_duration(round(watched.at_end_s))
    # The probe writes more often than the sampler does in a long run.
    age_s = watched.until_s - watched.at_end_until_s
    if age_s < _OLD_S:
        return f"in the last {length}"
    return f"in {length}, until about {format_duration(round(age_s))} ago"


def _place(frame: CodeFrame) -> str:
    return f"{frame.short_place}  {frame.short_text}"
