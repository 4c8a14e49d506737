"""The memory in traces as facts and tables: the peak, and what was allocated then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from teho.model.document import Fact, Level, Table
from teho.model.trace import Trace
from teho.model.trace_memory import MemoryOwner, MemoryPhase, MemoryUse
from teho.profile.judge import percent_of, trace_name
from teho.profile.memory_words import DURING, device_name, main_memory
from teho.show.build.layout import ColumnOf, column, table
from teho.show.build.profile_names import short_operator
from teho.units import counted, format_bytes

__all__ = ["amount_column", "memory_facts", "memory_tables"]

T = TypeVar("T")
_TOP = 4
"""Number of operators and lines at the default level."""
_OPERATOR_WIDTH = 28
_GIB = 1024**3
_ONLY_RECORDED = (
    "On the CPU, PyTorch reports only the memory that was allocated in the recorded steps."
)
_HEADINGS: dict[MemoryPhase, str] = {
    "before": "before",
    "input": "data",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
}


class _Use(NamedTuple):
    """The memory of one device, with the trace of its rank."""

    trace: Trace
    memory: MemoryUse


def memory_facts(shown: Trace) -> Iterator[Fact]:
    """Yield the peak of each GPU, or else of the memory of the node."""
    uses = main_memory(shown)
    for one in uses:
        of_device = f" of {device_name(one)}" if len(uses) > 1 or one.device is None else ""
        key = "memory_peak" + (f"_{one.device}" if len(uses) > 1 else "")
        note = f"of {format_bytes(one.device_bytes)}" if one.device_bytes else ""
        yield Fact(key, f"Memory{of_device} at the peak", one.peak_bytes, "bytes", note)


def memory_tables(traces: Sequence[Trace], shown: Trace) -> Iterator[Table]:
    """Yield the tables of the memory; without any if no trace has it.

    Args:
        traces: of one program.
        shown: the one whose kernels are shown.
    """
    uses = [_Use(trace, one) for trace in traces for one in main_memory(trace)]
    if not uses:
        return
    if len(uses) > 1:
        yield _devices_table(traces, uses)
    of_shown = [use for use in uses if use.trace is shown]
    if not of_shown:
        return
    largest = max(of_shown, key=lambda use: use.memory.peak_bytes)
    rest = [_Use(shown, one) for one in shown.memory if one is not largest.memory]
    yield _parts_table("memory", largest, traces, "default")
    lines = _owners_table("memory_lines", "line", largest, traces, "default")
    yield lines
    level: Level = "why" if lines.rows else "default"
    yield _owners_table("memory_operators", "operator", largest, traces, level)
    for number, use in enumerate(rest):
        yield _parts_table(f"memory_{number}", use, traces, "why")
    yield _steps_table(largest, traces)


def _place(use: _Use, traces: Sequence[Trace]) -> str:
    name = device_name(use.memory)
    return name if len(traces) == 1 else f"{name}, {trace_name(use.trace, traces)}"


def amount_column(key: str, label: str, most: int, cell: Callable[[T], int | None]) -> ColumnOf[T]:
    """Return a column of bytes, in the unit that fits the largest of them."""
    unit = "GiB" if most >= _GIB else "MiB"
    return column(key, label, cell, unit="bytes", shown_in=unit, decimals=2)


def _parts_table(key: str, use: _Use, traces: Sequence[Trace], level: Level) -> Table:
    memory = use.memory
    made = table(
        key,
        f"Memory of {_place(use, traces)} at its peak",
        memory.parts,
        column("part", "it was allocated", lambda one: DURING[one.phase]),
        amount_column("bytes", "memory", memory.peak_bytes, lambda one: one.bytes),
        column("share", "share", lambda one: percent_of(one.bytes, memory.peak_bytes), unit="%"),
        column("count", "blocks", lambda one: one.count, aside=True),
        note=" ".join(_notes(memory)),
    )  # fmt: skip
    return msgspec.structs.replace(made, level=level)


def _notes(memory: MemoryUse) -> Iterator[str]:
    """Yield when the peak was, and what else is known about the device."""
    when = DURING[memory.during].replace("by ", "while ") if memory.during else ""
    step = f"step {memory.step}" if memory.step is not None else ""
    if when and memory.during != "before":
        yield f"The peak was {f'in {step}, ' if step else ''}{when}."
    elif step:
        yield f"The peak was at the start of {step}."
    if memory.device is None:
        yield _ONLY_RECORDED
    if memory.reserved_bytes:
        reserved = format_bytes(memory.reserved_bytes)
        yield f"At the peak, PyTorch had reserved {reserved} of the GPU's memory."


def _devices_table(traces: Sequence[Trace], uses: Sequence[_Use]) -> Table:
    """Return a table with a row for each device of each rank."""
    most = max(use.memory.peak_bytes for use in uses)

    def phase_column(phase: MemoryPhase) -> ColumnOf[_Use]:
        def cell(use: _Use) -> int | None:
            return next((one.bytes for one in use.memory.parts if one.phase == phase), None)

        return amount_column(phase, _HEADINGS[phase], most, cell)

    return table(
        "memory_ranks",
        "Most memory",
        uses,
        column("place", "of", lambda use: _place(use, traces)),
        amount_column("peak", "all", most, lambda use: use.memory.peak_bytes),
        *(phase_column(phase) for phase in _HEADINGS),
        note="The columns show when the memory was allocated.",
        only_known=True,
    )


def _owners_table(key: str, noun: str, use: _Use, traces: Sequence[Trace], level: Level) -> Table:
    """Return a table of the operators or the lines that had allocated the memory."""
    memory = use.memory

    def name(one: MemoryOwner) -> str:
        if noun == "line":
            return one.name or "unknown"
        short = one.name.removeprefix("torch::autograd::")
        return short_operator(short, _OPERATOR_WIDTH) if short else "without an operator"

    made = table(
        key,
        f"Memory of {_place(use, traces)} at its peak by {noun}",
        memory.lines if noun == "line" else memory.operators,
        column(noun, noun, name),
        column("phase", "it was allocated", lambda one: DURING[one.phase]),
        amount_column("bytes", "memory", memory.peak_bytes, lambda one: one.bytes),
        column("share", "share", lambda one: percent_of(one.bytes, memory.peak_bytes), unit="%"),
        column("count", "blocks", lambda one: one.count, aside=True),
    )  # fmt: skip
    more = len(made.rows) - _TOP
    if more > 0:
        shares = [row["share"] for row in made.rows[_TOP:]]
        rest = sum(share for share in shares if isinstance(share, float))
        made = msgspec.structs.replace(
            made,
            shown=tuple(range(_TOP)),
            rest=f"and {counted(more, f'more {noun}')}: {rest:.0f} %",
        )
    return msgspec.structs.replace(made, level=level)


def _steps_table(use: _Use, traces: Sequence[Trace]) -> Table:
    most = use.memory.peak_bytes
    made = table(
        "memory_steps",
        f"Memory of {_place(use, traces)} in each step",
        use.memory.steps,
        column("step", "step", lambda one: "" if one.number is None else str(one.number)),
        amount_column("peak", "most", most, lambda one: one.peak_bytes),
        amount_column("end", "at the end", most, lambda one: one.end_bytes),
    )
    return msgspec.structs.replace(made, level="why")
