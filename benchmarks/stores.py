"""This section shows whether a real Prometheus and VictoriaMetrics return the exported values.

The recording is generated (benchmarks/generate.py): two nodes with 8 GPUs each, 3 days. The
benchmark compares each value that a store returns with the value in the recording, and also
compares the time and the labels of the value. Prometheus must return the same 64 bits.
VictoriaMetrics stores decimal numbers of about 13 digits. The gauges in a recording have 32 bits,
and VictoriaMetrics must return the same 32 bits. Its counters must agree to 12 digits. The row
*differences* is the number of values that do not agree. If there are any, the benchmark asks the
store again after 65 s, and the row *differences at once* has the number of the first answer. The
time of an export is the time until the store has accepted all values.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from functools import partial
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from big_report import generated
from common import Figures, Row, say, stub_environment
from real_stores import KINDS, Running, lacks, running

from teho.jobs.export.openmetrics import Recorded
from teho.jobs.export.parts import parts_of
from teho.jobs.export.push import push
from teho.store.read import read_run

_FORMS = {"prometheus": ("remote-write",), "victoriametrics": ("remote-write", "victoriametrics")}
_ROUNDS = {"prometheus": "", "victoriametrics": " (gauges exactly, counters to 12 digits)"}
"""How the values of a store are compared, if not all bits are the same."""
_AGAIN_S = 65.0
"""Prometheus moves the values from its memory into blocks. In two of 14 exports, its first answer
did not have the first values of some series: docs/decisions/export-to-stores.md has possible
causes."""
_RANGE = "[4d]"
_DAY_S = 86_400

Values = dict[tuple[str, ...], dict[int, float]]


class _Measured(NamedTuple):
    elapsed_s: float
    values: int
    different: int
    different_at_once: int


def measure(*, quick: bool) -> list[Row]:
    days = 0.02 if quick else 3.0
    rows = []
    with stub_environment() as env:
        home = generated(2, days, env)
        (directory,) = (home / "runs").iterdir()
        recorded = Recorded(read_run(directory), directory, "anna")
        for kind in KINDS:
            if why := lacks(kind):
                say(f"{kind} is left out: {why}")
                continue
            for form in _FORMS[kind]:
                with TemporaryDirectory() as folder, running(kind, Path(folder), ()) as store:
                    found = _measure(recorded, store, form, Path(folder))
                what = f"{found.values:,} values to {kind}, `--to {form}`"
                rows += [
                    Row(what=f"{what}, time", unit="s", ours=Figures.of(found.elapsed_s)),
                    Row(what=f"{what}, differences{_ROUNDS[kind]}", unit="",
                        ours=Figures.of(found.different), budget=0),
                ]  # fmt: skip
                if found.different_at_once:
                    rows.append(Row(what=f"{what}, differences at once", unit="",
                                    ours=Figures.of(found.different_at_once)))  # fmt: skip
    return rows


def _measure(recorded: Recorded, store: Running, form: str, folder: Path) -> _Measured:
    begin_s = time.perf_counter()
    push([recorded], store.store, form, folder, 60.0, [])
    elapsed_s = time.perf_counter() - begin_s
    store.flush()
    count, at_once = _compare(recorded, store)
    different = at_once
    if at_once:
        time.sleep(_AGAIN_S)
        _, different = _compare(recorded, store)
    return _Measured(elapsed_s, count, different, at_once)


def _compare(recorded: Recorded, store: Running) -> tuple[int, int]:
    """Return the number of values, and of those that the store does not return as they were."""
    different = count = 0
    for node in recorded.run.nodes:
        expected: Values = {}
        counters: set[tuple[str, ...]] = set()
        for part in parts_of(recorded, {}, [], 250_000):
            for one in part.series if part.node == node.name else ():
                key = _key({"__name__": one.name, **one.labels})
                if one.is_counter:
                    counters.add(key)
                own = expected.setdefault(key, {})
                own.update(zip(one.times_ms.to_pylist(), one.values.to_pylist(), strict=True))
        count += sum(map(len, expected.values()))
        for key, values in _returned(recorded, store, node.name):
            own = expected.pop(key, {})
            is_equal = partial(_is_equal, kind=store.kind, is_counter=key in counters)
            different += len(own.keys() ^ values.keys())
            different += sum(
                values[at] != value and not is_equal(value, values[at])
                for at, value in own.items()
                if at in values
            )
        different += sum(map(len, expected.values()))
    return count, different


def _is_equal(value: float, returned: float, *, kind: str, is_counter: bool) -> bool:
    """Return whether a store that rounds returned a value."""
    if kind == "prometheus":
        return returned == value
    if is_counter:
        return isclose(value, returned, rel_tol=1e-12)
    return _as_float32(returned) == _as_float32(value) == value


def _as_float32(value: float) -> float:
    number: float = struct.unpack("f", struct.pack("f", value))[0]
    return number


def _key(labels: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={text}" for name, text in sorted(labels.items()))


def _returned(
    recorded: Recorded, store: Running, node: str
) -> Iterator[tuple[tuple[str, ...], dict[int, float]]]:
    """Yield each series of a node that the store has."""
    at_s = recorded.run.started_at.timestamp() + 3.5 * _DAY_S
    for one in store.asked(f'{{node="{node}"}}{_RANGE}', at_s):
        pairs = {round(1000 * float(at)): float(value) for at, value in one["values"]}
        # The same moment twice would be hidden by the keys.
        assert len(pairs) == len(one["values"])
        yield _key(one["metric"]), pairs
