"""All events of one trace, as columns: small enough for files of hundreds of MB.

Times are in ns, as whole numbers. Kineto writes µs with at most three decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from teho.profile.allocations import Allocations
from teho.profile.stream import Event, EventStream, Number
from teho.profile.tracks import Calls, Operators, Track, Work, times_of

__all__ = ["Loaded", "Mark", "Thread", "load"]

Thread = tuple[str, str]
"""Process and thread, as the trace names them."""
_Key = tuple[str, str, Number, Number]

_KINDS = {
    "kernel": "work",
    "gpu_memcpy": "copy",
    "memcpy": "copy",
    "gpu_memset": "copy",
    "memset": "copy",
    "cpu_op": "operator",
    "operator": "operator",
    "cuda_runtime": "call",
    "cuda_driver": "call",
    "runtime": "call",
    "xpu_runtime": "call",
    "python_function": "frame",
    "user_annotation": "mark",
}
"""What Teho does with an event of a category. The categories are Kineto's (`ActivityType.cpp`), of
today and of the versions up to PyTorch 1.12."""


class _Numbers(dict[str, int]):
    """The number of each name; a new name is added."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self._names)
        self._names.append(name)
        return number


class Mark(NamedTuple):
    """A part of the program that PyTorch or the user has marked."""

    name: str
    thread: Thread
    start: int
    end: int


class Loaded:
    """All that Teho needs of one trace."""

    def __init__(self) -> None:
        self.names: list[str] = []
        """Each name once."""
        self.numbers = _Numbers(self.names)
        """Place of each name."""
        self.threads: list[Thread] = []
        self.operators: dict[Thread, Operators] = {}
        self.frames: dict[Thread, Track] = {}
        self.calls = Calls()
        self.work: dict[int, Work] = {}
        """By the number of the device."""
        self.allocations: dict[Thread, Allocations] = {}
        """Empty if the profiler did not record memory."""
        self.marks: list[Mark] = []
        self.forward: dict[tuple[Thread, int], tuple[Thread, int]] = {}
        """Thread and start of a forward operator, by thread and start of its backward operator."""
        self.groups: dict[int, str] = {}
        """Process group of a collective on a device, by its correlation number."""
        self.values: dict[str, Any] = {}
        """Values outside of the events."""
        self.unread = 0
        self.events = 0

    def window(self) -> tuple[int, int]:
        """Return the start of the first event and the end of the last event."""
        tracks = [*self.operators.values(), *self.work.values(), self.calls]
        tracks = [track for track in tracks if track.starts]
        starts = [min(track.starts) for track in tracks] + [mark.start for mark in self.marks]
        ends = [max(track.ends) for track in tracks] + [mark.end for mark in self.marks]
        return min(starts), max(ends)

    @property
    def has_times(self) -> bool:
        """Whether the trace has any event that Teho reads."""
        return bool(self.operators or self.work or self.calls.starts or self.marks)


class _Pending(NamedTuple):
    """Events that are added together, which is faster than one by one."""

    extend: Callable[[Sequence[Event]], None] | None
    """Adds them; None: these events are not read."""
    events: list[Event]


class _Loader:
    """Adds events to a `Loaded`."""

    def __init__(self, into: Loaded) -> None:
        self.into = into
        self.thread_numbers: dict[Thread, int] = {}
        self.arrows: dict[str, dict[str, tuple[Thread, int]]] = {"s": {}, "f": {}}
        """Starts and ends of arrows from a forward operator to its backward operator, by phase and
        number."""
        self.pending: dict[_Key, _Pending] = {}
        """By phase, category, process and thread."""
        # Calls of all threads keep their order, and so does the work of all streams.
        self.pending_calls = _Pending(self._extend_calls, [])
        self.pending_work = _Pending(self._extend_work, [])

    def add_all(self, batch: Sequence[Event]) -> None:
        """Add events; count those that cannot be read."""
        find = self.pending.get
        for event in batch:
            found = find((event.ph, event.cat, event.pid, event.tid))
            if found is None:
                self._add_singly(event)
            else:
                found.events.append(event)
        for pending in self.pending.values():
            if pending.extend is not None and pending.events:
                try:
                    pending.extend(pending.events)
                except (ValueError, TypeError, OverflowError):
                    for event in pending.events:
                        self._add_singly(event)
            pending.events.clear()
        self.into.events += len(batch)

    def _add_singly(self, event: Event) -> None:
        try:
            self.add(event)
        except (ValueError, TypeError, OverflowError):
            self.into.unread += 1

    def _wait(self, event: Event, pending: _Pending) -> None:
        """Let the next events like this one wait for each other."""
        self.pending.setdefault((event.ph, event.cat, event.pid, event.tid), pending)

    def add(self, event: Event) -> None:
        """Add one event.

        Raises:
            ValueError: a number of the event is not a number.
        """
        if event.ph in {"s", "f"}:
            if event.cat == "fwdbwd":
                thread, ends = _thread(event), self.arrows[event.ph]
                ends[str(event.id)] = (thread, _ns(event.ts))
                self._wait(event, _Pending(partial(_extend_arrows, ends, thread), []))
            else:
                self._wait(event, _Pending(None, []))
            return
        if event.ph == "i" and event.cat == "cpu_instant_event":
            allocations = self.into.allocations.setdefault(_thread(event), Allocations())
            allocations.extend([event])
            self._wait(event, _Pending(allocations.extend, []))
            return
        kind = _KINDS.get(event.cat.lower()) if event.ph == "X" else None
        if kind is None:
            self._wait(event, _Pending(None, []))
            return
        start = _ns(event.ts)
        end = start + _ns(event.dur)
        if end < start:
            raise ValueError("a negative duration")
        if kind in {"work", "copy"}:
            self._add_work(event, start, end, _device(event), _correlation(event))
            self._wait(event, self.pending_work)
            return
        thread = _thread(event)
        if kind == "mark":
            self.into.marks.append(Mark(event.name, thread, start, end))
        elif kind == "call":
            self._add_call(event, thread, start, end)
            self._wait(event, self.pending_calls)
        else:
            track = (
                self.into.operators.setdefault(thread, Operators())
                if kind == "operator"
                else self.into.frames.setdefault(thread, Track())
            )
            track.extend([event], self.into.numbers)
            self._wait(event, _Pending(partial(track.extend, numbers=self.into.numbers), []))

    def _extend_work(self, events: Sequence[Event]) -> None:
        """Add kernels, copies and fills; none of them if one cannot be read in this way."""
        starts, ends = times_of(events)
        devices, numbers = list(map(_device, events)), list(map(_correlation, events))
        for one in zip(events, starts, ends, devices, numbers, strict=True):
            self._add_work(*one)

    def _add_work(self, event: Event, start: int, end: int, device: int, number: int) -> None:
        work = self.into.work.get(device)
        if work is None:
            work = self.into.work[device] = Work()
        work.add(start, end, self.into.numbers[event.name])
        work.correlations.append(number)
        work.are_copies.append(_KINDS[event.cat.lower()] == "copy")
        if event.args and event.args.group:
            self.into.groups[number] = str(event.args.group)

    def _extend_calls(self, events: Sequence[Event]) -> None:
        """Add calls; none of them if one cannot be read in this way."""
        calls, numbers = self.into.calls, list(map(_correlation, events))
        first = len(calls.starts)
        calls.extend(events, self.into.numbers)
        places = enumerate(numbers, first)
        calls.places.update({number: place for place, number in places if number > 0})
        keys = [(event.pid, event.tid) for event in events]
        threads = {key: self._number((str(key[0]), str(key[1]))) for key in dict.fromkeys(keys)}
        calls.threads.extend(map(threads.__getitem__, keys))

    def _add_call(self, event: Event, thread: Thread, start: int, end: int) -> None:
        calls, correlation = self.into.calls, _correlation(event)
        if correlation > 0:
            calls.places[correlation] = len(calls.starts)
        calls.add(start, end, self.into.numbers[event.name])
        calls.threads.append(self._number(thread))

    def _number(self, thread: Thread) -> int:
        """Return the place of a thread in `Loaded.threads`."""
        number = self.thread_numbers.get(thread)
        if number is None:
            number = self.thread_numbers[thread] = len(self.into.threads)
            self.into.threads.append(thread)
        return number

    def end(self) -> None:
        """Connect the forward and backward operators."""
        begins = self.arrows["s"]
        for number, finish in self.arrows["f"].items():
            if begin := begins.get(number):
                self.into.forward[finish] = begin


def load(path: Path) -> Loaded:
    """Read a trace.

    Raises:
        InputError: the file cannot be opened, or is not a trace.
        DamagedError: the file is truncated or damaged.
    """
    loaded = Loaded()
    loader = _Loader(loaded)
    stream = EventStream(path)
    for batch in stream.batches():
        loader.add_all(batch)
    loader.end()
    loaded.values = stream.values
    loaded.unread += stream.unread
    return loaded


def _extend_arrows(
    ends: dict[str, tuple[Thread, int]], thread: Thread, events: Sequence[Event]
) -> None:
    """Add the ends of arrows in one thread; none of them if one cannot be read in this way."""
    # The checker is silenced: a time that is not a number raises an error.
    ends.update({str(event.id): (thread, round(event.ts * 1000)) for event in events})  # type: ignore[operator,arg-type]


def _device(event: Event) -> int:
    """Return the number of the device of a kernel or copy."""
    device = _whole(event.args.device if event.args else None)
    return _whole(event.pid) if device < 0 else device


def _correlation(event: Event) -> int:
    return _whole(event.args.correlation if event.args else None)


def _thread(event: Event) -> Thread:
    return str(event.pid), str(event.tid)


def _ns(value: Number) -> int:
    """Return µs as ns."""
    if isinstance(value, str):
        value = float(value)
    return value * 1000 if isinstance(value, int) else round((value or 0.0) * 1000)


def _whole(value: Number) -> int:
    """Return a whole number; -1 if there is none."""
    try:
        return -1 if value is None else int(value)
    except ValueError:
        return -1
