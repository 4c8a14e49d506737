"""What one device did: the parts of each step, and why the device was idle."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from teho.model.trace import Idle, Parts
from teho.profile.categories import category_of
from teho.profile.compiling import Compiled, compiled_of
from teho.profile.launches import Launch
from teho.profile.load import Loaded, Thread
from teho.profile.phases import optimizer_spans
from teho.profile.spans import (
    Span,
    Spans,
    clipped,
    intersection,
    last_begun,
    length,
    subtracted,
    union,
)
from teho.profile.tracks import Work

__all__ = [
    "SYNCHRONISING",
    "Cpu",
    "Timeline",
    "base_name",
    "cpu_of",
    "is_cpu_collective",
    "shortest_delay",
    "timeline",
]

_NS = 1e9
_LONGEST_DELAY = 10_000
"""Largest plausible delay in ns between a launch call and the start of its kernel, if the device is
idle. NVIDIA's and AMD's GPUs need about 2 to 10 µs."""
_DATA = "enumerate(DataLoader)#"
_CPU_COLLECTIVES = ("gloo:", "mpi:", "ucc:")
SYNCHRONISING = frozenset(
    {
        f"{prefix}{name}"
        for prefix in ("cuda", "hip")
        for name in ("DeviceSynchronize", "EventSynchronize", "Memcpy", "StreamSynchronize")
    }
    | {"cuCtxSynchronize", "cuEventSynchronize", "cuStreamSynchronize"}
)
"""Calls that return when the device has done all work, or the work of one stream."""
_NO_SPANS: Spans = []


class Timeline(NamedTuple):
    """When one device did what."""

    compute: Spans
    collective: Spans
    copy: Spans
    busy: Spans
    idle: dict[str, Spans]
    """By the name of the reason in `Idle`, without `_s`."""
    launched: int
    """Number of kernels, copies and fills with a known launch."""
    are_bound: list[bool]
    """Of each kernel, copy and fill in `Work`: whether the device was waiting for it."""

    def parts(self, start: int, end: int) -> Parts:
        """Return what the device did between two moments."""
        cut = [clipped(spans, start, end) for spans in (self.compute, self.collective, self.copy)]
        compute, collective, copy = cut
        return Parts(
            elapsed_s=(end - start) / _NS,
            compute_s=length(compute) / _NS,
            collective_s=length(collective) / _NS,
            copy_s=length(copy) / _NS,
            hidden_collective_s=length(intersection(collective, compute)) / _NS,
            hidden_copy_s=length(intersection(copy, union(compute, collective))) / _NS,
            busy_s=length(clipped(self.busy, start, end)) / _NS,
            idle=Idle(
                **{
                    f"{reason}_s": length(clipped(spans, start, end)) / _NS
                    for reason, spans in self.idle.items()
                }
            ),
        )


class Cpu(NamedTuple):
    """What the CPU did or waited for, and when."""

    main: Thread | None
    """The thread of the steps, or else the thread with the most operators."""
    data: Spans
    """The program waited for its data loader, in any thread."""
    collectives: Spans
    """A collective that does not run on the GPU, in any thread."""
    compiled: Compiled
    """What XLA or `torch.compile` compiled, in any thread."""
    waits: dict[Thread, Spans]
    """Each thread was in a call that waits for the device."""
    optimizers: dict[Thread, Spans]
    """Each thread updated the parameters."""


def cpu_of(loaded: Loaded) -> Cpu:
    """Return what the CPU did or waited for."""
    return Cpu(
        _main_thread(loaded),
        union((mark.start, mark.end) for mark in loaded.marks if mark.name.startswith(_DATA)),
        union((mark.start, mark.end) for mark in loaded.marks if is_cpu_collective(mark.name)),
        compiled_of(loaded),
        _synchronising(loaded),
        optimizer_spans(loaded),
    )


def is_cpu_collective(mark: str) -> bool:
    """Return whether a mark is a collective that does not run on the GPU."""
    return mark.startswith(_CPU_COLLECTIVES)


def shortest_delay(loaded: Loaded, launched: dict[int, Launch]) -> int:
    """Return the shortest delay in ns between a launch call and its kernel, at most 10 µs."""
    delays = (
        start - launched[correlation].start
        for work in loaded.work.values()
        for start, correlation in zip(work.starts, work.correlations, strict=True)
        if correlation in launched
    )
    return min(max(min(delays, default=0), 0), _LONGEST_DELAY)


def timeline(
    loaded: Loaded, work: Work, cpu: Cpu, launched: dict[int, Launch], window: Span, delay: int
) -> Timeline:
    """Return when a device did what, and why it was idle in between.

    Args:
        loaded: the whole trace.
        work: of this device.
        cpu: what the CPU waited for.
        launched: launch of each correlation number.
        window: start of the first step, and end of the last step.
        delay: in ns, between a launch call and the start of its kernel on an idle device.
    """
    kinds: dict[str, Spans] = {"compute": [], "collective": [], "copy": []}
    are_collective = {
        name: category_of(loaded.names[name]) == "collective" for name in set(work.names)
    }
    for start, end, name, is_copy in zip(
        work.starts, work.ends, work.names, work.are_copies, strict=True
    ):
        kind = "copy" if is_copy else "collective" if are_collective[name] else "compute"
        kinds[kind].append((start, end))
    merged = {kind: union(spans) for kind, spans in kinds.items()}
    gaps = _Gaps(cpu, launched, delay)
    are_bound = gaps.walk(work, window)
    return Timeline(
        **merged,
        busy=union(*merged.values()),
        idle=gaps.by_reason(),
        launched=sum(correlation in launched for correlation in work.correlations),
        are_bound=are_bound,
    )


class _Gaps:
    """Finds the reason of each gap between the work of a device."""

    def __init__(self, cpu: Cpu, launched: dict[int, Launch], delay: int) -> None:
        self._cpu = cpu
        self._launched = launched
        self._delay = delay
        self._found: dict[str, Spans] = defaultdict(list)
        self._waited: dict[str, Spans] = {"sync": [], "launch": []}
        """Gaps in which the device waited for the CPU, in order, by the reason of the time that has
        no other reason."""

    def walk(self, work: Work, window: Span) -> list[bool]:
        """Walk over all work by start; return for each whether the device was waiting for it."""
        are_bound = [False] * len(work.starts)
        free = min(window[0], min(work.starts, default=window[0]))
        for place in sorted(range(len(work.starts)), key=work.starts.__getitem__):
            start = work.starts[place]
            launch = self._launched.get(work.correlations[place])
            are_bound[place] = launch is not None and free < launch.start + self._delay
            if free < start:
                self._add((free, start), launch, is_bound=are_bound[place])
            free = max(free, work.ends[place])
        if free < window[1]:
            self._wait((free, window[1]), self._cpu.main)
        return are_bound

    def by_reason(self) -> dict[str, Spans]:
        """Return the gaps by reason."""
        for reason, spans in self._waited.items():
            self._split(reason, spans)
        return {reason: union(spans) for reason, spans in self._found.items()}

    def _add(self, gap: Span, launch: Launch | None, *, is_bound: bool) -> None:
        if launch is None:
            self._found["unknown"].append(gap)
        elif not is_bound:
            self._found["queued"].append(gap)
        else:
            self._wait(gap, launch.thread)

    def _wait(self, gap: Span, thread: Thread | None) -> None:
        """Add a gap in which the device waited for the CPU."""
        is_after_sync = self._is_after_sync(thread, gap[0]) or (
            thread != self._cpu.main and self._is_after_sync(self._cpu.main, gap[0])
        )
        self._waited["sync" if is_after_sync else "launch"].append(gap)

    def _is_after_sync(self, thread: Thread | None, moment: int) -> bool:
        """Return whether a thread was in a call that waits for the device, or just after it."""
        spans = self._cpu.waits.get(thread, _NO_SPANS) if thread else _NO_SPANS
        place = last_begun(spans, moment)
        return place >= 0 and moment <= spans[place][1]

    def _split(self, remaining: str, gaps: Spans) -> None:
        """Split gaps by what the CPU did; the rest of them has the remaining reason."""
        rest = gaps
        for reason, spans in (
            ("data", self._cpu.data),
            ("collective", self._cpu.collectives),
            ("compile", self._cpu.compiled.spans),
        ):
            part = intersection(rest, spans)
            self._found[reason] += part
            rest = subtracted(rest, part)
        self._found[remaining] += rest


def _main_thread(loaded: Loaded) -> Thread | None:
    """Return the thread of the steps, or else the thread with the most operators."""
    for mark in loaded.marks:
        if mark.name.startswith("ProfilerStep#"):
            return mark.thread
    counts = {thread: len(track.starts) for thread, track in loaded.operators.items()}
    return max(counts, key=counts.__getitem__, default=None)


def _synchronising(loaded: Loaded) -> dict[Thread, Spans]:
    """Return when each thread was in a call that waits for the device."""
    names = {n for n, name in enumerate(loaded.names) if base_name(name) in SYNCHRONISING}
    calls = loaded.calls
    found: defaultdict[Thread, Spans] = defaultdict(list)
    for start, end, name, thread in zip(
        calls.starts, calls.ends, calls.names, calls.threads, strict=True
    ):
        if name in names:
            found[loaded.threads[thread]].append((start, end))
    return {thread: union(spans) for thread, spans in found.items()}


def base_name(name: str) -> str:
    """Return the name of a runtime call without the version: `cudaMemcpy_v3020`."""
    return name.partition("_v")[0]
