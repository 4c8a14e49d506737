"""Writes an event file for TensorBoard. No package is needed.

The file has records: the length, its checksum, an `Event` of TensorBoard's protocol buffers
(`event.proto`, `summary.proto`), and its checksum. The checksum is a masked CRC-32C, as in the
record files of TensorFlow.
"""

from __future__ import annotations

import itertools
import shlex
import shutil
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from teho.errors import InputError
from teho.model.document import Report
from teho.model.run import Run
from teho.show.trackers.tracker import PREFIX, Point, Tracker, Wish, facts_of, prose_of
from teho.store.protobuf import bytes_field, int_field

__all__ = ["TRACKER", "checksum"]

_POLYNOMIAL = 0x82F63B78
"""Of CRC-32C (Castagnoli), with the bits reversed."""
_MASK = 0xA282EAD8
_TIME, _STEP, _VERSION, _SUMMARY = 1, 2, 3, 5
"""Fields of an Event."""
_VALUE = 1
"""Field of a Summary."""
_TAG, _NUMBER, _TENSOR, _METADATA = 1, 2, 8, 9
"""Fields of a Summary.Value."""
_STRING_TYPE = 7
_IS_TENSOR = 2


class TensorBoard(Tracker):
    """One folder with an event file, the report as a page, and the report as JSON."""

    def __init__(self, run: Run, wish: Wish) -> None:
        self._folder = (wish.folder or Path("runs")) / f"teho-{run.id}"
        self._began_s = run.started_at.timestamp()
        self._path = self._folder / f"events.out.tfevents.{self._began_s:.0f}.{run.host}.teho"
        self._write("wb", _double(_TIME, self._began_s) + bytes_field(_VERSION, b"brain.Event:2"))

    def add(self, points: Sequence[Point]) -> None:
        """Append an event for each time."""
        for point in points:
            self._event(point.elapsed_s, itertools.starmap(_scalar, point.values.items()))

    def end(self, report: Report, files: Mapping[str, Path]) -> str:
        """Append the findings as a text, and the facts; copy the files."""
        numbers, _ = facts_of(report)
        scalars = [_scalar(name, value) for name, value in numbers.items()]
        self._event(0.0, [_text(f"{PREFIX}report", prose_of(report)), *scalars])
        for name, path in files.items():
            shutil.copyfile(path, self._folder / name)
        return f"`tensorboard --logdir {shlex.quote(str(self._folder.parent))}` shows it"

    def _event(self, elapsed_s: float, values: Iterable[bytes]) -> None:
        summary = b"".join(bytes_field(_VALUE, value) for value in values)
        self._write(
            "ab",
            _double(_TIME, self._began_s + elapsed_s)
            + int_field(_STEP, round(elapsed_s))
            + bytes_field(_SUMMARY, summary),
        )

    def _write(self, mode: str, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        parts = (length, _masked(length), event, _masked(event))
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._path.open(mode) as file:
                file.write(b"".join(parts))
        except OSError as error:
            raise InputError(
                f"{self._path}: {error.strerror}", "a folder that can be written"
            ) from error


TRACKER = TensorBoard


def _double(field: int, value: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", value)


def _scalar(name: str, value: float) -> bytes:
    number = bytes([_NUMBER << 3 | 5]) + struct.pack("<f", value)
    return bytes_field(_TAG, name.encode()) + number


def _text(name: str, words: str) -> bytes:
    """Return a value for the tab "Text": a tensor with one text, in Markdown."""
    plugin = bytes_field(1, bytes_field(1, b"text"))
    shape = bytes_field(2, bytes_field(2, int_field(1, 1)))
    return (
        bytes_field(_TAG, name.encode())
        + bytes_field(_TENSOR, int_field(1, _STRING_TYPE) + shape + bytes_field(8, words.encode()))
        + bytes_field(_METADATA, plugin + int_field(4, _IS_TENSOR))
    )


@cache
def _table() -> list[int]:
    """Return the checksum of each byte."""
    found = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return found


def checksum(data: bytes) -> int:
    """Return the CRC-32C of bytes."""
    table, value = _table(), 0xFFFF_FFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFF_FFFF


def _masked(data: bytes) -> bytes:
    value = checksum(data)
    rotated = (value >> 15 | value << 17) + _MASK
    return struct.pack("<I", rotated & 0xFFFF_FFFF)
