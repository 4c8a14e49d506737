"""The summary of traces: steps, devices, kernels and operators."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from teho.errors import InputError
from teho.model.trace import (
    DeviceUse,
    Kernel,
    Profiled,
    Share,
    Step,
    Trace,
    mean_parts,
)
from teho.profile.categories import category_of, uses_tensor_cores
from teho.profile.device import Timeline, data_waits, shortest_delay, timeline
from teho.profile.judge import judged
from teho.profile.launches import Launch, launches, operators
from teho.profile.load import Loaded, load
from teho.profile.spans import Span, clipped, length, subtracted
from teho.profile.xspace import is_xspace, load_xspace

__all__ = ["read_trace", "read_traces"]

_NS = 1e9
_STEP = re.compile(r"ProfilerStep#(\d+)")
_GRAPH_LAUNCHES = ("cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch")
_Window = tuple[int | None, int, int]
"""Number of a step, its start and its end."""


def read_traces(paths: Sequence[Path], *, by_teho: bool = False) -> Profiled:
    """Read and summarise the traces of one program, one for each rank.

    Args:
        paths: the files.
        by_teho: whether `teho profile` recorded them.

    Raises:
        InputError: a file cannot be opened, or is not a trace.
        DamagedError: a file is truncated or damaged.
    """
    traces = sorted(map(read_trace, paths), key=lambda one: (one.rank or 0, one.path))
    return judged(tuple(traces), by_teho=by_teho)


def read_trace(path: Path) -> Trace:
    """Read and summarise one trace.

    Raises:
        InputError: the file cannot be opened, or is not a trace.
        DamagedError: the file is truncated or damaged.
    """
    loaded = load_xspace(path) if is_xspace(path) else load(path)
    if not loaded.has_times:
        raise InputError(
            f"{path} has no events of PyTorch's profiler"
            + (f", but {loaded.events} others" if loaded.events else ""),
            "a trace that `torch.profiler` wrote with `export_chrome_trace` or "
            "`tensorboard_trace_handler`",
        )
    windows = _windows(loaded)
    launched = launches(loaded)
    whole = (windows[0][1], windows[-1][2])
    delay = shortest_delay(loaded, launched)
    lines = {
        device: timeline(loaded, work, launched, whole, delay)
        for device, work in sorted(loaded.work.items())
    }
    has_steps = windows[0][0] is not None
    distributed = loaded.values.get("distributedInfo")
    waits = data_waits(loaded)
    count = len(windows)
    return Trace(
        path=str(path),
        rank=_number(distributed, "rank"),
        ranks=_number(distributed, "world_size"),
        step_count=count if has_steps else 0,
        step_s=sum(end - start for _, start, end in windows) / count / _NS,
        data_s=sum(length(clipped(waits, start, end)) for _, start, end in windows) / count / _NS,
        devices=tuple(_device(loaded, number, line, windows) for number, line in lines.items()),
        kernels=_kernels(loaded, launched, lines),
        operators=tuple(operators(loaded)),
        graph_launches=sum(
            loaded.names[name].startswith(_GRAPH_LAUNCHES) for name in loaded.calls.names
        ),
        has_stacks=bool(loaded.frames),
        unread=loaded.unread,
    )


def _windows(loaded: Loaded) -> list[_Window]:
    """Return the steps by start; without marks of steps, one window with the whole trace.

    If steps overlap, as with two profilers, only the first of them counts. If `teho profile`
    recorded the trace, a last step that was cut off does not count.
    """
    whole = loaded.values.get("teho_steps")
    last = whole[1] if isinstance(whole, list) and len(whole) == 2 else None
    found: list[_Window] = []
    for mark in sorted(loaded.marks, key=lambda mark: (mark.start, -mark.end)):
        match = _STEP.fullmatch(mark.name)
        if match and last is not None and int(match[1]) > last:
            continue
        if match and mark.start < mark.end and (not found or mark.start >= found[-1][2]):
            found.append((int(match[1]), mark.start, mark.end))
    return found or [(None, *loaded.window())]


def _device(loaded: Loaded, device: int, line: Timeline, windows: Sequence[_Window]) -> DeviceUse:
    first, last = windows[0][1], windows[-1][2]
    steps = tuple(
        Step(number=number, start_s=(start - first) / _NS, parts=line.parts(start, end))
        for number, start, end in windows
    )
    return DeviceUse(
        device=device,
        name=_gpu_name(loaded.values.get("deviceProperties"), device),
        steps=steps,
        mean=mean_parts([step.parts for step in steps]),
        launches=line.launched,
        launch_bound=sum(line.are_bound),
        after_s=length(subtracted(line.busy, _until(line.busy, last))) / _NS,
    )


def _until(spans: list[Span], end: int) -> list[Span]:
    return clipped(spans, spans[0][0], end) if spans else []


def _kernels(
    loaded: Loaded, launched: dict[int, Launch], lines: dict[int, Timeline]
) -> tuple[Kernel, ...]:
    """Return all kernels and copies by total time."""
    groups: dict[tuple[str, str], _Group] = {}
    for device, line in lines.items():
        work = loaded.work[device]
        for place, is_bound in enumerate(line.are_bound):
            launch = launched.get(work.correlations[place])
            name = loaded.names[work.names[place]]
            operator = launch.operator if launch else ""
            if work.are_copies[place]:
                category = "copy"
            else:
                category = category_of(name, operator)
                if launch and launch.is_optimizer and category != "collective":
                    category = "optimizer"
            group = groups.setdefault((name, category), _Group())
            group.add(work.ends[place] - work.starts[place], launch, is_bound=is_bound)
    made = [group.kernel(name, category) for (name, category), group in groups.items()]
    return tuple(sorted(made, key=lambda one: (-one.total_s, one.name)))


class _Group:
    """The executions of one kernel."""

    def __init__(self) -> None:
        self.count = self.total = self.bound = 0
        self.operators: defaultdict[str, int] = defaultdict(int)
        self.lines: defaultdict[str, int] = defaultdict(int)

    def add(self, duration: int, launch: Launch | None, *, is_bound: bool) -> None:
        self.count += 1
        self.total += duration
        self.bound += is_bound
        if launch and launch.operator:
            self.operators[launch.operator] += duration
        if launch and launch.line:
            self.lines[launch.line] += duration

    def kernel(self, name: str, category: Any) -> Kernel:
        return Kernel(
            name=name,
            category=category,
            count=self.count,
            total_s=self.total / _NS,
            tensor_cores=uses_tensor_cores(name, category),
            launch_bound=self.bound,
            operators=_shares(self.operators),
            lines=_shares(self.lines),
        )


def _shares(totals: dict[str, int]) -> tuple[Share, ...]:
    ordered = sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(Share(name, total / _NS) for name, total in ordered)


def _number(values: Any, key: str) -> int | None:
    value = values.get(key) if isinstance(values, dict) else None
    return value if isinstance(value, int) and value >= 0 else None


def _gpu_name(properties: Any, device: int) -> str:
    """Return the model of a GPU from `deviceProperties`; empty if it is not there."""
    for one in properties if isinstance(properties, list) else ():
        if isinstance(one, dict) and one.get("id") == device:
            return str(one.get("name", ""))
    return ""
