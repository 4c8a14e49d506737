"""Reads an XSpace, the trace of JAX's and TensorFlow's profilers, into the same columns.

Threads of the host are lines of the plane `/host:CPU`; streams of a GPU are lines `Stream #…` of
its plane. Other lines of a GPU's plane, such as `XLA Ops`, say the same again and are not read. The
numbers of the fields are in `teho.profile.xplane`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Union

from teho.errors import DamagedError, InputError
from teho.patterns import lazy_pattern
from teho.profile.load import Loaded, Mark
from teho.profile.tracks import Operators, Work

__all__ = ["is_xspace", "load_xspace"]

_GPU = lazy_pattern(r"/device:GPU:(\d+)")
_STREAM, _STEP = "Stream #", "ProfilerStep"
_COPIES = ("memcpy", "memset")
_PS_PER_NS = 1000
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
"""How protocol buffers encode a field."""
_Value = Union[int, bytes]


class _Event(NamedTuple):
    name: str
    start: int
    end: int
    stats: dict[str, int]


def is_xspace(path: Path) -> bool:
    """Return whether a file is an XSpace, by its name."""
    return path.name.endswith((".xplane.pb", ".xplane.pb.gz"))


def load_xspace(path: Path) -> Loaded:
    """Read a trace.

    Raises:
        InputError: the file cannot be opened.
        DamagedError: the file is truncated or damaged.
    """
    loaded = Loaded()
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for field, value in _fields(data):
            if field == 1 and isinstance(value, bytes):
                _add_plane(loaded, value)
    except (ValueError, IndexError, EOFError, gzip.BadGzipFile) as error:
        raise DamagedError(
            f"{path} is truncated or damaged", "a complete trace", "copy the file again"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "a file that can be read") from error
    return loaded


def _add_plane(loaded: Loaded, data: bytes) -> None:
    name, lines = "", []
    names: dict[int, str] = {}
    stat_names: dict[int, str] = {}
    for field, value in _fields(data):
        loaded.events += 1
        if not isinstance(value, bytes):
            continue
        if field == 2:
            name = value.decode()
        elif field == 3:
            lines.append(value)
        elif field in {4, 5}:
            (names if field == 4 else stat_names).update([_named(value)])
    gpu = _GPU.fullmatch(name)
    for line in lines:
        title, events = _line(line, names, stat_names)
        if gpu and title.startswith(_STREAM):
            _add_work(loaded, loaded.work.setdefault(int(gpu[1]), Work()), events)
        elif name.startswith("/host:"):
            _add_thread(loaded, (name, title), events)


def _add_work(loaded: Loaded, work: Work, events: list[_Event]) -> None:
    for event in events:
        work.add(event.start, event.end, loaded.numbers[event.name])
        work.correlations.append(event.stats.get("correlation_id", -1))
        work.are_copies.append(event.name.lower().startswith(_COPIES))


def _add_thread(loaded: Loaded, thread: tuple[str, str], events: list[_Event]) -> None:
    loaded.threads.append(thread)
    for event in events:
        correlation = event.stats.get("correlation_id", 0)
        if event.name == _STEP and "step_num" in event.stats:
            step = f"{_STEP}#{event.stats['step_num']}"
            loaded.marks.append(Mark(step, thread, event.start, event.end))
        elif correlation > 0:
            calls = loaded.calls
            calls.places[correlation] = len(calls.starts)
            calls.add(event.start, event.end, loaded.numbers[event.name])
            calls.threads.append(len(loaded.threads) - 1)
        else:
            track = loaded.operators.setdefault(thread, Operators())
            track.add(event.start, event.end, loaded.numbers[event.name])


def _line(
    data: bytes, names: dict[int, str], stat_names: dict[int, str]
) -> tuple[str, list[_Event]]:
    """Return the name and the events of a line; an event may count from the line's own time."""
    name, start_ns, events = "", 0, []
    for field, value in _fields(data):
        if field == 2 and isinstance(value, bytes):
            name = value.decode()
        elif field == 3 and isinstance(value, int):
            start_ns = value
        elif field == 4 and isinstance(value, bytes):
            events.append(value)
    return name, [_event(event, start_ns, names, stat_names) for event in events]


def _event(data: bytes, start_ns: int, names: dict[int, str], stat_names: dict[int, str]) -> _Event:
    number = offset_ps = duration_ps = 0
    stats: dict[str, int] = {}
    for field, value in _fields(data):
        if field == 4 and isinstance(value, bytes):
            stat = dict(_fields(value))
            # 3 and 4: a whole number, without and with a sign.
            found = stat.get(3, stat.get(4))
            if isinstance(found, int):
                stats[stat_names.get(int(stat.get(1, 0)), "")] = found
        elif isinstance(value, int):
            if field == 1:
                number = value
            elif field == 2:
                offset_ps = value
            elif field == 3:
                duration_ps = value
    start = start_ns + offset_ps // _PS_PER_NS
    return _Event(names.get(number, ""), start, start + duration_ps // _PS_PER_NS, stats)


def _named(entry: bytes) -> tuple[int, str]:
    """Return the key of an entry of a map, and the name in its value."""
    fields = dict(_fields(entry))
    value = fields.get(2, b"")
    named = dict(_fields(value)) if isinstance(value, bytes) else {}
    name = named.get(2, b"")
    return int(fields.get(1, 0)), name.decode() if isinstance(name, bytes) else ""


def _fields(data: bytes) -> Iterator[tuple[int, _Value]]:
    """Yield the number and the value of each field of a message.

    Raises:
        ValueError: it is not a message.
        IndexError: it is truncated.
    """
    place, end = 0, len(data)
    while place < end:
        key, place = _varint(data, place)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield field, value
            continue
        if kind == _BYTES:
            length, place = _varint(data, place)
        elif kind in {_EIGHT, _FOUR}:
            length = 8 if kind == _EIGHT else 4
        else:
            raise ValueError(f"field {field} has the unknown kind {kind}")
        if place + length > end:
            raise IndexError(place)
        yield field, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
