"""Figures of traces that the verdict and the advice share, and the words for idle time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from teho.model.trace import DeviceUse, Parts, Trace, mean_parts

__all__ = [
    "IDLE_WORDS",
    "LARGE_SHARE",
    "IdleReason",
    "Waiting",
    "devices_of",
    "idle_reasons",
    "is_of_xla",
    "mean_of",
    "percent_of",
    "shown_trace",
    "trace_name",
    "waiting_of",
]

LARGE_SHARE = 0.10
"""Share of a step from which a part is worth a sentence. It is Teho's own choice."""
_ONE_RANK = 2 / 3
"""Share of all waiting from which one rank is named: the others waited mostly for it. It is Teho's
own choice: of two equal ranks, each has half."""


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
    "compile": _Words("idle, compiling", "functions were compiled (by XLA, or by `torch.compile`)"),
    "queued": _Words("idle, between kernels", "launched kernels waited before they started"),
    "unknown": _Words("idle, unknown reason", "the trace does not show why"),
}
"""Words for each reason of `Idle`, without `_s`."""


class IdleReason(NamedTuple):
    """A reason why a device was idle, with its time."""

    key: str
    time_s: float


def idle_reasons(parts: Parts) -> list[IdleReason]:
    """Return the reasons for idle time, the longest first."""
    found = [IdleReason(key, getattr(parts.idle, f"{key}_s")) for key in IDLE_WORDS]
    return sorted((one for one in found if one.time_s), key=lambda one: -one.time_s)


def percent_of(part: float, whole: float) -> float:
    """Return a part in % of the whole; 0 if the whole is 0."""
    return 100 * part / whole if whole else 0.0


def trace_name(trace: Trace, traces: Sequence[Trace]) -> str:
    """Return the name of a trace: its rank, or its file if ranks do not distinguish the traces."""
    ranks = [one.rank for one in traces]
    if trace.rank is None or ranks.count(trace.rank) > 1:
        return Path(trace.path).name
    return f"rank {trace.rank}"


def devices_of(traces: Sequence[Trace]) -> list[DeviceUse]:
    """Return all devices of all ranks."""
    return [device for trace in traces for device in trace.devices]


def mean_of(traces: Sequence[Trace]) -> Parts:
    """Return the mean of all devices of all ranks."""
    return mean_parts([device.mean for device in devices_of(traces)])


class Waiting(NamedTuple):
    """What ranks waited for each other."""

    share: float
    """Mean part of a step, 0 to 1."""
    last: Trace | None
    """The rank for which they waited most of this time; None: there is no such rank."""


def waiting_of(traces: Sequence[Trace]) -> Waiting | None:
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
    return Waiting(waited_s / step_s, last if is_one else None)


def shown_trace(traces: Sequence[Trace]) -> Trace:
    """Return the trace whose kernels are shown: of the rank with the longest step."""
    return max(traces, key=lambda one: (bool(one.devices), one.step_s))


def is_of_xla(trace: Trace) -> bool:
    """Return whether JAX or TensorFlow wrote a trace, by the name of its file."""
    return trace.path.endswith((".xplane.pb", ".xplane.pb.gz"))
