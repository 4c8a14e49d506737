"""GPU busy from the times of kernels: the share of time in which at least one kernel ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from teho.jobs.log import Log, Sample, Value

__all__ = ["KERNELS_NOTE", "Span", "add_busy"]

Span = tuple[float, float]
"""Begin and end of a kernel, in s since the begin of the capture."""
KERNELS_NOTE = (
    "GPU busy is computed from the times of the kernels: it is the share of time in which a kernel "
    "ran. Copies between CPU and GPU do not count."
)
_STEP_S = 0.1
_PERCENT_LEAST, _SHORTEST_S = 0.1, 1e-9
"""The smallest share in a recording. A GPU that ran a kernel was used, however short the kernel."""
_STEPS_LEAST, _STEPS_MOST = 2, 100_000
"""A capture of less than 0.1 s has shorter steps, and one of more than 3 h longer steps."""


def add_busy(
    log: Log,
    kernels: Mapping[str, Sequence[Span]],
    whole: Span,
    *,
    begin_s: float,
    host: str = "",
) -> None:
    """Add samples with the GPU busy of each GPU, in steps of 0.1 s.

    Args:
        log: gets the samples.
        kernels: by key of the GPU, in any order. They may overlap.
        whole: from the first to the last operation of all GPUs.
        begin_s: the begin of the capture, in s since 1970.
        host: host name; empty: not known.
    """
    first_s, last_s = whole
    count = min(_STEPS_MOST, max(_STEPS_LEAST, ceil((last_s - first_s) / _STEP_S)))
    step_s = (last_s - first_s) / count
    if step_s <= 0:
        return
    busy = {gpu: _busy_s(spans, first_s, step_s, count) for gpu, spans in kernels.items()}
    for number in range(count):
        at_s = begin_s + first_s + (number + 1) * step_s
        for gpu, times_s in busy.items():
            percent = min(100.0, 100 * times_s[number] / step_s)
            if times_s[number] >= _SHORTEST_S:
                percent = max(_PERCENT_LEAST, percent)
            values: dict[str, Value] = {"gpu_busy_percent": percent}
            log.samples.append(Sample.of(at_s, host, gpu, values))
    log.period_s = step_s


def _busy_s(spans: Iterable[Span], first_s: float, step_s: float, count: int) -> list[float]:
    """Return for each step how long at least one kernel ran."""
    found = [0.0] * count
    reached_s = first_s
    for begin, end_s in sorted(spans):
        begin_s = max(begin, reached_s)
        if end_s <= begin_s:
            continue
        reached_s = end_s
        number = min(count - 1, int((begin_s - first_s) / step_s))
        while begin_s < end_s:
            is_last = number == count - 1
            until_s = end_s if is_last else min(end_s, first_s + (number + 1) * step_s)
            found[number] += max(0.0, until_s - begin_s)
            begin_s, number = max(until_s, begin_s), min(number + 1, count - 1)
            if is_last:
                break
    return found
