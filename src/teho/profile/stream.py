"""Read the events of a Chrome trace file piece by piece, without the whole file in memory.

PyTorch's profiler (Kineto) writes one JSON object, whose key `traceEvents` has the list of events.
Other programs write only the list. A file may be compressed with gzip.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Union

import msgspec

from teho.errors import DamagedError, InputError
from teho.patterns import lazy_pattern

__all__ = ["Arguments", "Event", "EventStream", "Number"]

Number = Union[int, float, str, None]
"""A number of a trace. Some versions of Kineto write numbers as text."""

_PIECE_BYTES = 1 << 19
"""Size of the pieces in which a file is read. The events of a larger piece leave the caches of a
core before they are used."""
_LARGEST_BYTES = 64 << 20
"""Largest size of one event, or of one value outside of the events."""
_GZIP = b"\x1f\x8b"
_CUT = lazy_pattern(rb"\}\s*,")
"""The end of an object in a list; it may also be inside an event, or inside a text."""
_TAIL_BYTES = 1 << 15
"""Size of the end of a piece in which cuts are searched."""
_TRIES = 8
"""Number of cuts that are tried from the end of a piece."""
_NOT_FINITE = lazy_pattern(rb'(":\s*)(?:[-+]?(?:nan|inf|infinity))(?=\s*[,}])', re.IGNORECASE)
"""Numbers that C++ writes, and that JSON does not allow."""
_SPACE = lazy_pattern(r"[\s,]*")
_ENDS_VALUE = lazy_pattern(r"\s*[,:}]")
_BLANK = b" \t\r\n"


class Arguments(msgspec.Struct, gc=False):
    """The arguments of an event that Teho reads."""

    correlation: Number = None
    """Number of the launch; the call of the runtime and its work on the GPU have the same one."""
    device: Number = None
    group: Number = msgspec.field(default=None, name="Process Group Name")
    """Ranks of a collective."""
    address: Number = msgspec.field(default=None, name="Addr")
    """Of memory that is allocated or freed."""
    bytes: Number = msgspec.field(default=None, name="Bytes")
    """Size of this memory; negative: it is freed."""
    allocated: Number = msgspec.field(default=None, name="Total Allocated")
    """Bytes that are allocated on the device after this event."""
    reserved: Number = msgspec.field(default=None, name="Total Reserved")
    """Bytes that PyTorch's allocator has taken from the device."""
    device_type: Number = msgspec.field(default=None, name="Device Type")
    device_number: Number = msgspec.field(default=None, name="Device Id")
    shapes: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Dims")
    """Sizes of the inputs of an operator, with `record_shapes=True`. Decoded only if needed."""
    types: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input type")
    values: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Concrete Inputs")
    """Inputs that are not tensors, as texts."""


class Event(msgspec.Struct, gc=False):
    """One event of a trace."""

    ph: str = ""
    """Phase: `X` is an event with a duration."""
    cat: str = ""
    """Category, such as `kernel`, `cpu_op`, `cuda_runtime`."""
    name: str = ""
    pid: Number = None
    tid: Number = None
    id: Number = None
    """Number of an arrow; its start (`s`) and its end (`f`) have the same one."""
    ts: Number = None
    """Start in µs, with up to three decimals. `displayTimeUnit` is only for viewers."""
    dur: Number = None
    """Duration in µs."""
    args: Union[Arguments, None] = None


_BATCH = msgspec.json.Decoder(list[Event])
_RAW_BATCH = msgspec.json.Decoder(list[msgspec.Raw])
_ONE = msgspec.json.Decoder(Event)


class EventStream:
    """The events of one file, in batches, and the values outside of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = {}
        """Values outside of the events that have been read so far, such as `deviceProperties`."""
        self.unread = 0
        """Number of events without the form of an event."""
        self.has_events = False
        """Whether a list of events was found."""
        self._read: Callable[[int], bytes]
        self._buffer = b""
        self._before = 0
        """Number of bytes before the buffer."""
        self._is_whole = False
        """Whether the buffer has the rest of the file."""

    def batches(self) -> Iterator[list[Event]]:
        """Yield all events, in the order of the file.

        Raises:
            InputError: the file cannot be opened, or is not a trace.
            DamagedError: the file is truncated or damaged.
        """
        try:
            with self.path.open("rb") as plain:
                is_packed = plain.peek(2)[:2] == _GZIP
                self._read = gzip.GzipFile(fileobj=plain).read if is_packed else plain.read
                yield from self._document()
        except EOFError as error:
            raise self._truncated("the compressed data end too early") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise self._damaged(f"the compressed data are not valid ({error})") from error
        except OSError as error:
            raise InputError(
                f"{self.path}: {error.strerror or error}", "a trace file that can be read"
            ) from error

    def _document(self) -> Iterator[list[Event]]:
        first = self._next_byte()
        if not first:
            raise InputError(f"{self.path}: the file is empty", "a trace of PyTorch's profiler")
        if first == b"[":
            self._drop(1)
            yield from self._events()
        elif first == b"{":
            self._drop(1)
            yield from self._members()
        else:
            raise InputError(f"{self.path} is not JSON", "a trace of PyTorch's profiler, in JSON")

    def _members(self) -> Iterator[list[Event]]:
        """Read the keys and values of the outer object."""
        while (byte := self._next_byte()) != b"}":
            if byte != b'"':
                raise self._truncated() if not byte else self._damaged("a key is missing")
            key = self._value()
            if self._next_byte() != b":":
                raise self._truncated() if not self._next_byte() else self._damaged("no colon")
            self._drop(1)
            if key == "traceEvents" and self._next_byte() == b"[":
                self._drop(1)
                yield from self._events()
            else:
                self.values[str(key)] = self._value()
            if self._next_byte() == b",":
                self._drop(1)

    def _events(self) -> Iterator[list[Event]]:
        """Read the list of events, up to its end."""
        self.has_events = True
        while (byte := self._next_byte()) != b"]":
            if not byte:
                raise self._truncated()
            if len(self._buffer) < _PIECE_BYTES and not self._is_whole:
                self._fill()
            batch = self._decoded()
            if batch is None:
                batch = self._decoded_singly()
            yield batch
            if self._next_byte() == b",":
                self._drop(1)
        self._drop(1)

    def _decoded(self) -> list[Event] | None:
        """Decode the buffer up to one of the last cuts that end an event. None: none does.

        Between two events, the text up to the cut is a valid list. Inside an event or a text, it
        is not.
        """
        tail = max(len(self._buffer) - _TAIL_BYTES, 0)
        cuts = [match.start() + 1 for match in _CUT.finditer(self._buffer, tail)][-_TRIES:]
        for cut in reversed(cuts):
            piece = b"[" + self._buffer[:cut] + b"]"
            try:
                batch = _BATCH.decode(piece)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            self._drop(cut)
            return batch
        return None

    def _decoded_singly(self) -> list[Event]:
        """Decode the events of the buffer one by one, up to the last whole one."""
        text, end, decoder = "", 0, json.JSONDecoder()
        while True:
            self._buffer = _NOT_FINITE.sub(rb"\1null", self._buffer)
            text = self._buffer.decode("latin-1")
            place = end = 0
            while place < len(text) and text[place] != "]":
                try:
                    _, end = decoder.raw_decode(text, place)
                except (ValueError, RecursionError):
                    break
                match = _SPACE.match(text, end)
                place = match.end() if match else end
            if end:
                break
            self._read_more("an event is not valid JSON")
        piece = b"[" + self._buffer[:end] + b"]"
        self._drop(end)
        return list(self._valid(piece))

    def _valid(self, piece: bytes) -> Iterator[Event]:
        """Yield the events of a list that have the form of an event, and count the others."""
        try:
            raws = _RAW_BATCH.decode(piece.decode("utf-8", errors="replace").encode())
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._damaged(f"an event is not valid JSON ({error})") from error
        for raw in raws:
            try:
                yield _ONE.decode(raw)
            except (msgspec.DecodeError, RecursionError):
                self.unread += 1

    def _value(self) -> Any:
        """Read one value at the start of the buffer."""
        decoder = json.JSONDecoder()
        self._next_byte()
        while True:
            text = self._buffer.decode("latin-1")  # a byte is a character, so the places hold
            try:
                _, end = decoder.raw_decode(text)
            except (ValueError, RecursionError):
                self._read_more("a value is not valid JSON")
                continue
            if not self._is_whole and not _ENDS_VALUE.match(text, end):
                # A number may continue in the next piece.
                self._read_more("a value is not valid JSON")
                continue
            value = json.loads(self._buffer[:end].decode(errors="replace"))
            self._drop(end)
            return value

    def _next_byte(self) -> bytes:
        """Drop white space, and return the next byte; empty at the end of the file."""
        while True:
            rest = self._buffer.lstrip(_BLANK)
            self._drop(len(self._buffer) - len(rest))
            if self._buffer or self._is_whole:
                return self._buffer[:1]
            self._fill()

    def _read_more(self, what: str) -> None:
        """Read the next piece of an incomplete event or value.

        Raises:
            DamagedError: the file has ended, or the event or value is too large.
        """
        if self._is_whole:
            raise self._truncated() if _is_cut_off(self._buffer) else self._damaged(what)
        if len(self._buffer) > _LARGEST_BYTES:
            raise self._damaged(what)
        self._fill()

    def _fill(self) -> None:
        piece = self._read(max(_PIECE_BYTES, len(self._buffer)))
        self._is_whole = not piece
        self._buffer += piece

    def _drop(self, count: int) -> None:
        if count:
            self._buffer = self._buffer[count:]
            self._before += count

    def _truncated(self, what: str = "the JSON ends too early") -> DamagedError:
        return DamagedError(
            f"{self.path} is truncated: {what}",
            "a whole file",
            "copy the file again, or profile again",
        )

    def _damaged(self, what: str) -> DamagedError:
        return DamagedError(
            f"{self.path} is damaged at byte {self._before:,}: {what}",
            "a trace as PyTorch's profiler wrote it",
            "copy the file again, or profile again",
        )


def _is_cut_off(rest: bytes) -> bool:
    """Return whether JSON is valid up to the end of the text, and only incomplete there."""
    text = rest.decode("latin-1")
    try:
        json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        # An open text is reported at its start, and so is a part of a word such as `Infinity`.
        near = len(text.rstrip()) - len("Infinity")
        return error.pos >= near or error.msg.startswith("Unterminated string")
    except RecursionError:
        return False
    return False
