"""What to change, by what a trace shows: first its causes, then what helps in general."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teho.model.trace import Cause, Trace
from teho.patterns import lazy_pattern
from teho.profile.causes import General, explained_share
from teho.profile.figures import (
    LARGE_SHARE,
    Waiting,
    devices_of,
    idle_reasons,
    is_of_xla,
    mean_of,
    percent_of,
    shown_trace,
    trace_name,
)
from teho.profile.memory_words import growth_advice, has_full_device

__all__ = ["advice_of", "is_compiling"]

_EXPLAINED = 0.6
"""Share of an idle time from which causes explain it, so that no general advice is needed. It is
Teho's own choice."""
_COMPILING = 0.5
"""Share of a step from which a trace is mostly about compiling. It is Teho's own choice."""
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
_TENSOR_CORES_FP16 = (
    'Use the tensor cores, and compute with 16 bits: `with torch.autocast("cuda", '
    "dtype=torch.float16):` around the forward pass, and `torch.amp.GradScaler` for the backward "
    "pass. This GPU has no tensor cores for bfloat16."
)
_VOLTA = lazy_pattern(r"V100|\bT4\b|TITAN V|TITAN RTX|RTX 20|Quadro RTX")
"""GPUs of Volta and Turing, whose tensor cores do not know bfloat16 (NVIDIA, architecture
whitepapers)."""
_OF_XLA = {
    "launch": (
        "Launch fewer and larger kernels: use a larger batch, compile the whole step as one "
        "function (`jax.jit`, `tf.function`), and write loops in it with `jax.lax.scan`."
    ),
    "sync": "Read results less often: for example, `float(loss)` every 100 steps.",
}
"""The same advice for JAX and TensorFlow."""
_LATER = (
    "Record a later part of the program, when all functions are compiled: for example, "
    "`--window 2s --after 60s`. If Teho can count the steps of the program, use "
    "`--steps 20:25`."
)
_LATER_BY_HAND = (
    "Start the profiler later, when all functions are compiled: after 10 or more steps of the "
    "program."
)
_WITH_STACK = "To see which lines of the program this is about, record again with `--with stack`."


def is_compiling(trace: Trace) -> bool:
    """Return whether a trace is mostly about compiling, so that it says little about other steps.

    If functions are compiled in most of several steps, they are compiled in other steps too.
    """
    repeats = trace.compile_steps >= max(2, trace.step_count / 2)
    return trace.compile_s >= _COMPILING * trace.step_s > 0 and not repeats


def advice_of(traces: Sequence[Trace], waiting: Waiting | None, *, by_teho: bool) -> Iterator[str]:
    """Yield what to change, the most important first.

    Args:
        traces: of one program.
        waiting: what the ranks waited for each other.
        by_teho: whether `teho profile` recorded them. Then no advice on how to record is needed.
    """
    shown = shown_trace(traces)
    if is_compiling(shown):
        yield _LATER if by_teho else _LATER_BY_HAND
        return
    if waiting:
        last = waiting.last
        yield _LAST_RANK.format(rank=trace_name(last, traces)) if last else _UNEQUAL
    if advice := growth_advice(traces):
        yield advice
    yield from (_of_cause(one) for one in shown.causes)
    if not devices_of(traces):
        if not by_teho:
            yield (
                "If the program uses a GPU, record the GPU too: "
                "`profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])`."
            )
        return
    yield from _general(traces, shown)
    mean = mean_of(traces)
    waits = max(mean.idle.launch_s, mean.idle.sync_s) >= LARGE_SHARE * mean.elapsed_s
    if by_teho and (shown.causes or waits) and not shown.has_stacks and not is_of_xla(shown):
        yield _WITH_STACK


def _of_cause(cause: Cause) -> str:
    return f"{cause.sentence} {cause.advice}"


def _general(traces: Sequence[Trace], shown: Trace) -> Iterator[str]:
    mean = mean_of(traces)
    least = LARGE_SHARE * mean.elapsed_s
    known = {**_ADVICE, **(_OF_XLA if is_of_xla(shown) else {})}
    for reason in idle_reasons(mean):
        part = percent_of(reason.time_s, mean.elapsed_s) / 100
        if reason.time_s < least or reason.key not in known:
            continue
        if reason.key == "launch" and not _is_explained(shown, "launch", part):
            yield known["launch"] if is_of_xla(shown) else _of_launching(traces)
        elif reason.key == "sync" and not _is_explained(shown, "sync", part):
            yield known["sync"]
        elif reason.key not in {"launch", "sync"}:
            yield known[reason.key]
    if mean.exposed_collective_s >= least:
        yield _EXPOSED
    lacks = mean.idle_s < least and _lacks_tensor_cores(traces)
    if lacks and not explained_share(shown.causes, "tensor_cores"):
        yield _TENSOR_CORES_FP16 if _VOLTA.search(shown.devices[0].name) else _TENSOR_CORES
    pageable_s = sum(
        kernel.total_s for one in traces for kernel in one.kernels if "Pageable" in kernel.name
    )
    is_large = pageable_s >= 0.05 * sum(trace.kernel_s for trace in traces)
    if pageable_s and is_large and not explained_share(shown.causes, "pinned"):
        yield _PINNED


def _is_explained(shown: Trace, general: General, part: float) -> bool:
    """Return whether the causes explain most of an idle time.

    Args:
        shown: the trace with the causes.
        general: name of the general advice for this idle time.
        part: of a step, 0 to 1.
    """
    return explained_share(shown.causes, general) >= _EXPLAINED * part


def _of_launching(traces: Sequence[Trace]) -> str:
    if any(trace.graph_launches for trace in traces):
        return _WITH_GRAPHS
    return _WITHOUT_LARGER_BATCH if has_full_device(traces) else _ADVICE["launch"]


def _lacks_tensor_cores(traces: Sequence[Trace]) -> bool:
    """Return whether a large share of the kernel time is matrix kernels without tensor cores."""
    kernels = [kernel for trace in traces for kernel in trace.kernels]
    without_s = sum(one.total_s for one in kernels if one.tensor_cores is False)
    return without_s >= LARGE_SHARE * sum(one.total_s for one in kernels)
