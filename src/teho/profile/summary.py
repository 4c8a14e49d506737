"""The summary of traces: steps, devices, kernels and operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from teho.errors import InputError
from teho.model.trace import (
    Category,
    DeviceUse,
    Kernel,
    Profiled,
    Share,
    Step,
    Trace,
    mean_parts,
)
from teho.patterns import lazy_pattern
from teho.process.parallel_map import parallel_map
from teho.profile.categories import category_of, uses_tensor_cores
from teho.profile.causes import causes_of
from teho.profile.causes_find import Traced
from teho.profile.device import Timeline, cpu_of, shortest_delay, timeline
from teho.profile.efficiency import efficiencies_of
from teho.profile.judge import judged, shown_trace
from teho.profile.launches import Launch, Lines, launches, operators
from teho.profile.load import Loaded, load
from teho.profile.memory import memory_of, moments_of, peaks_of
from teho.profile.phases import Phases
from teho.profile.picture import picture_of
from teho.profile.ranks import Collectives, Windows, collectives_of, rank_waits
from teho.profile.spans import Span, clipped, length, subtracted
from teho.profile.tracks import Work
from teho.profile.xspace import is_xspace, load_xspace

__all__ = ["read_trace", "read_traces", "trace_files"]

_NS = 1e9
_STEP = lazy_pattern(r"ProfilerStep#(\d+)")
_TRACE_FILE = lazy_pattern(r"(\.json|\.xplane\.pb)(\.gz)?$")
_TIME = lazy_pattern(r"\.\d{10,}\.")
"""Time in the name of a file."""
_GRAPH_LAUNCHES = ("cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch")


def read_traces(paths: Sequence[Path], *, by_teho: bool = False) -> Profiled:
    """Read and summarise the traces of one program, one for each rank.

    Args:
        paths: the files.
        by_teho: whether `teho profile` recorded them.

    Raises:
        InputError: a file cannot be opened, or is not a trace.
        DamagedError: a file is truncated or damaged.
    """
    read = sorted(
        parallel_map(_read, list(paths)), key=lambda one: (one.trace.rank or 0, one.trace.path)
    )
    waits = rank_waits([one.collectives for one in read])
    shown = shown_trace([one.trace for one in read])
    traces = tuple(
        msgspec.structs.replace(
            one.trace, waits=wait, picture=one.trace.picture if one.trace is shown else None
        )
        for one, wait in zip(read, waits, strict=True)
    )
    return judged(traces, by_teho=by_teho)


def read_trace(path: Path) -> Trace:
    """Read and summarise one trace.

    Raises:
        InputError: the file cannot be opened, or is not a trace.
        DamagedError: the file is truncated or damaged.
    """
    return _read(path).trace


def trace_files(folder: Path) -> list[Path]:
    """Return the traces in a folder: of each rank the newest one.

    `tensorboard_trace_handler` writes a file `WORKER.TIME.pt.trace.json` for each time that it is
    called.

    Raises:
        InputError: the folder has no trace, or cannot be read.
    """
    try:
        found = sorted(path for path in folder.iterdir() if _TRACE_FILE.search(path.name))
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}", "a folder that can be read") from error
    named = [path for path in found if ".pt.trace." in path.name] or found
    if not named:
        raise InputError(
            f"{folder} has no traces", "files that end with .json, .json.gz or .xplane.pb"
        )
    return list({_TIME.sub(".", path.name): path for path in named}.values())


class _Read(NamedTuple):
    """A trace, and what the comparison of ranks needs of it."""

    trace: Trace
    collectives: Collectives


def _read(path: Path) -> _Read:
    loaded = load_xspace(path) if is_xspace(path) else load(path)
    if not loaded.has_times:
        raise InputError(
            f"{path} has no events of PyTorch's profiler"
            + (f", but {loaded.events} others" if loaded.events else ""),
            "a trace that `torch.profiler` wrote with `export_chrome_trace` or "
            "`tensorboard_trace_handler`",
        )
    windows = _windows(loaded)
    peaks = peaks_of(loaded, windows)
    phases = Phases(loaded) if peaks else None
    user_lines = Lines(loaded, moments_of(loaded, peaks))
    cpu = cpu_of(loaded)
    launched = launches(loaded, user_lines, cpu.optimizers)
    whole = (windows[0][1], windows[-1][2])
    delay = shortest_delay(loaded, launched)
    lines = {
        device: timeline(loaded, work, cpu, launched, whole, delay)
        for device, work in sorted(loaded.work.items())
    }
    has_steps = windows[0][0] is not None
    distributed = loaded.values.get("distributedInfo")
    count = len(windows)
    categories = {
        device: _categories(loaded, work, launched) for device, work in loaded.work.items()
    }
    compiling = [length(clipped(cpu.compiled.spans, *window)) for _, *window in windows]
    traced = Traced(
        loaded, cpu, launched, lines, categories, windows, user_lines, is_xla=is_xspace(path)
    )
    trace = Trace(
        path=str(path),
        rank=_number(distributed, "rank"),
        ranks=_number(distributed, "world_size"),
        step_count=count if has_steps else 0,
        step_s=sum(end - start for _, start, end in windows) / count / _NS,
        data_s=sum(length(clipped(cpu.data, *window)) for _, *window in windows) / count / _NS,
        compile_s=sum(compiling) / count / _NS,
        compile_steps=sum(time > 0 for time in compiling) if has_steps else 0,
        compiled=_shares(cpu.compiled.functions),
        devices=tuple(_device(loaded, number, line, windows) for number, line in lines.items()),
        kernels=_kernels(loaded, launched, lines, categories),
        operators=tuple(operators(loaded)),
        graph_launches=sum(
            loaded.names[name].startswith(_GRAPH_LAUNCHES) for name in loaded.calls.names
        ),
        has_stacks=bool(loaded.frames),
        unread=loaded.unread,
        memory=memory_of(loaded, peaks, phases, user_lines, windows) if phases else (),
        efficiencies=efficiencies_of(
            loaded,
            launched,
            categories,
            _gpu_name(loaded.values.get("deviceProperties"), min(lines)),
        )
        if lines
        else (),
        causes=causes_of(traced),
        picture=picture_of(loaded, cpu, launched, lines, categories, windows, peaks, phases),
    )
    return _Read(trace, collectives_of(loaded, launched, lines, windows))


def _windows(loaded: Loaded) -> Windows:
    """Return the steps by start; without marks of steps, one window with the whole trace.

    If steps overlap, as with two profilers, only the first of them counts. If `teho profile`
    recorded the trace, a last step that was cut off does not count.
    """
    whole = loaded.values.get("teho_steps")
    last = whole[1] if isinstance(whole, list) and len(whole) == 2 else None
    found: list[tuple[int | None, int, int]] = []
    for mark in sorted(loaded.marks, key=lambda mark: (mark.start, -mark.end)):
        match = _STEP.fullmatch(mark.name)
        if match and last is not None and int(match[1]) > last:
            continue
        if match and mark.start < mark.end and (not found or mark.start >= found[-1][2]):
            found.append((int(match[1]), mark.start, mark.end))
    return found or [(None, *loaded.window())]


def _device(loaded: Loaded, device: int, line: Timeline, windows: Windows) -> DeviceUse:
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


def _categories(loaded: Loaded, work: Work, launched: dict[int, Launch]) -> list[Category]:
    """Return the category of each kernel and each copy of a device."""
    found: list[Category] = []
    for name, number, is_copy in zip(work.names, work.correlations, work.are_copies, strict=True):
        launch = launched.get(number)
        category: Category = "copy"
        if not is_copy:
            category = category_of(loaded.names[name], launch.operator if launch else "")
            if launch and launch.is_optimizer and category != "collective":
                category = "optimizer"
        found.append(category)
    return found


def _kernels(
    loaded: Loaded,
    launched: dict[int, Launch],
    lines: dict[int, Timeline],
    categories: dict[int, list[Category]],
) -> tuple[Kernel, ...]:
    """Return all kernels and copies by total time."""
    groups: dict[tuple[str, Category], _Group] = {}
    for device, line in lines.items():
        work = loaded.work[device]
        for place, is_bound in enumerate(line.are_bound):
            launch = launched.get(work.correlations[place])
            name = loaded.names[work.names[place]]
            category = categories[device][place]
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

    def kernel(self, name: str, category: Category) -> Kernel:
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
