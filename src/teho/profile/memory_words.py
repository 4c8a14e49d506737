"""What the memory in traces means, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from teho.model.trace import Trace
from teho.model.trace_memory import MemoryPhase, MemoryUse
from teho.units import format_bytes

__all__ = [
    "DURING",
    "device_name",
    "growth_advice",
    "has_full_device",
    "main_memory",
    "memory_notes",
]

_FULL = 0.90
"""Share of a GPU's memory from which it is almost full. It is Teho's own choice: a batch that is
half as large again rarely fits into the rest."""
_LEAST_ENDS = 4
_STEADY = 0.5
"""In a steady growth, the growth of each step is at least this share of the mean. It is Teho's own
choice: the amount after a step hardly changes in a training that keeps nothing."""
_LEAST_GROWTH = 0.001
"""Share of the peak by which a growth in each step is worth a sentence. It is our own choice: after
1,000 such steps, a program needs twice as much memory."""

DURING: dict[MemoryPhase, str] = {
    "before": "before the recorded steps",
    "input": "by loading or copying data",
    "forward": "in the forward pass",
    "backward": "in the backward pass",
    "optimizer": "in the optimizer step",
}
"""Words for: memory was allocated …."""


def main_memory(trace: Trace) -> tuple[MemoryUse, ...]:
    """Return the memory of the GPUs; without a GPU, the memory of the node."""
    return tuple(one for one in trace.memory if one.device is not None) or trace.memory


def device_name(memory: MemoryUse) -> str:
    """Return the name of the device."""
    return "the CPU" if memory.device is None else f"GPU {memory.device}"


def has_full_device(traces: Sequence[Trace]) -> bool:
    """Return whether the memory of a GPU was almost full at the peak."""
    return any(
        one.device_bytes is not None and one.peak_bytes >= _FULL * one.device_bytes
        for trace in traces
        for one in trace.memory
    )


def memory_notes(traces: Sequence[Trace]) -> Iterator[str]:
    """Yield what limits the figures about the memory."""
    uses = [one for trace in traces for one in main_memory(trace)]
    unseen = max((one.unseen_bytes for one in uses), default=0)
    if unseen:
        yield (
            "Memory was freed in threads that the profiler does not record. So the sum of the "
            f"parts of the memory is {format_bytes(unseen)} too high."
        )


def growth_advice(traces: Sequence[Trace]) -> str:
    """Return what to do about memory that grows from step to step; empty if it does not."""
    uses = [one for trace in traces for one in main_memory(trace)]
    growing = max(uses, key=_growth, default=None)
    if growing is None or not _growth(growing):
        return ""
    return (
        f"Find the code that keeps memory: the allocated memory of {device_name(growing)} grows by "
        f"{format_bytes(_growth(growing))} in each step. For example, if a list keeps the loss of "
        "each step, append `loss.detach()` instead of `loss`."
    )


def _growth(memory: MemoryUse) -> float:
    """Return the mean growth from step to step; 0 if it is not steady, or small."""
    ends = [step.end_bytes for step in memory.steps]
    if len(ends) < _LEAST_ENDS:
        return 0.0
    mean = (ends[-1] - ends[0]) / (len(ends) - 1)
    steady = all(later - earlier >= _STEADY * mean for earlier, later in pairwise(ends))
    return mean if steady and mean >= _LEAST_GROWTH * memory.peak_bytes > 0 else 0.0
