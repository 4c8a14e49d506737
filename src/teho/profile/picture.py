"""One step as a picture: what the CPU and a device did in each of equal parts of its time."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from teho.model.trace import Band, Category, Lane, Pause, StepPicture
from teho.profile.device import Cpu, Timeline
from teho.profile.judge import IDLE_WORDS
from teho.profile.launches import Launch
from teho.profile.load import Loaded
from teho.profile.memory import Peak
from teho.profile.memory_picture import memory_picture
from teho.profile.phases import Phases
from teho.profile.ranks import Windows
from teho.profile.spans import Span, Spans, clipped, length, subtracted, union
from teho.profile.tracks import Work

__all__ = ["picture_of"]

_NS = 1e9
_BINS = 480
"""Number of parts of the step: about two pixels each on a wide page."""
_MOST_CATEGORIES = 7
_MOST_PAUSES = 6
_BACKWARD = "autograd::engine"


def picture_of(
    loaded: Loaded,
    cpu: Cpu,
    launched: dict[int, Launch],
    lines: dict[int, Timeline],
    categories: dict[int, list[Category]],
    windows: Windows,
    peaks: Sequence[Peak] = (),
    phases: Phases | None = None,
) -> StepPicture | None:
    """Return the picture of the step of median length on the first device; None without a device.

    Args:
        loaded: the whole trace.
        cpu: what the CPU waited for.
        launched: launch of each correlation number.
        lines: what each device did.
        categories: of each kernel and each copy of each device.
        windows: the steps.
        peaks: of the memory of each device.
        phases: of the trace, if it has memory.
    """
    if not lines:
        return None
    device = min(lines)
    number, *window = sorted(windows, key=lambda one: one[2] - one[1])[len(windows) // 2]
    start, end = window
    line = lines[device]
    kernels, copies = _of_device(loaded.work[device], categories[device], (start, end))
    exchanging = kernels.pop("collective", [])
    idle = {key: clipped(line.idle[key], start, end) for key in IDLE_WORDS if line.idle.get(key)}
    lanes = (
        ("CPU", _of_cpu(loaded, cpu, (start, end))),
        (f"GPU {device}, computing", _largest(kernels)),
        (f"GPU {device}, exchanging data", {"collectives": exchanging}),
        (f"GPU {device}, copying", {"copies and fills": copies}),
        (f"GPU {device}, idle", {IDLE_WORDS[key].short: spans for key, spans in idle.items()}),
    )
    return StepPicture(
        step=number,
        device=device,
        elapsed_s=(end - start) / _NS,
        lanes=tuple(
            made for title, bands in lanes if (made := _lane(title, bands, (start, end))).bands
        ),
        pauses=tuple(_pauses(loaded, loaded.work[device], launched, idle, start)),
        memory=memory_picture(loaded, peaks, phases, device, (start, end), _BINS)
        if phases
        else None,
    )


def _lane(title: str, bands: Mapping[str, Spans], window: Span) -> Lane:
    """Return a lane; what is in several bands at the same time counts for the first of them."""
    made: list[Band] = []
    taken: Spans = []
    for label, spans in bands.items():
        own = subtracted(union(spans), taken)
        if own:
            taken = union(taken, own)
            made.append(Band(label=label, time_s=length(own) / _NS, shares=_shares(own, window)))
    return Lane(label=title, bands=tuple(made))


def _shares(spans: Spans, window: Span) -> list[float]:
    """Return which share of each part of the window is in the spans."""
    start, end = window
    width = (end - start) / _BINS
    found = [0.0] * _BINS
    for begin, finish in spans:
        first = min(int((begin - start) / width), _BINS - 1)
        last = min(int((finish - start) / width), _BINS - 1)
        for place in range(first, last + 1):
            left, right = start + place * width, start + (place + 1) * width
            found[place] += max(min(finish, right) - max(begin, left), 0)
    return [round(min(time / width, 1.0), 3) for time in found]


def _of_device(
    work: Work, categories: Sequence[Category], window: Span
) -> tuple[dict[Category, Spans], Spans]:
    """Return the kernels by category, and the copies; each clipped to the window."""
    start, end = window
    kernels: defaultdict[Category, Spans] = defaultdict(list)
    copies: Spans = []
    for begin, finish, category, is_copy in zip(
        work.starts, work.ends, categories, work.are_copies, strict=True
    ):
        if begin < end and finish > start:
            spans = copies if is_copy else kernels[category]
            spans.append((max(begin, start), min(finish, end)))
    return kernels, copies


def _largest(kernels: Mapping[Category, Spans]) -> dict[str, Spans]:
    """Return the categories by time; the smallest ones of many are one."""
    ordered = sorted(
        kernels, key=lambda category: (category == "other", -length(kernels[category]))
    )
    found: defaultdict[str, Spans] = defaultdict(list)
    for place, category in enumerate(ordered):
        found["other" if place >= _MOST_CATEGORIES else category] += kernels[category]
    return found


def _of_cpu(loaded: Loaded, cpu: Cpu, window: Span) -> dict[str, Spans]:
    """Return what the CPU did; the first one counts if it did several things."""
    start, end = window
    backward = {number for number, name in enumerate(loaded.names) if name.startswith(_BACKWARD)}
    passes: Spans = []
    others: Spans = []
    for thread, track in loaded.operators.items():
        for begin, finish, name in zip(track.starts, track.ends, track.names, strict=True):
            if begin < end and finish > start:
                if name in backward:
                    passes.append((begin, finish))
                elif thread == cpu.main:
                    others.append((begin, finish))
    optimizers = (span for spans in cpu.optimizers.values() for span in spans)
    found = {
        "waiting for data": cpu.data,
        "waiting for the GPU": cpu.waits.get(cpu.main, []) if cpu.main else [],
        "optimizer": optimizers,
        "backward pass": passes,
        "other operators": others,
        "collectives": cpu.collectives,
    }
    return {label: clipped(union(spans), start, end) for label, spans in found.items()}


def _pauses(
    loaded: Loaded,
    work: Work,
    launched: dict[int, Launch],
    idle: Mapping[str, Spans],
    start: int,
) -> Iterator[Pause]:
    """Yield the longest times without work, by their start, with the work that came next."""
    every = [(*span, key) for key, spans in idle.items() for span in spans]
    longest = sorted(every, key=lambda one: one[0] - one[1])[:_MOST_PAUSES]
    order = sorted(range(len(work.starts)), key=work.starts.__getitem__)
    for begin, finish, reason in sorted(longest):
        place = bisect_left(order, finish, key=work.starts.__getitem__)
        following = order[place] if place < len(order) else None
        launch = None if following is None else launched.get(work.correlations[following])
        yield Pause(
            after_s=(begin - start) / _NS,
            time_s=(finish - begin) / _NS,
            reason=reason,
            kernel="" if following is None else loaded.names[work.names[following]],
            operator=launch.operator if launch else "",
            line=launch.line if launch else "",
        )
