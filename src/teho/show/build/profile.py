"""The traces of a profiler as a document: the verdict, the parts of a step, the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from teho.model.document import Document, Fact, Level, Table, VerdictSeverity
from teho.model.trace import (
    Category,
    DeviceUse,
    Kernel,
    Operator,
    Parts,
    Profiled,
    Step,
    StepPicture,
    Trace,
)
from teho.profile.judge import (
    IDLE_WORDS,
    category_times,
    idle_reasons,
    is_wasteful,
    line_times,
    percent_of,
    shown_trace,
    trace_name,
)
from teho.show.build.layout import ColumnOf, column, document, listing, table
from teho.show.build.profile_causes import cause_table, speed_fact, speed_table
from teho.show.build.profile_memory import memory_facts, memory_tables
from teho.show.build.profile_names import short_kernel, short_operator
from teho.units import counted, format_time

__all__ = ["Part", "parts_of", "profile_document"]

T = TypeVar("T")
_TOP = 6
"""Number of kernels and operators at the default level."""
_MOST_RANKS = 8
"""Largest number of ranks that all are in the text, and all have tables of their steps."""
_NAMED = 2
"""Largest number of traces that are all named in the title."""
_CATEGORIES = 3
"""Number of categories at the head."""
_WAITING = (
    "The column waiting shows for what share of a step the rank waited in collectives until the "
    "last rank began"
)
_DEFINITIONS = """\
If the GPU does several things at the same time, this time counts only once. "Only copying" is the \
time in which the GPU copied and did nothing else.
The table shows the idle time for each reason. "Waiting for data": the program waited for its data \
loader. "Collective on CPU": the ranks exchanged data through the CPU. "After synchronising": the \
program had just waited for a result of the GPU. "Nothing launched yet": the program had not \
started the next kernel. "Between kernels": the next kernel was already started, but had to wait.
A kernel is a function that runs on the GPU. A kernel is launch-bound if the GPU was idle and \
waited until the program started this kernel. Each start takes some time to reach the GPU. Teho \
uses the shortest such time in the trace, but at most 10 µs. Kernels of all steps are counted.
The share of a kernel is its time, divided by the time of all kernels. The share of an operator is \
its time, divided by the time of all operators on the CPU.
Matrix kernels are matrix multiplications, convolutions and attention. A matrix kernel is counted \
only if its name shows whether it uses tensor cores.
The first sentence of this output names only parts that take at least 10 % of a step. This limit \
is Teho's own choice.
The time of a step is the duration of its event `ProfilerStep#N` on the CPU. Kernels and operators \
are counted in the whole trace.
"""
_MEMORY_DEFINITIONS = """\
The memory is what PyTorch allocated for tensors. The peak is the moment of the recorded steps at \
which the most memory was allocated. "In the backward pass" is what was allocated in the backward \
pass, mostly gradients. "In the optimizer step": inside `Optimizer.step`. "By loading or copying \
data": in PyTorch's data loader, or while a tensor was copied to the GPU. "In the forward pass": \
in any other part of the recorded steps. These are mostly results that the backward pass needs. \
"Before the recorded steps": parameters, the state of the optimizer, and all else that was \
allocated before, or in threads that the profiler does not record.
The operator is the innermost one that does more than allocate memory.
"""


class _Use(NamedTuple):
    """One device, with the trace of its rank."""

    trace: Trace
    device: DeviceUse


class Part(NamedTuple):
    """A row of the table of parts."""

    label: str
    time_s: float
    share: float


def profile_document(profiled: Profiled, commands: Sequence[str] = ()) -> Document:
    """Lay out the verdict and the figures of all traces.

    Args:
        profiled: the traces.
        commands: what can be done next.
    """
    traces = profiled.traces
    uses = [_Use(trace, device) for trace in traces for device in trace.devices]
    shown = shown_trace(traces)
    severity: VerdictSeverity = "warning" if is_wasteful(traces) else "good" if uses else "unknown"
    names = [Path(trace.path).name for trace in traces]
    named = " ".join(names) if len(names) <= _NAMED else f"{names[0]} and {len(names) - 1} more"
    return document(
        title=f"teho profile {named}",
        verdict=profiled.verdict,
        verdict_severity=severity,
        facts=tuple(_facts(profiled, shown)),
        tables=tuple(_tables(profiled, uses, shown)),
        lists=(
            listing("advice", "What to try", profiled.advice, "first"),
            listing("meaning", "What the figures mean", _definitions(traces), "why"),
        ),
        notes=profiled.notes,
        commands=tuple(commands),
        step=shown.picture,
    )


def _definitions(traces: Sequence[Trace]) -> list[str]:
    has_memory = any(trace.memory for trace in traces)
    return (_DEFINITIONS + _MEMORY_DEFINITIONS * has_memory).splitlines()


def _facts(profiled: Profiled, shown: Trace) -> Iterator[Fact]:
    traces = profiled.traces
    steps = sorted({trace.step_count for trace in traces})
    mean_s = sum(trace.step_s for trace in traces) / len(traces)
    if steps[0]:
        note = f"mean of {counted(steps[0], 'step')}" if len(steps) == 1 else "mean"
        yield Fact("step", "Step", format_time(mean_s), note=note)
    else:
        yield Fact("step", "Trace", format_time(mean_s))
    if len(traces) > 1:
        yield Fact("ranks", "Traces", len(traces))
    names = sorted({device.name for device in profiled.devices} - {""})
    if names:
        yield Fact("gpu", "GPU", ", ".join(names))
    launches = sum(device.launches for device in profiled.devices)
    if launches:
        bound = sum(device.launch_bound for device in profiled.devices)
        yield Fact(
            "launch_bound", "Kernels that started late", 100 * bound / launches, "%",
            f"{bound:,} of {launches:,}",
        )  # fmt: skip
    yield from _tensor_fact(shown)
    yield from speed_fact(shown)
    yield from memory_facts(shown)
    times = category_times(shown)
    lines = line_times(shown)
    if lines:
        share = f"{percent_of(lines[0][1], shown.kernel_s):.0f} %"
        yield Fact("line", "Most kernel time from", lines[0][0], note=share)
    if times:
        shares = [f"{name} {percent_of(time_s, shown.kernel_s):.0f} %" for name, time_s in times]
        yield Fact("kernels", "Kernel time by category", ", ".join(shares[:_CATEGORIES]))


def _tensor_fact(trace: Trace) -> Iterator[Fact]:
    """Yield the share of time with tensor cores, of kernels whose names show it."""
    known = [kernel for kernel in trace.kernels if kernel.tensor_cores is not None]
    total_s = sum(kernel.total_s for kernel in known)
    if total_s:
        used_s = sum(kernel.total_s for kernel in known if kernel.tensor_cores)
        yield Fact("tensor_cores", "Matrix kernels on tensor cores", 100 * used_s / total_s, "%")


def _tables(profiled: Profiled, uses: Sequence[_Use], shown: Trace) -> Iterator[Table]:
    of_trace = f" of {trace_name(shown, profiled.traces)}" if len(profiled.traces) > 1 else ""
    a_step = "a step" if shown.step_count else "the trace"
    if len(uses) == 1:
        yield _parts_table("parts", f"Parts of {a_step}", uses[0].device.mean)
    elif uses:
        yield _ranks_table(profiled, uses)
    elif len(profiled.traces) > 1:
        yield _cpu_ranks_table(profiled.traces)
    yield from memory_tables(profiled.traces, shown)
    if uses:
        yield _kernel_table(shown, of_trace)
        yield _line_table(shown, of_trace)
        yield _category_table(shown, of_trace)
        yield _all_kernels_table(shown, of_trace)
    else:
        yield _operator_table(shown, of_trace, level="default")
    detailed = uses if len(uses) <= _MOST_RANKS else [use for use in uses if use.trace is shown]
    if len(uses) > 1:
        for number, use in enumerate(detailed):
            title = f"Parts of {a_step} on {_place(use, profiled.traces)}"
            yield _parts_table(f"parts_{number}", title, use.device.mean, level="why")
    if shown.picture:
        yield _pauses_table(shown.picture, of_trace)
    for number, use in enumerate(detailed):
        at = f" on {_place(use, profiled.traces)}" if len(uses) > 1 else ""
        yield _steps_table(f"steps_{number}", f"Steps{at}", use)
    if shown.efficiencies:
        yield speed_table(shown, of_trace)
    if shown.causes:
        yield cause_table(shown, of_trace)
    if uses:
        yield _operator_table(shown, of_trace, level="why")


def parts_of(parts: Parts) -> Iterator[Part]:
    """Yield the parts of a step; their sum is the step."""
    rows = [
        ("computing", parts.compute_s),
        ("only exchanging data", parts.exposed_collective_s),
        ("only copying", parts.exposed_copy_s),
        *((IDLE_WORDS[one.key].label, one.time_s) for one in idle_reasons(parts)),
    ]
    for label, time_s in rows:
        if time_s:
            yield Part(label, time_s, percent_of(time_s, parts.elapsed_s))


def _parts_table(key: str, title: str, parts: Parts, *, level: Level = "default") -> Table:
    hidden = [
        f"{what} while computing: {format_time(time_s)}"
        for what, time_s in (
            ("exchanging data", parts.hidden_collective_s),
            ("copying", parts.hidden_copy_s),
        )
        if time_s
    ]
    made = table(
        key, title, parts_of(parts),
        column("part", "the GPU was", lambda row: row.label),
        column("time", "time", lambda row: row.time_s, unit="s", shown_in="ms", decimals=3),
        column("share", "share", lambda row: row.share, unit="%"),
        note=f"Also {', '.join(hidden)}." if hidden else "",
    )  # fmt: skip
    return _at(made, level)


def _ranks_table(profiled: Profiled, uses: Sequence[_Use]) -> Table:
    """Return a table with a row for each device of each rank."""

    def share(time_s: float, use: _Use) -> float:
        return percent_of(time_s, use.device.mean.elapsed_s)

    def reason(use: _Use) -> str:
        reasons = idle_reasons(use.device.mean)
        return IDLE_WORDS[reasons[0].key].short if reasons else ""

    compared = max((one.waits.collectives for one in profiled.traces if one.waits), default=0)
    made = table(
        "ranks",
        "Ranks" if len(profiled.traces) > 1 else "GPUs",
        uses,
        column("rank", "rank", lambda use: _place(use, profiled.traces)),
        column("step", "step", lambda use: use.trace.step_s, unit="s", shown_in="ms", decimals=2),
        column("compute", "computing", lambda use: share(use.device.mean.compute_s, use), unit="%"),
        column(
            "collective", "exchanging",
            lambda use: share(use.device.mean.exposed_collective_s, use), unit="%",
        ),
        column("waiting", "waiting", lambda use: _waiting(use.trace), unit="%")
        if compared else None,
        column(
            "copy", "copying", lambda use: share(use.device.mean.exposed_copy_s, use),
            unit="%", aside=bool(compared),
        ),
        column("idle", "idle", lambda use: share(use.device.mean.idle_s, use), unit="%"),
        column("reason", "mostly", reason),
        note=" ".join(filter(None, (
            ("The columns exchanging and copying do not include the time in which the GPU also "
             "computed."),
            f"{_WAITING} ({counted(compared, 'collective')} compared)." if compared else "",
        ))),
    )  # fmt: skip
    return _extreme_rows(made)


def _cpu_ranks_table(traces: Sequence[Trace]) -> Table:
    """Return a table with a row for each rank of a program without a GPU."""
    made = table(
        "ranks",
        "Ranks",
        traces,
        column("rank", "rank", lambda trace: trace_name(trace, traces)),
        column("step", "step", lambda trace: trace.step_s, unit="s", shown_in="ms", decimals=2),
        column("data", "waiting for data",
               lambda trace: percent_of(trace.data_s, trace.step_s), unit="%"),
        column("waiting", "waiting", _waiting, unit="%"),
        note=f"{_WAITING}.",
    )  # fmt: skip
    return _extreme_rows(made)


def _extreme_rows(made: Table) -> Table:
    """Return a table of ranks; of many, only those are shown that waited least and most."""
    if len(made.rows) <= _MOST_RANKS:
        return made

    def key(place: int) -> tuple[float, float]:
        cells = (made.rows[place].get(name) for name in ("waiting", "step"))
        waiting, step_s = (one if isinstance(one, float) else 0.0 for one in cells)
        return waiting, step_s

    order = sorted(range(len(made.rows)), key=key)
    half = _MOST_RANKS // 2
    return msgspec.structs.replace(
        made,
        shown=tuple(sorted([*order[:half], *order[-half:]])),
        rest=f"and {len(order) - 2 * half} more ranks; the table has the ranks that waited least "
        "and most",
    )


def _waiting(trace: Trace) -> float | None:
    """Return which share of a step a rank waited for others."""
    return percent_of(trace.waits.waited_s, trace.step_s) if trace.waits else None


def _category_table(trace: Trace, of_trace: str) -> Table:
    steps = max(trace.step_count, 1)
    total_s = trace.kernel_s
    counts = {
        name: sum(kernel.count for kernel in trace.kernels if kernel.category == name)
        for name, _ in category_times(trace)
    }

    def per_step(pair: tuple[Category, float]) -> float:
        return pair[1] / steps

    made = table(
        "categories",
        f"Kernels by category{of_trace}",
        category_times(trace),
        column("category", "category", lambda pair: pair[0]),
        column("time", "time", per_step, unit="s", shown_in="ms", decimals=3),
        column("share", "share", lambda pair: percent_of(pair[1], total_s), unit="%"),
        _count(trace, lambda pair: counts[pair[0]], counts.values()),
        column(
            "mean", "mean", lambda pair: pair[1] / counts[pair[0]], unit="s", shown_in="µs",
            decimals=1,
        ),
    )  # fmt: skip
    return _at(made, "why")


def _kernel_table(trace: Trace, of_trace: str) -> Table:
    total_s = trace.kernel_s

    made = table(
        "kernels",
        f"Top kernels{of_trace}",
        trace.kernels,
        column("kernel", "kernel", lambda one: short_kernel(one.name)),
        column("category", "category", lambda one: one.category),
        column("operator", "operator", _first_operator),
        column("share", "share", lambda one: percent_of(one.total_s, total_s), unit="%"),
        _count(trace, lambda one: one.count, (one.count for one in trace.kernels)),
        column("mean", "mean", lambda one: one.mean_s, unit="s", shown_in="µs", decimals=1),
    )  # fmt: skip
    return _first_rows(made, "kernels")


def _all_kernels_table(trace: Trace, of_trace: str) -> Table:
    """Return a table of all kernels, with what the table of the top kernels has no room for."""
    steps = max(trace.step_count, 1)

    def tensor(kernel: Kernel) -> str | None:
        return None if kernel.tensor_cores is None else "yes" if kernel.tensor_cores else "no"

    made = table(
        "all_kernels",
        f"All kernels{of_trace}",
        trace.kernels,
        column("kernel", "kernel", lambda one: short_kernel(one.name)),
        column("category", "category", lambda one: one.category),
        column("time", "time", lambda one: one.total_s / steps, unit="s", shown_in="ms",
               decimals=3),
        column("bound", "launch-bound", lambda one: 100 * one.launch_bound / one.count, unit="%"),
        column("tensor", "tensor cores", tensor),
        note="Each time is for one step.",
    )  # fmt: skip
    return _at(made, "why")


def _line_table(trace: Trace, of_trace: str) -> Table:
    """Return a table of the lines of the program; without rows if the trace has no stacks."""
    total_s, steps = trace.kernel_s, max(trace.step_count, 1)
    made = table(
        "lines",
        f"Kernel time by line of the program{of_trace}",
        line_times(trace),
        column("line", "line", lambda pair: pair[0]),
        column("share", "share", lambda pair: percent_of(pair[1], total_s), unit="%"),
        column("time", "time", lambda pair: pair[1] / steps, unit="s", shown_in="ms", decimals=3),
    )
    return _first_rows(made, "lines")


def _count(trace: Trace, number: Callable[[T], int], counts: Iterable[int]) -> ColumnOf[T]:
    """Return the column with the number of executions, per step if the trace has steps."""
    steps = max(trace.step_count, 1)
    label = "per step" if trace.step_count else "number"
    decimals = 1 if any(count % steps for count in counts) else 0
    return column("count", label, lambda one: number(one) / steps, decimals=decimals)


def _operator_table(trace: Trace, of_trace: str, *, level: Level) -> Table:
    steps = max(trace.step_count, 1)
    total_s = sum(one.self_s for one in trace.operators)

    def share(one: Operator) -> float:
        return percent_of(one.self_s, total_s)

    made = table(
        "operators",
        f"Top operators on the CPU{of_trace}",
        trace.operators,
        column("operator", "operator", lambda one: one.name),
        column("share", "share", share, unit="%"),
        _count(trace, lambda one: one.count, (one.count for one in trace.operators)),
        column("self", "own time", lambda one: one.self_s / steps, unit="s", shown_in="ms",
               decimals=3),
        column("total", "with inner", lambda one: one.total_s / steps, unit="s", shown_in="ms",
               decimals=3),
        note="The column own time does not include the time of the operators that this operator "
        "calls.",
    )  # fmt: skip
    return _at(_first_rows(made, "operators"), level)


def _steps_table(key: str, title: str, use: _Use) -> Table:
    def ms(name: str, label: str) -> ColumnOf[Step]:
        return column(
            name, label, lambda step: getattr(step.parts, f"{name}_s"), unit="s", shown_in="ms",
            decimals=3,
        )  # fmt: skip

    made = table(
        key, title, use.device.steps,
        column("step", "step", lambda step: "" if step.number is None else str(step.number)),
        ms("elapsed", "time"),
        ms("compute", "computing"),
        ms("collective", "exchanging"),
        ms("copy", "copying"),
        ms("idle", "idle"),
    )  # fmt: skip
    return _at(made, "why")


def _pauses_table(picture: StepPicture, of_trace: str) -> Table:
    made = table(
        "pauses", f"Longest idle times{of_trace}", picture.pauses,
        column("after", "after", lambda one: one.after_s, unit="s", shown_in="ms", decimals=3),
        column("time", "idle", lambda one: one.time_s, unit="s", shown_in="ms", decimals=3),
        column("reason", "reason", lambda one: IDLE_WORDS[one.reason].short),
        column("kernel", "then", lambda one: short_kernel(one.kernel) if one.kernel else None),
        column(
            "operator", "operator",
            lambda one: short_operator(one.operator) if one.operator else None,
        ),
        column("line", "line", lambda one: one.line or None),
        note=""
        if picture.step is None
        else f"These idle times are in step {picture.step}, which the HTML page draws.",
    )  # fmt: skip
    return _at(made, "why")


def _first_rows(made: Table, noun: str) -> Table:
    more = len(made.rows) - _TOP
    if more <= 0:
        return made
    shares = [row["share"] for row in made.rows[_TOP:]]
    rest = sum(share for share in shares if isinstance(share, float))
    return msgspec.structs.replace(
        made, shown=tuple(range(_TOP)), rest=f"and {more} more {noun}: {rest:.0f} %"
    )


def _at(made: Table, level: Level) -> Table:
    return msgspec.structs.replace(made, level=level)


def _place(use: _Use, traces: Sequence[Trace]) -> str:
    gpu = f"GPU {use.device.device}"
    if len(traces) == 1:
        return gpu
    name = trace_name(use.trace, traces)
    return f"{name}, {gpu}" if len(use.trace.devices) > 1 else name


def _first_operator(kernel: Kernel) -> str | None:
    return short_operator(kernel.operators[0].name) if kernel.operators else None
