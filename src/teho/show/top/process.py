"""A process: what it uses, where its main thread is, and what this thread did."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from rich.text import Text

from teho.explain.lines import own_lines
from teho.explain.where import doing_of, spent_by
from teho.model.live import NodeNow, ProcessNow
from teho.model.stack import Frame as CodeFrame
from teho.model.stack import Seen
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
_LABEL = 12
"""Width of the labels."""
_SHORT_S = 2.0
"""A thread that has been in its line for less time moves from line to line."""


def process_view(
    frame: Frame, name: str, pid: int, watched: WatchedProcess | None, width: int
) -> View:
    """Return what a process uses, where its main thread is, and what it did at last.

    The title of the shares has the true time. In a long run, this time is longer than in a short
    run: the samples are added up for longer.

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
    if node is None or process is None:
        return View(
            title, [Row(Text("This process has ended, or its node sends no samples."))]
        ).cut(width)
    rows = [*_about_rows(node, process, frame.owner), *_line_rows(node, process, watched)]
    rows.append(Row(Text()))
    if watched is None:
        why = "The probe did not record this process."
        if process.line is not None:
            why = "The times of its lines follow with the next report."
        rows.append(Row(Text(why, DIM)))
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


def _about_rows(node: NodeNow, process: ProcessNow, owner: str) -> Iterable[Row]:
    """Yield what a process is, and what it uses."""
    about = {
        "Command": plain(process.command),
        "Parent": str(process.parent),
        "User": user_text(process, owner),
        **({} if process.rank is None else {"Rank": str(process.rank)}),
        "CPU": f"{percent(process.cpu_percent)} of one core",
        "Memory": format_bytes(process.resident_bytes),
        "Threads": str(process.threads),
    }
    if process.gpu_memory_bytes:
        numbers, memory = gpus_of(node, process)
        about["GPUs"] = f"{numbers}, memory {memory}"
        if types := _types(node, process):
            about["Type"] = types
    for label, text in about.items():
        yield Row(Text(f"{label:<{_LABEL}}{text}"))


def _line_rows(node: NodeNow, process: ProcessNow, watched: WatchedProcess | None) -> Iterable[Row]:
    """Yield where the main thread of a process is, what it does there, and for how long."""
    label = "Last line" if node.has_ended else "Line now"
    line = process.line
    if line is None:
        if watched is not None and any(one.line for one in node.processes):
            why = "not sent: the recorder sends the lines of the first Python processes of a node"
            yield Row(Text(f"{label:<{_LABEL}}{why}", DIM))
        return
    if not line.frames:
        return
    seen = Seen(frames=line.frames, state=line.state, samples=1.0, wall_s=0.0)
    has_device = bool(process.gpu_memory_bytes) if watched is None else watched.may_use_device
    has_ranks = process.rank is not None if watched is None else watched.is_one_of_several
    does = doing_of(seen, has_device=has_device, has_ranks=has_ranks).value
    if len(line.frames) > 1:
        call = line.frames[0]
        does += f", in {call.function} ({call.file.rpartition('/')[2]})"
    if line.stayed_s >= _SHORT_S:
        does += f", in this line for {format_duration(round(line.stayed_s))}"
    yield Row(Text(f"{label:<{_LABEL}}{plain(_place(line.frames[-1]))}"))
    yield Row(Text(f"{'':<{_LABEL}}{plain(does)}"))


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
