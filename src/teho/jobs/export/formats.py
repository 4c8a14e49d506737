"""Encodes series in the formats that stores accept: remote write, VictoriaMetrics, OTLP.

Arrow and copies of whole columns make the bytes: a recording of many nodes has many million values.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, Union

import pyarrow as pa
import pyarrow.compute as pc

from teho.errors import StoreError
from teho.jobs.export.openmetrics import concatenated
from teho.jobs.export.parts import StoredSeries
from teho.store.protobuf import bytes_field, bytes_head, fields_of, int_field

__all__ = ["FORMATS", "Format"]

Piece = Union[bytes, bytearray]


class Format(NamedTuple):
    """How a kind of store gets values."""

    path: str
    """Path below the address of the store."""
    headers: Mapping[str, str]
    encode: Callable[[Sequence[StoredSeries]], bytes]
    check: Callable[[bytes], None]
    """Raises an error if the answer says that values are lost."""
    values: int
    """Number of values in one request, about. Prometheus and VictoriaMetrics accept 32 MiB, a
    collector of OpenTelemetry 20 MiB."""
    can_be_queried: bool
    """Whether the address also answers queries."""
    threads: int = 1
    """Number of requests that are made at the same time. For gzip, a second thread helps: it takes
    most of the time, and does not need the lock of the interpreter."""
    flush: str = ""
    """Path that makes new values visible for queries at once; empty: they are visible."""


# Remote write 1.0: protobuf in a block of Snappy
# (prometheus.io/docs/specs/prw/remote_write_spec).


_TIME_BYTES = 6
"""A varint of 6 bytes is a time between 1971 and 2109 in ms."""
_SAMPLE = b"\x12\x10\x09" + bytes(8) + b"\x10" + bytes(_TIME_BYTES)
"""A sample: field 2 of a series, with a double (field 1) and a time (field 2)."""
_VALUE_AT, _TIME_AT = 3, 12


def _remote_write(series: Sequence[StoredSeries]) -> bytes:
    # Most series of a device have the same times.
    times = {id(one.times_ms): one.times_ms for one in series}
    digits = {key: list(_varints(own)) for key, own in times.items()}
    message = b"".join(
        bytes_field(1, _time_series(one, digits[id(one.times_ms)])) for one in series
    )
    compressed: bytes = pa.compress(message, codec="snappy", asbytes=True)
    return compressed


def _time_series(one: StoredSeries, times: Sequence[bytes]) -> bytes:
    # Receivers demand labels in the order of their names.
    labels = sorted({"__name__": one.name, **one.labels}.items())
    head = b"".join(
        bytes_field(1, bytes_field(1, name.encode()) + bytes_field(2, text.encode()))
        for name, text in labels
    )
    samples = bytearray(_SAMPLE * len(one.values))
    step = len(_SAMPLE)
    values = _bytes_of(one.values)
    for number in range(8):
        samples[_VALUE_AT + number :: step] = values[number::8]
    for number, digits in enumerate(times):
        samples[_TIME_AT + number :: step] = digits
    return head + bytes(samples)


def _varints(times_ms: pa.Array) -> Iterable[bytes]:
    """Yield the first byte of the varint of each number, the second byte of each, and so on."""
    for number in range(_TIME_BYTES):
        digits = pc.bit_wise_and(pc.shift_right(times_ms, 7 * number), 0x7F)
        if number < _TIME_BYTES - 1:
            digits = pc.bit_wise_or(digits, 0x80)
        yield _bytes_of(digits.cast(pa.uint8()))


def _bytes_of(array: pa.Array) -> bytes:
    """Return the values of an array without nulls, as they are in memory (little endian)."""
    width = array.type.bit_width // 8
    content: bytes = array.buffers()[1].slice(array.offset * width, len(array) * width).to_pybytes()
    return content


def _texts(array: pa.Array) -> pa.Array:
    return array.cast(pa.string())


# VictoriaMetrics: JSON lines (docs.victoriametrics.com, "JSON line format").


def _json_lines(series: Sequence[StoredSeries]) -> bytes:
    # Most series of a device have the same times.
    times = {id(one.times_ms): one.times_ms for one in series}
    texts = {key: _joined(_texts(own)) for key, own in times.items()}
    return b"".join(
        b'{"metric":%b,"values":[%b],"timestamps":[%b]}\n'
        % (
            json.dumps({"__name__": one.name, **one.labels}).encode(),
            _joined(_texts(one.values)),
            texts[id(one.times_ms)],
        )
        for one in series
    )


def _joined(*parts: pa.Array | str) -> bytes:
    """Return the texts that the parts of each element make, with a comma between two texts."""
    return concatenated(pc.binary_join_element_wise(*parts, ",", "")).removesuffix(b",")


# OTLP over HTTP (opentelemetry.io/docs/specs/otlp; field numbers: opentelemetry-proto,
# metrics/v1/metrics.proto and collector/metrics/v1/metrics_service.proto). As JSON, each point has
# twice the bytes. The unit is in the name of a metric: a store would add the field `unit` again.

_CUMULATIVE = 2
_GZIP = 31
"""The format gzip, for zlib."""
_POINT_TIME, _POINT_VALUE = b"\x19", b"\x21"
"""The keys of a time (field 3) and of a double (field 4), both of 8 bytes."""


def _otlp(series: Sequence[StoredSeries]) -> bytes:
    # Most series of a device have the same times.
    times = {id(one.times_ms): one.times_ms for one in series}
    bytes_of = {key: _bytes_of(pc.multiply(own, 1_000_000)) for key, own in times.items()}
    named = sorted(series, key=attrgetter("name"))
    metrics = [
        piece
        for name, own in groupby(named, key=attrgetter("name"))
        for piece in _otlp_metric(name, list(own), bytes_of)
    ]
    scope = _nested(2, [bytes_field(1, bytes_field(1, b"teho")), *metrics])
    resource = bytes_field(1, _attribute(1, "service.name", "teho"))
    packer = zlib.compressobj(1, wbits=_GZIP)
    pieces = [packer.compress(piece) for piece in _nested(1, [resource, *scope])]
    return b"".join([*pieces, packer.flush()])


def _nested(field: int, pieces: Sequence[Piece]) -> list[Piece]:
    """Return a field with a message, in pieces. To join them would copy all values."""
    return [bytes_head(field, sum(map(len, pieces))), *pieces]


def _otlp_metric(
    name: str, series: Sequence[StoredSeries], times: Mapping[int, bytes]
) -> list[Piece]:
    points: list[Piece] = [_points(one, times[id(one.times_ms)]) for one in series]
    if series[0].is_counter:
        # A store adds `_total` to the name of a sum.
        name = name.removesuffix("_total")
        is_sum = int_field(2, _CUMULATIVE) + int_field(3, 1)
        kind = _nested(7, [*points, is_sum])
    else:
        kind = _nested(5, points)
    return _nested(2, [bytes_field(1, name.encode()), *kind])


def _points(one: StoredSeries, times: bytes) -> bytearray:
    """Return the points of a series, field 1 of a metric. All have the same attributes.

    Args:
        one: the series.
        times: of its values, in ns since 1970, as they are in memory.
    """
    attributes = _attributes(tuple(one.labels.items()))
    point = bytes_field(1, attributes + _POINT_TIME + bytes(8) + _POINT_VALUE + bytes(8))
    points = bytearray(point * len(one.values))
    step = len(point)
    values = _bytes_of(one.values)
    for number in range(8):
        points[step - 17 + number :: step] = times[number::8]
        points[step - 8 + number :: step] = values[number::8]
    return points


@lru_cache(maxsize=4096)
def _attributes(labels: tuple[tuple[str, str], ...]) -> bytes:
    return b"".join(_attribute(7, name, text) for name, text in labels)


def _attribute(field: int, name: str, text: str) -> bytes:
    value = bytes_field(1, text.encode())
    return bytes_field(field, bytes_field(1, name.encode()) + bytes_field(2, value))


def _check_otlp(answer: bytes) -> None:
    """Raise an error if the answer, in protobuf, says that values were rejected."""
    try:
        partial = fields_of(answer).get(1, b"")
        found = fields_of(partial) if isinstance(partial, bytes) else {}
    except ValueError:
        return  # another receiver's answer; its status says that it has accepted the values
    rejected, message = found.get(1, 0), found.get(2, b"")
    if isinstance(rejected, int) and rejected and isinstance(message, bytes):
        why = message.decode(errors="replace")
        raise StoreError(f"the store rejected {rejected} values: {why}")


def _check_nothing(_: bytes) -> None:
    """Accept every answer: the status of the answer says everything."""


FORMATS: Mapping[str, Format] = {
    "remote-write": Format(
        "/api/v1/write",
        {
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "snappy",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
        },
        _remote_write,
        _check_nothing,
        500_000,  # of 18 bytes
        can_be_queried=True,
    ),
    "victoriametrics": Format(
        "/api/v1/import",
        {"Content-Type": "application/json"},
        _json_lines,
        _check_nothing,
        500_000,  # of 23 bytes
        can_be_queried=True,
        flush="/internal/force_flush",
    ),
    "otlp": Format(
        "/v1/metrics",
        {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"},
        _otlp,
        _check_otlp,
        100_000,  # of up to 150 bytes before they are packed
        can_be_queried=False,
        threads=2,
    ),
}
