"""The document of `teho diff` for traces: which parts of a step, kernels and operators changed."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.model.document import Document, Fact, Table
from teho.model.trace import Profiled, Trace, mean_parts
from teho.profile.judge import category_times, percent_of, shown_trace
from teho.profile.memory_words import DURING, main_memory
from teho.show.build.layout import column, document, table
from teho.show.build.profile import parts_of
from teho.show.build.profile_memory import amount_column
from teho.show.build.profile_names import short_kernel, short_operator
from teho.store.traces import base_name
from teho.units import counted, format_quantity, format_time

__all__ = ["trace_diff_document"]

_EQUAL_PERCENT = 5.0
"""Differences below this count as equal, as in `teho compare`."""
_OTHER_KERNELS_PERCENT = 50.0
"""Teho's own choice. If kernels that only one trace has take a larger share of its kernel time, the
programs may differ."""
_SMALLEST_S = 0.5e-6
_NAME_WIDTH = 20
_TOP = 8
"""Number of kernels and operators at the default level."""


class _Pair(NamedTuple):
    """One row of a table: the mean time of a step in each of the traces; None: it did not occur."""

    label: str
    first_s: float | None
    second_s: float | None

    @property
    def difference_s(self) -> float:
        return (self.second_s or 0.0) - (self.first_s or 0.0)

    @property
    def change_s(self) -> float:
        """Return the difference; 0 if it is too small for the decimals of the table."""
        return self.difference_s if abs(self.difference_s) >= _SMALLEST_S else 0.0


def trace_diff_document(first: Profiled, second: Profiled, names: Sequence[str]) -> Document:
    """Return the document about two traces, or the traces of two programs with several ranks.

    Args:
        first: what the other one is compared with.
        second: the other one.
        names: of both, as the user gave them.
    """
    both = (first, second)
    given, names = names, _short(names)
    shown = [shown_trace(one.traces) for one in both]
    parts = _pairs([_parts(one) for one in both])
    kernels = _pairs([_kernels(one) for one in shown])
    operators = _pairs([_operators(one) for one in shown])
    categories = _pairs([dict(_per_step(one, category_times(one))) for one in shown])
    more = any(len(one.traces) > 1 for one in both)
    of_rank = " of the rank with the longest step" if more else ""
    a_step = "a step" if all(one.step_count for one in shown) else "the trace"
    return document(
        title=f"teho diff {' '.join(names)}",
        verdict=_verdict(both, names, parts),
        verdict_severity="remark",
        facts=tuple(_facts(both, names)),
        tables=(
            _table("parts", f"Parts of {a_step}", "the GPU was", names, parts),
            _first_rows(
                _table("kernels", f"Kernels{of_rank}", "kernel", names, kernels), "kernels"
            ),
            _first_rows(
                _table("operators", f"Operators on the CPU{of_rank}", "operator", names, operators),
                "operators",
            ),
            msgspec.structs.replace(
                _table(
                    "categories", f"Kernels by category{of_rank}", "category", names, categories
                ),
                level="why",
            ),
            *_memory_tables(shown, names),
        ),
        notes=tuple(_notes(both, shown, names)),
        commands=tuple(f"`teho profile {shlex.quote(name)}`" for name in given),
    )


def _short(names: Sequence[str]) -> list[str]:
    """Return the names without folders and endings, if they still differ."""
    short = [_cut(base_name(Path(name))) for name in names]
    return short if short[0] != short[1] else ["first", "second"]


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else f"{name[: _NAME_WIDTH - 1]}…"


def _step_s(profiled: Profiled) -> float:
    return sum(trace.step_s for trace in profiled.traces) / len(profiled.traces)


def _parts(profiled: Profiled) -> dict[str, float]:
    """Return the mean parts of a step of all devices."""
    devices = [device.mean for device in profiled.devices]
    return {part.label: part.time_s for part in parts_of(mean_parts(devices))} if devices else {}


def _per_step(trace: Trace, times: Iterable[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    for name, time_s in times:
        yield name, time_s / max(trace.step_count, 1)


def _kernels(trace: Trace) -> dict[str, float]:
    """Return the time of each kernel by its short name; variants of one template are one row."""
    return _summed(trace, ((short_kernel(one.name), one.total_s) for one in trace.kernels))


def _operators(trace: Trace) -> dict[str, float]:
    return _summed(trace, ((short_operator(one.name), one.self_s) for one in trace.operators))


def _summed(trace: Trace, times: Iterable[tuple[str, float]]) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for name, time_s in _per_step(trace, times):
        sums[name] += time_s
    return sums


def _pairs(times: Sequence[Mapping[str, float]]) -> list[_Pair]:
    """Return a row for each name, the largest difference first."""
    first, second = times
    pairs = [_Pair(name, first.get(name), second.get(name)) for name in {**first, **second}]
    return sorted(pairs, key=lambda one: -abs(one.difference_s))


def _table(key: str, title: str, label: str, names: Sequence[str], pairs: list[_Pair]) -> Table:
    longest = max((max(one.first_s or 0, one.second_s or 0) for one in pairs), default=0.0)
    decimals = 3 if longest < 0.1 else 1
    return table(
        key, title, pairs,
        column("what", label, lambda one: one.label),
        column("first", names[0], lambda one: one.first_s, unit="s", shown_in="ms",
               decimals=decimals),
        column("second", names[1], lambda one: one.second_s, unit="s", shown_in="ms",
               decimals=decimals),
        column("difference", "difference", lambda one: one.change_s, unit="s", shown_in="ms",
               decimals=decimals),
    )  # fmt: skip


_AMOUNTS = ("first", "second", "difference")


class _Amounts(NamedTuple):
    """One row of the table of memory, in bytes; None: the trace does not have this amount."""

    label: str
    first: int | None
    second: int | None

    @property
    def difference(self) -> int | None:
        """None if one of the amounts is not known."""
        return None if self.first is None or self.second is None else self.second - self.first


def _memory_tables(shown: Sequence[Trace], names: Sequence[str]) -> Iterator[Table]:
    """Yield the table of the peaks of memory, if both traces have the memory of the same device."""
    both = [max(main_memory(one), key=lambda use: use.peak_bytes, default=None) for one in shown]
    first, second = both
    if first is None or second is None or (first.device is None) is not (second.device is None):
        return
    amounts = [{part.phase: part.bytes for part in one.parts} for one in (first, second)]
    rows = [_Amounts("all", first.peak_bytes, second.peak_bytes)] + [
        _Amounts(words, *(one.get(phase) for one in amounts))
        for phase, words in DURING.items()
        if any(phase in one for one in amounts)
    ]
    most = max(first.peak_bytes, second.peak_bytes)
    yield table(
        "memory",
        "Memory at its peak",
        rows,
        column("part", "it was allocated", lambda one: one.label),
        *(
            amount_column(key, label, most, attrgetter(key))
            for key, label in zip(_AMOUNTS, (*names, "difference"), strict=True)
        ),
    )


def _first_rows(made: Table, noun: str) -> Table:
    more = len(made.rows) - _TOP
    if more <= 0:
        return made
    return msgspec.structs.replace(
        made, shown=tuple(range(_TOP)), rest=f"and {more} {noun} that changed less"
    )


def _verdict(both: Sequence[Profiled], names: Sequence[str], parts: Sequence[_Pair]) -> str:
    before_s, after_s = map(_step_s, both)
    what = "A step" if all(one.traces[0].step_count for one in both) else "The trace"
    change = 100 * (after_s - before_s) / before_s if before_s else 0.0
    times = f"{format_time(before_s)} in {names[0]}, {format_time(after_s)} in {names[1]}"
    if abs(change) < _EQUAL_PERCENT:
        return f"{what} takes about equally long: {times}."
    more = "more" if change > 0 else "less"
    sentence = f"{what} takes {format_quantity(abs(change), '%')} {more} time: {times}."
    largest = next((one for one in parts if one.difference_s * change > 0), None)
    if largest is None:
        return sentence
    verb = "grew" if largest.difference_s > 0 else "fell"
    return (
        f'{sentence} The largest change: "{largest.label}" {verb} from '
        f"{format_time(largest.first_s or 0.0)} to {format_time(largest.second_s or 0.0)}."
    )


def _facts(both: Sequence[Profiled], names: Sequence[str]) -> Iterator[Fact]:
    for key, name, one in zip(("first", "second"), names, both, strict=True):
        gpus = ", ".join(sorted({device.name for device in one.devices} - {""}))
        ranks = f" of {len(one.traces)} ranks" if len(one.traces) > 1 else ""
        steps = one.traces[0].step_count
        yield Fact(key, name, counted(steps, "step") + ranks if steps else "no steps", note=gpus)


def _notes(both: Sequence[Profiled], shown: Sequence[Trace], names: Sequence[str]) -> Iterator[str]:
    yield (
        "Each value is the mean of the recorded steps. With only a few steps, the values vary by "
        "chance. The profiler itself slows down the CPU. So compare the runs also without the "
        "profiler, with `teho compare`."
    )
    gpus = [{device.name for device in one.devices} for one in both]
    without = [name for name, one in zip(names, both, strict=True) if not one.devices]
    if without:
        yield f"No work of a GPU is in {' and '.join(without)}."
    elif gpus[0] != gpus[1]:
        yield "The traces are from different GPUs, so the same program has other kernels."
    elif max(shares := _only_in_one(*map(_kernels, shown))) > _OTHER_KERNELS_PERCENT:
        first, second = (format_quantity(share, "%") for share in shares)
        yield (
            f"Kernels that only one of the traces has took {first} of the kernel time in "
            f"{names[0]} and {second} in {names[1]}. So the two programs, and the work of a "
            "step, may differ."
        )
    if len({one.has_stacks for one in shown}) > 1:
        yield (
            "Only one of the traces has stacks. Recording stacks slows down the CPU, so operators "
            "take longer in this trace."
        )
    if bool(shown[0].step_count) != bool(shown[1].step_count):
        yield "Only one of the traces has steps. The values of the other trace are for all of it."


def _only_in_one(first: Mapping[str, float], second: Mapping[str, float]) -> tuple[float, float]:
    """Return the shares of the times in % whose names the other one does not have."""

    def share(own: Mapping[str, float], other: Mapping[str, float]) -> float:
        only_s = sum(time_s for name, time_s in own.items() if name not in other)
        return percent_of(only_s, sum(own.values()))

    return share(first, second), share(second, first)
