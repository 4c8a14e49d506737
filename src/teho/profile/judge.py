"""The verdict on traces, what to change, and what limits the figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from teho.model.trace import Category, DeviceUse, Parts, Profiled, Trace
from teho.profile.advice import advice_of, is_compiling
from teho.profile.figures import (
    IDLE_WORDS,
    LARGE_SHARE,
    IdleReason,
    devices_of,
    idle_reasons,
    is_of_xla,
    mean_of,
    percent_of,
    shown_trace,
    trace_name,
    waiting_of,
)
from teho.profile.memory_words import memory_notes
from teho.units import counted, format_quantity, format_time

__all__ = [
    "CATEGORY_WORDS",
    "IDLE_WORDS",
    "LARGE_SHARE",
    "IdleReason",
    "category_times",
    "idle_reasons",
    "is_wasteful",
    "judged",
    "line_times",
    "percent_of",
    "shown_trace",
    "trace_name",
]

_MOST = 0.90
"""Share of the idle time from which one reason counts as the only one."""
_CLOCKS_S = 1e-3
"""Difference between the clocks of two nodes from which it is worth a note. It is Teho's own
choice: the same collective ends on all ranks within some tens of µs."""
_FUNCTIONS = 2
"""Largest number of compiled functions that the verdict names."""
_BEHIND = 0.20
"""Share of the time of the steps from which work after the last step is worth a note."""

CATEGORY_WORDS: dict[Category, str] = {
    "matmul": "matrix multiplications",
    "convolution": "convolutions",
    "attention": "attention",
    "normalisation": "normalisation",
    "reduction": "reductions",
    "elementwise": "elementwise operations",
    "copy": "copies and fills of memory",
    "collective": "collectives",
    "optimizer": "the optimizer",
    "other": "other kernels",
}
"""Words for the end of a sentence: the GPU was busy, mostly with …."""


def judged(traces: tuple[Trace, ...], *, by_teho: bool = False) -> Profiled:
    """Return the traces with the verdict, the advice and the notes.

    Args:
        traces: of one program.
        by_teho: whether `teho profile` recorded them. Then no advice on how to record is needed.
    """
    return Profiled(
        verdict=_verdict(traces),
        advice=tuple(advice_of(traces, waiting_of(traces), by_teho=by_teho)),
        notes=tuple(_notes(traces, by_teho=by_teho)),
        traces=traces,
    )


def category_times(trace: Trace) -> list[tuple[Category, float]]:
    """Return the total time of the kernels of each category, the longest first."""
    totals: defaultdict[Category, float] = defaultdict(float)
    for kernel in trace.kernels:
        totals[kernel.category] += kernel.total_s
    return sorted(totals.items(), key=lambda pair: -pair[1])


def line_times(trace: Trace) -> list[tuple[str, float]]:
    """Return the total time of the kernels of each line of the program, the longest first."""
    totals: defaultdict[str, float] = defaultdict(float)
    for kernel in trace.kernels:
        for share in kernel.lines:
            totals[share.name] += share.total_s
    return sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))


def is_wasteful(traces: Sequence[Trace]) -> bool:
    """Return whether the verdict is about time in which the devices did not compute."""
    if waiting_of(traces) or not devices_of(traces):
        return waiting_of(traces) is not None
    mean = mean_of(traces)
    largest_s = max(mean.idle_s, mean.exposed_collective_s, mean.exposed_copy_s)
    return largest_s >= LARGE_SHARE * mean.elapsed_s > 0


def _verdict(traces: Sequence[Trace]) -> str:
    devices = devices_of(traces)
    shown = shown_trace(traces)
    if is_compiling(shown):
        return _compiling(shown)
    waiting = waiting_of(traces)
    sentence = ""
    if waiting:
        share = format_quantity(100 * waiting.share, "%")
        a_step = "a step" if all(trace.step_count for trace in traces) else "the time"
        whom = f"for {trace_name(waiting.last, traces)}" if waiting.last else "for each other"
        others = "other " if waiting.last else ""
        sentence = f"For {share} of {a_step}, the {others}ranks waited {whom}. "
    return sentence + (_of_devices(traces, devices) if devices else _without_gpu(traces))


def _compiling(trace: Trace) -> str:
    names = [f"`{one.name}`" for one in trace.compiled[:_FUNCTIONS]]
    functions = f" ({', '.join(names)})" if names else ""
    a_step = "a step" if trace.step_count else "the time"
    share = format_quantity(percent_of(trace.compile_s, trace.step_s), "%")
    return (
        f"For {share} of {a_step}, functions were compiled{functions}. So the trace does not show "
        "how long a normal step takes."
    )


def _of_devices(traces: Sequence[Trace], devices: Sequence[DeviceUse]) -> str:
    mean = mean_of(traces)
    least = LARGE_SHARE * mean.elapsed_s
    the_gpu = "The GPU was"
    if len(devices) > 1:
        the_gpu = f"The GPUs of {len(traces)} ranks were" if len(traces) > 1 else "The GPUs were"
    a_step = "a step" if all(trace.step_count for trace in traces) else "the time"
    if mean.idle_s >= least > 0:
        why = [one for one in idle_reasons(mean) if one.time_s >= least][:2]
        return (
            f"{the_gpu} idle for {_percent(mean.idle_s, mean)} of {a_step}"
            f"{_because(why, mean, a_step)}"
        )
    for time_s, doing in (
        (mean.exposed_collective_s, "only exchanged data with other GPUs"),
        (mean.exposed_copy_s, "only copied data"),
    ):
        if time_s >= least > 0:
            subject = the_gpu.rpartition(" ")[0]
            return f"{subject} {doing} for {_percent(time_s, mean)} of {a_step}."
    category, time_s = category_times(shown_trace(traces))[0]
    share = format_quantity(percent_of(time_s, shown_trace(traces).kernel_s), "%")
    return (
        f"{the_gpu} busy for {_percent(mean.busy_s, mean)} of {a_step}, mostly with "
        f"{CATEGORY_WORDS[category]} ({share} of the kernel time)."
    )


def _because(reasons: Sequence[IdleReason], mean: Parts, a_step: str) -> str:
    """Return the end of a sentence about idle time, from its largest reasons."""
    if not reasons:
        return ", for several reasons."
    clauses = [IDLE_WORDS[one.key].clause for one in reasons]
    if len(reasons) == 1:
        lead = ":" if reasons[0].time_s >= _MOST * mean.idle_s else ", mostly because"
        return f"{lead} {clauses[0]}."
    first, second = (_percent(one.time_s, mean) for one in reasons)
    return f". For {first} of {a_step}, {clauses[0]}. For {second}, {clauses[1]}."


def _without_gpu(traces: Sequence[Trace]) -> str:
    """Return the verdict on traces without work of a GPU."""
    found = [one for trace in traces for one in trace.operators]
    sentence = "The trace has no work of a GPU"
    if not found:
        return f"{sentence} and no operator of PyTorch."
    top = max(found, key=lambda one: one.self_s)
    total_s = sum(one.self_s for one in found)
    share = format_quantity(percent_of(top.self_s, total_s), "%")
    return (
        f"{sentence}. On the CPU, {top.name} took the most time: {share} of the time of all "
        "operators."
    )


def _notes(traces: Sequence[Trace], *, by_teho: bool) -> Iterator[str]:
    devices = devices_of(traces)
    launch_s = sum(one.mean.idle.launch_s for one in devices)
    if launch_s >= LARGE_SHARE * sum(one.mean.elapsed_s for one in devices) > 0:
        stacks = " Without `with_stack=True`, the profiler slows down the CPU less." * any(
            trace.has_stacks for trace in traces
        )
        yield (
            "The profiler itself slows down the CPU. Without the profiler, the GPU is idle for "
            f"less time.{stacks}"
        )
    has_steps = all(trace.step_count for trace in traces)
    if not has_steps and by_teho:
        yield "The trace has no complete step, so the values are for the whole trace."
    elif not has_steps and is_of_xla(traces[0]):
        yield (
            "The trace has no steps, so the values are for the whole trace. To get steps, put "
            '`with jax.profiler.StepTraceAnnotation("ProfilerStep", step_num=n):` around each step.'
        )
    elif not has_steps:
        yield (
            "The trace has no steps, so the values are for the whole trace. To get steps, give "
            "`schedule=` to the profiler, and call `profiler.step()` at the end of each step."
        )
    after_s = max((one.after_s for one in devices), default=0.0)
    steps_s = max((trace.step_s * max(trace.step_count, 1) for trace in traces), default=0.0)
    if after_s >= _BEHIND * steps_s > 0:
        yield (
            f"The GPU worked for {format_time(after_s)} after the last step, because it was "
            "behind the CPU. So a step takes longer than the times shown here."
        )
    unread = sum(trace.unread for trace in traces)
    if unread:
        yield f"Teho skipped {counted(unread, 'event')} of the trace that could not be read."
    yield from memory_notes(traces)
    yield from _ranks(traces)


def _ranks(traces: Sequence[Trace]) -> Iterator[str]:
    """Yield what limits the comparison of ranks."""
    expected = max((trace.ranks or 1 for trace in traces), default=1)
    known = {trace.rank for trace in traces if trace.rank is not None}
    if known and len(known) < expected:
        yield f"The program had {expected} ranks, but there are traces of only {len(known)}."
    clocks = [(one, one.waits.clock_s) for one in traces if one.waits and one.waits.clock_s]
    trace, clock_s = max(clocks, key=lambda pair: abs(pair[1]), default=(None, 0.0))
    if trace and abs(clock_s) >= _CLOCKS_S:
        side = "ahead of" if clock_s > 0 else "behind"
        yield (
            f"The clock of {trace_name(trace, traces)} is {format_time(abs(clock_s))} {side} the "
            f"clock of {trace_name(traces[0], traces)}. The values do not depend on this."
        )
    has_collectives = any(one.mean.collective_s for one in devices_of(traces))
    if len(traces) > 1 and has_collectives and not any(trace.waits for trace in traces):
        yield (
            "The traces have no steps in common, so it is not known which rank the other "
            "ranks waited for."
        )


def _percent(time_s: float, parts: Parts) -> str:
    return format_quantity(percent_of(time_s, parts.elapsed_s), "%")
