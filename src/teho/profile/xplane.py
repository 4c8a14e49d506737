"""Writes a trace of PyTorch's profiler as an XSpace, the format that XProf and TensorBoard read.

XSpace is a message of protocol buffers (`xplane.proto` of OpenXLA): planes (the host, each GPU)
have lines (threads, streams), and lines have events. The few fields that viewers need are encoded
here: a package for protocol buffers would be a new dependency, only for this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from teho.profile.load import Loaded, Mark, load
from teho.profile.tracks import Work
from teho.store.layout import replace_file
from teho.store.protobuf import bytes_field, int_field

__all__ = ["write_xspace"]

_PLANES, _HOST_NAMES = 1, 4
"""Fields of an XSpace."""
_ID, _NAME, _LINES, _EVENT_NAMES = 1, 2, 3, 4
"""Fields of an XPlane; an XLine has the same id and name."""
_LINE_START_NS, _EVENTS = 3, 4
"""Fields of an XLine."""
_NUMBER, _OFFSET_PS, _DURATION_PS = 1, 2, 3
"""Fields of an XEvent."""
_STATS_OF_EVENT, _STAT_NAMES = 4, 5
"""Fields of an XEvent, and of an XPlane."""
_STAT_ID, _STAT_VALUE = 1, 4
"""Fields of an XStat."""
_STEP_NUMBER, _IS_ROOT, _CORRELATION = 1, 2, 3
_STATS = {_STEP_NUMBER: "step_num", _IS_ROOT: "_r", _CORRELATION: "correlation_id"}
"""With these, XProf finds the steps, and the kernels of each step."""
_STEP = "ProfilerStep#"
_KEY, _VALUE = 1, 2
"""Fields of an entry of a map."""
_PS_PER_NS = 1000
_SOURCE_LINES = "source lines"


class _Event(NamedTuple):
    start_ns: int
    end_ns: int
    name: str
    stats: tuple[tuple[int, int], ...] = ()
    """Number of the name in `_STATS`, and a value."""


class _Line(NamedTuple):
    name: str
    events: list[_Event]


def write_xspace(trace: Path, target: Path, host: str) -> None:
    """Write the host and the GPUs of a trace.

    Args:
        trace: of PyTorch's profiler.
        target: the new file, `HOST.xplane.pb`.
        host: name of the machine.

    Raises:
        InputError: the trace cannot be opened, or is not a trace.
        DamagedError: the trace is truncated or damaged.
        OSError: the file cannot be written.
    """
    loaded = load(trace)
    planes = [("/host:CPU", list(_threads(loaded)))]
    planes += [
        (f"/device:GPU:{device}", [_Line("Stream #all", _with_launches(work, loaded))])
        for device, work in sorted(loaded.work.items())
    ]
    space = b"".join(
        bytes_field(_PLANES, _plane(number, name, lines))
        for number, (name, lines) in enumerate(planes, 1)
    )
    replace_file(target, space + bytes_field(_HOST_NAMES, host.encode()))


def _threads(loaded: Loaded) -> Iterator[_Line]:
    """Yield a line for each thread: its marks, operators and calls of the runtime."""
    lines: dict[str, list[_Event]] = {}

    def line(thread: tuple[str, str], suffix: str = "") -> list[_Event]:
        return lines.setdefault(f"thread {thread[1]}{suffix}", [])

    for mark in loaded.marks:
        line(mark.thread).append(_marked(mark))
    for thread, track in loaded.operators.items():
        line(thread).extend(_of(track, loaded))
    for thread, functions in loaded.frames.items():
        line(thread, f" {_SOURCE_LINES}").extend(_of(functions, loaded))
    calls = loaded.calls
    correlations = {place: number for number, place in calls.places.items()}
    for place, event in enumerate(_of(calls, loaded)):
        stats = ((_CORRELATION, correlations[place]),) if place in correlations else ()
        line(loaded.threads[calls.threads[place]]).append(event._replace(stats=stats))
    for thread_name, events in lines.items():
        yield _Line(thread_name, events)


def _marked(mark: Mark) -> _Event:
    name, is_step, number = mark.name.partition(_STEP)
    if is_step and not name and number.isdigit():
        stats = ((_STEP_NUMBER, int(number)), (_IS_ROOT, 1))
        return _Event(mark.start, mark.end, _STEP[:-1], stats)
    return _Event(mark.start, mark.end, mark.name)


def _with_launches(work: Work, loaded: Loaded) -> list[_Event]:
    """Return the work of a GPU; each with the number that its launch has too."""
    return [
        event._replace(stats=((_CORRELATION, number),)) if number > 0 else event
        for event, number in zip(_of(work, loaded), work.correlations, strict=True)
    ]


def _of(track: object, loaded: Loaded) -> list[_Event]:
    columns = (getattr(track, name) for name in ("starts", "ends", "names"))
    return [
        _Event(start, end, loaded.names[name]) for start, end, name in zip(*columns, strict=True)
    ]


def _plane(number: int, name: str, lines: Iterable[_Line]) -> bytes:
    names: dict[str, int] = {}
    encoded = [_line(place, line, names) for place, line in enumerate(lines, 1)]
    known = [
        bytes_field(field, int_field(_KEY, one) + bytes_field(_VALUE, _named(one, text)))
        for field, texts in (
            (_EVENT_NAMES, names),
            (_STAT_NAMES, {v: k for k, v in _STATS.items()}),
        )
        for text, one in texts.items()
    ]
    return _named(number, name) + b"".join(
        (*(bytes_field(_LINES, line) for line in encoded), *known)
    )


def _line(number: int, line: _Line, names: dict[str, int]) -> bytes:
    events = sorted(line.events, key=lambda event: (event.start_ns, -event.end_ns))
    start_ns = events[0].start_ns if events else 0
    encoded = (
        bytes_field(
            _EVENTS,
            int_field(_NUMBER, names.setdefault(event.name, len(names) + 1))
            + int_field(_OFFSET_PS, (event.start_ns - start_ns) * _PS_PER_NS)
            + int_field(_DURATION_PS, (event.end_ns - event.start_ns) * _PS_PER_NS)
            + b"".join(
                bytes_field(
                    _STATS_OF_EVENT, int_field(_STAT_ID, stat) + int_field(_STAT_VALUE, value)
                )
                for stat, value in event.stats
            ),
        )
        for event in events
    )
    return _named(number, line.name) + int_field(_LINE_START_NS, start_ns) + b"".join(encoded)


def _named(number: int, name: str) -> bytes:
    return int_field(_ID, number) + bytes_field(_NAME, name.encode())
