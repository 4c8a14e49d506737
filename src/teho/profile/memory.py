"""The memory of each device: its peak in the recorded steps, and what was allocated then.

PyTorch reports each allocation together with the total of the device. On a GPU, this total has all
that PyTorch's allocator has given away, also before the profiler began. So what was there before is
the total without the blocks that the trace knows. On the CPU, PyTorch counts only what it has
reported. So what was there before is not known.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, pairwise
from typing import Any, NamedTuple

from teho.model.trace_memory import MemoryOwner, MemoryPart, MemoryPhase, MemoryStep, MemoryUse
from teho.patterns import lazy_pattern
from teho.profile.allocations import CPU, Allocations, device_of
from teho.profile.launches import Lines, around
from teho.profile.load import Loaded, Thread
from teho.profile.phases import Phases
from teho.profile.ranks import Windows
from teho.profile.tracks import Track

__all__ = ["PHASES", "Peak", "memory_of", "moments_of", "peaks_of"]

_NS = 1e9
_COLUMNS = ("times", "addresses", "sizes", "totals", "reserved")
_ONLY_ALLOCATES = lazy_pattern(
    r"aten::(clone|contiguous|empty\w*|full\w*|new_\w+|ones\w*|resize_\w*|to|_to_copy|zeros\w*)"
)
"""Operators whose names do not say what the memory is for."""
PHASES: tuple[MemoryPhase, ...] = ("before", "input", "forward", "backward", "optimizer")


class Peak(NamedTuple):
    """The moment at which the most memory of a device was allocated."""

    device: int
    """Type and number: see `device_of`."""
    events: _Events
    levels: array[int]
    """What was allocated after each event."""
    place: int
    """Last event up to the peak; -1: the peak is before the first event."""
    time: int
    level: int
    alive: list[int]
    """The allocations whose memory was not freed before the peak, by time."""

    def level_before(self, place: int) -> int:
        """Return what was allocated before an event."""
        return _level_before(self.events, self.levels, place)


class _Events(Allocations):
    """The events of one device in all threads, in the order of time."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = array("q")
        """Place of the thread in `Loaded.allocations`."""

    def add(self, other: Allocations, device: int, thread: int) -> None:
        """Add the events of a thread about a device."""
        are_meant = [one == device for one in other.devices]
        for name in _COLUMNS:
            getattr(self, name).extend(compress(getattr(other, name), are_meant))
        self.threads.extend([thread] * (len(self.times) - len(self.threads)))

    def sort(self) -> None:
        """Put the events into the order of time; those at the same time keep their order."""
        if all(earlier <= later for earlier, later in pairwise(self.times)):
            return
        order = sorted(range(len(self.times)), key=self.times.__getitem__)
        for name in (*_COLUMNS, "threads"):
            column = getattr(self, name)
            setattr(self, name, array("q", map(column.__getitem__, order)))


def peaks_of(loaded: Loaded, windows: Windows) -> list[Peak]:
    """Return the peak of each device in the recorded steps; empty without any allocation."""
    begin, finish = windows[0][1], windows[-1][2]
    found = []
    devices = {code for one in loaded.allocations.values() for code in set(one.devices)}
    for device in sorted(devices):
        events = _Events()
        for number, one in enumerate(loaded.allocations.values()):
            events.add(one, device, number)
        events.sort()
        found.append(_peak(device, events, begin, finish))
    return found


def _peak(device: int, events: _Events, begin: int, finish: int) -> Peak:
    levels = _levels(device, events)
    first, end = bisect_left(events.times, begin), bisect_right(events.times, finish)
    place, time, level = first - 1, begin, _level_before(events, levels, first)
    highest = max(levels[first:end], default=level - 1)
    if highest >= level:  # of several moments, the last one: most is known about it
        place = next(one for one in range(end - 1, first - 1, -1) if levels[one] == highest)
        time, level = events.times[place], highest
    alive: dict[int, int] = {}
    for number in range(place + 1):
        if events.sizes[number] > 0:
            alive[events.addresses[number]] = number
        else:
            alive.pop(events.addresses[number], None)
    return Peak(device, events, levels, place, time, level, sorted(alive.values()))


def _levels(device: int, events: _Events) -> array[int]:
    """Return what was allocated after each event."""
    kind, _ = device_of(device)
    if kind != CPU and min(events.totals) >= 0:
        return events.totals
    levels, level = array("q"), 0
    alive: dict[int, int] = {}
    for address, size in zip(events.addresses, events.sizes, strict=True):
        level -= alive.pop(address, 0)  # what is not known was allocated before
        if size > 0:
            alive[address] = size
            level += size
        levels.append(level)
    return levels


def _level_before(events: _Events, levels: array[int], place: int) -> int:
    """Return what was allocated before an event."""
    if place:
        return levels[place - 1]
    return max(levels[0] - events.sizes[0], 0) if levels is events.totals else 0


def moments_of(loaded: Loaded, peaks: Iterable[Peak]) -> dict[Thread, set[int]]:
    """Return when each thread made the allocations that had not been freed at the peaks."""
    threads = list(loaded.allocations)
    found: defaultdict[Thread, set[int]] = defaultdict(set)
    for peak in peaks:
        for place in peak.alive:
            found[threads[peak.events.threads[place]]].add(peak.events.times[place])
    return found


def memory_of(
    loaded: Loaded, peaks: Sequence[Peak], phases: Phases, lines: Lines, windows: Windows
) -> tuple[MemoryUse, ...]:
    """Return the memory of each device.

    Args:
        loaded: the whole trace.
        peaks: of this trace.
        phases: of this trace.
        lines: with the lines of `moments_of`.
        windows: the steps.
    """
    names = _names(loaded, peaks, lines)
    return tuple(_use(loaded, peak, phases, names, windows) for peak in peaks)


_Names = Mapping[tuple[Thread, int], tuple[str, str]]
"""Operator and line of a moment in a thread."""


def _use(loaded: Loaded, peak: Peak, phases: Phases, names: _Names, windows: Windows) -> MemoryUse:
    events, threads = peak.events, list(loaded.allocations)
    sizes: defaultdict[MemoryPhase, list[int]] = defaultdict(list)
    operators: defaultdict[tuple[str, MemoryPhase], list[int]] = defaultdict(list)
    lines: defaultdict[tuple[str, MemoryPhase], list[int]] = defaultdict(list)
    for place in peak.alive:
        thread, moment = threads[events.threads[place]], events.times[place]
        phase, size = phases.at(thread, moment), events.sizes[place]
        operator, line = names.get((thread, moment), ("", ""))
        sizes[phase].append(size)
        operators[operator, phase].append(size)
        if loaded.frames:
            lines[line, phase].append(size)
    parts = [MemoryPart(phase=phase, bytes=sum(sizes[phase]), count=len(sizes[phase]))
             for phase in PHASES if phase in sizes]  # fmt: skip
    kind, number = device_of(peak.device)
    is_gpu = kind != CPU
    before = peak.level - sum(part.bytes for part in parts)
    if is_gpu and before > 0:
        parts.insert(0, MemoryPart(phase="before", bytes=before))
    during = None
    if peak.place >= 0 and peak.time > windows[0][1]:
        during = phases.at(threads[events.threads[peak.place]], peak.time)
    return MemoryUse(
        device=number if is_gpu else None,
        peak_bytes=peak.level,
        unseen_bytes=max(-before, 0),
        reserved_bytes=_reserved(peak) if is_gpu else None,
        device_bytes=_size(loaded.values.get("deviceProperties"), number) if is_gpu else None,
        step=next((one for one, start, end in windows if start <= peak.time <= end), None),
        after_s=(peak.time - windows[0][1]) / _NS,
        during=during,
        parts=tuple(parts),
        operators=_owners(operators),
        lines=_owners(lines),
        steps=tuple(_step(peak, *window) for window in windows),
    )


def _owners(sizes: Mapping[tuple[str, MemoryPhase], Sequence[int]]) -> tuple[MemoryOwner, ...]:
    made = [
        MemoryOwner(name=name, phase=phase, bytes=sum(found), count=len(found))
        for (name, phase), found in sizes.items()
    ]
    return tuple(sorted(made, key=lambda one: (-one.bytes, one.name, one.phase)))


def _step(peak: Peak, number: int | None, start: int, end: int) -> MemoryStep:
    first, last = bisect_left(peak.events.times, start), bisect_right(peak.events.times, end)
    before = peak.level_before(first)
    return MemoryStep(
        number=number,
        peak_bytes=max(before, max(peak.levels[first:last], default=before)),
        end_bytes=peak.levels[last - 1] if last else before,
    )


def _reserved(peak: Peak) -> int | None:
    """Return what PyTorch had taken from the device at the peak."""
    reserved = peak.events.reserved[max(peak.place, 0)]
    return reserved if reserved > 0 else None


def _size(properties: Any, device: int) -> int | None:
    """Return the memory of a device from `deviceProperties`."""
    for one in properties if isinstance(properties, list) else ():
        if isinstance(one, dict) and one.get("id") == device:
            size = one.get("totalGlobalMem")
            return size if isinstance(size, int) and size > 0 else None
    return None


def _names(loaded: Loaded, peaks: Sequence[Peak], lines: Lines) -> _Names:
    """Return the operator and the line of each allocation that had not been freed at a peak."""
    found: dict[tuple[Thread, int], tuple[str, str]] = {}
    for thread, moments in moments_of(loaded, peaks).items():
        track = loaded.operators.get(thread, Track())
        ordered = sorted(moments)
        for moment, stack in zip(ordered, around(track, ordered), strict=True):
            operators = [loaded.names[track.names[place]] for place in stack]
            found[thread, moment] = _meaningful(operators), lines.at(thread, moment, stack)
    return found


def _meaningful(operators: Sequence[str]) -> str:
    """Return the innermost operator that does more than allocate; if none does, the outermost."""
    for name in reversed(operators):
        if not _ONLY_ALLOCATES.fullmatch(name):
            return name
    return operators[0] if operators else ""
