"""The verdict on traces, what to change, and what limits the figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from teho.model.trace import Category, DeviceUse, Parts, Profiled, Trace, mean_parts
from teho.profile.memory_words import growth_advice, has_full_device, memory_notes
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

LARGE_SHARE = 0.10
"""Share of a step from which a part is worth a sentence. It is Teho's own choice."""
_MOST = 0.90
"""Share of the idle time from which one reason counts as the only one."""
_ONE_RANK = 2 / 3
"""Share of all waiting from which one rank is named: the others waited mostly for it. It is Teho's
own choice: of two equal ranks, each has half."""
_CLOCKS_S = 1e-3
"""Difference between the clocks of two nodes from which it is worth a note. It is Teho's own
choice: the same collective ends on all ranks within some tens of µs."""
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


class _Words(NamedTuple):
    label: str
    """Row of a table."""
    clause: str
    """After: the GPU was idle, because …."""

    @property
    def short(self) -> str:
        """The reason, without the word idle."""
        return self.label.removeprefix("idle, ")


IDLE_WORDS = {
    "launch": _Words(
        "idle, nothing launched yet",
        "the program had not yet launched the next kernel (a function on the GPU)",
    ),
    "data": _Words("idle, waiting for data", "the program waited for its data loader"),
    "sync": _Words(
        "idle, after synchronising",
        "the program waited for results of the GPU before it launched the next kernel",
    ),
    "collective": _Words("idle, collective on CPU", "the ranks exchanged data through the CPU"),
    "queued": _Words("idle, between kernels", "launched kernels waited before they started"),
    "unknown": _Words("idle, unknown reason", "the trace does not show why"),
}
"""Words for each reason of `Idle`, without `_s`."""

_ADVICE = {
    "launch": (
        "Launch fewer and larger kernels: use a larger batch, or "
        '`torch.compile(model, mode="reduce-overhead")`.'
    ),
    "data": "Load data in advance: `DataLoader(..., num_workers=N)`, with one worker for each "
    "free core.",
    "sync": "Read results less often: for example, call `.item()` or `.cpu()` every 100 steps.",
    "collective": "Exchange gradients on the GPU: `init_process_group('nccl')`.",
}
_WITH_GRAPHS = (
    "Use a larger batch. The program launches CUDA graphs already. To see what else the CPU "
    "does, add `--why`, and look at the table of operators."
)
_WITHOUT_LARGER_BATCH = (
    "Launch fewer and larger kernels: "
    '`torch.compile(model, mode="reduce-overhead")`. The memory of the GPU is almost full, so a '
    "larger batch does not fit."
)
_PINNED = "Copy from pinned memory: `pin_memory=True`, `.to(device, non_blocking=True)`."
_LAST_RANK = (
    "Find out why {rank} is slower than the other ranks. Possible reasons: larger batches, more "
    "work on the CPU, or a slower GPU."
)
_UNEQUAL = (
    "Give all ranks equally much work in each step: for example, batches with samples of similar "
    "length."
)
_EXPOSED = (
    "Exchange gradients less often: use a larger batch, or `model.no_sync()` with several "
    "batches per step. Or exchange larger parts (`bucket_cap_mb=100`)."
)


_TENSOR_CORES = (
    'Use the tensor cores, and compute with 16 bits: `with torch.autocast("cuda", '
    "dtype=torch.bfloat16):` around the forward pass."
)


class IdleReason(NamedTuple):
    """A reason why a device was idle, with its time."""

    key: str
    time_s: float


def judged(traces: tuple[Trace, ...], *, by_teho: bool = False) -> Profiled:
    """Return the traces with the verdict, the advice and the notes.

    Args:
        traces: of one program.
        by_teho: whether `teho profile` recorded them. Then no advice on how to record is needed.
    """
    return Profiled(
        verdict=_verdict(traces),
        advice=tuple(_advice(traces, by_teho=by_teho)),
        notes=tuple(_notes(traces, by_teho=by_teho)),
        traces=traces,
    )


def idle_reasons(parts: Parts) -> list[IdleReason]:
    """Return the reasons for idle time, the longest first."""
    found = [IdleReason(key, getattr(parts.idle, f"{key}_s")) for key in IDLE_WORDS]
    return sorted((one for one in found if one.time_s), key=lambda one: -one.time_s)


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


def percent_of(part: float, whole: float) -> float:
    """Return a part in % of the whole; 0 if the whole is 0."""
    return 100 * part / whole if whole else 0.0


def shown_trace(traces: Sequence[Trace]) -> Trace:
    """Return the trace whose kernels are shown: of the rank with the longest step."""
    return max(traces, key=lambda one: (bool(one.devices), one.step_s))


def trace_name(trace: Trace, traces: Sequence[Trace]) -> str:
    """Return the name of a trace: its rank, or its file if ranks do not distinguish the traces."""
    ranks = [one.rank for one in traces]
    if trace.rank is None or ranks.count(trace.rank) > 1:
        return Path(trace.path).name
    return f"rank {trace.rank}"


def is_wasteful(traces: Sequence[Trace]) -> bool:
    """Return whether the verdict is about time in which the devices did not compute."""
    if _waiting(traces) or not _devices(traces):
        return _waiting(traces) is not None
    mean = _mean(traces)
    largest_s = max(mean.idle_s, mean.exposed_collective_s, mean.exposed_copy_s)
    return largest_s >= LARGE_SHARE * mean.elapsed_s > 0


def _devices(traces: Sequence[Trace]) -> list[DeviceUse]:
    return [device for trace in traces for device in trace.devices]


def _mean(traces: Sequence[Trace]) -> Parts:
    return mean_parts([device.mean for device in _devices(traces)])


class _Waiting(NamedTuple):
    """What ranks waited for each other."""

    share: float
    """Mean part of a step, 0 to 1."""
    last: Trace | None
    """The rank for which they waited most of this time; None: there is no such rank."""


def _waiting(traces: Sequence[Trace]) -> _Waiting | None:
    """Return what the ranks waited for each other; None: not long, or unknown."""
    known = [(trace, trace.waits) for trace in traces if trace.waits]
    if not known:
        return None
    step_s = sum(trace.step_s for trace, _ in known) / len(known)
    total_s = sum(waits.awaited_s for _, waits in known)
    last, most = max(known, key=lambda pair: pair[1].awaited_s)
    is_one = most.awaited_s >= _ONE_RANK * total_s
    # The rank that came last does not wait, so the time of the others is its own figure.
    waited_s = most.awaited_s if is_one else sum(one.waited_s for _, one in known) / len(known)
    if not waited_s or waited_s < LARGE_SHARE * step_s:
        return None
    return _Waiting(waited_s / step_s, last if is_one else None)


def _verdict(traces: Sequence[Trace]) -> str:
    devices = _devices(traces)
    waiting = _waiting(traces)
    sentence = ""
    if waiting:
        share = format_quantity(100 * waiting.share, "%")
        a_step = "a step" if all(trace.step_count for trace in traces) else "the time"
        whom = f"for {trace_name(waiting.last, traces)}" if waiting.last else "for each other"
        others = "other " if waiting.last else ""
        sentence = f"For {share} of {a_step}, the {others}ranks waited {whom}. "
    return sentence + (_of_devices(traces, devices) if devices else _without_gpu(traces))


def _of_devices(traces: Sequence[Trace], devices: Sequence[DeviceUse]) -> str:
    mean = _mean(traces)
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


def _advice(traces: Sequence[Trace], *, by_teho: bool) -> Iterator[str]:
    if waiting := _waiting(traces):
        last = waiting.last
        yield _LAST_RANK.format(rank=trace_name(last, traces)) if last else _UNEQUAL
    if advice := growth_advice(traces):
        yield advice
    if not _devices(traces):
        if not by_teho:
            yield (
                "If the program uses a GPU, record the GPU too: "
                "`profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])`."
            )
        return
    mean = _mean(traces)
    least = LARGE_SHARE * mean.elapsed_s
    for reason in idle_reasons(mean):
        if reason.time_s >= least and reason.key in _ADVICE:
            yield _of_launching(traces) if reason.key == "launch" else _ADVICE[reason.key]
    if mean.exposed_collective_s >= least:
        yield _EXPOSED
    if mean.idle_s < least and _lacks_tensor_cores(traces):
        yield _TENSOR_CORES
    pageable_s = sum(
        kernel.total_s for one in traces for kernel in one.kernels if "Pageable" in kernel.name
    )
    if pageable_s and pageable_s >= 0.05 * sum(trace.kernel_s for trace in traces):
        yield _PINNED


def _of_launching(traces: Sequence[Trace]) -> str:
    if any(trace.graph_launches for trace in traces):
        return _WITH_GRAPHS
    return _WITHOUT_LARGER_BATCH if has_full_device(traces) else _ADVICE["launch"]


def _lacks_tensor_cores(traces: Sequence[Trace]) -> bool:
    """Return whether a large share of the kernel time is matrix kernels without tensor cores."""
    kernels = [kernel for trace in traces for kernel in trace.kernels]
    without_s = sum(one.total_s for one in kernels if one.tensor_cores is False)
    return without_s >= LARGE_SHARE * sum(one.total_s for one in kernels)


def _notes(traces: Sequence[Trace], *, by_teho: bool) -> Iterator[str]:
    devices = _devices(traces)
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
    has_collectives = any(one.mean.collective_s for one in _devices(traces))
    if len(traces) > 1 and has_collectives and not any(trace.waits for trace in traces):
        yield (
            "The traces have no steps in common, so it is not known which rank the other "
            "ranks waited for."
        )


def _percent(time_s: float, parts: Parts) -> str:
    return format_quantity(percent_of(time_s, parts.elapsed_s), "%")
