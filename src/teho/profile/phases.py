"""What the program did at a moment: it loaded data, copied a batch, or was in one of the passes."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container
from itertools import compress

from teho.model.trace_memory import MemoryPhase
from teho.patterns import lazy_pattern
from teho.profile.load import Loaded, Thread
from teho.profile.spans import Span, Spans, is_inside, union

__all__ = ["Phases", "optimizer_spans"]

_BACKWARD = "autograd::engine::evaluate_function"
"""Operators that PyTorch's engine puts around each function of the backward pass."""
_DATA = "enumerate(DataLoader)#"
_OPTIMIZER = "Optimizer.step#"
_TO_DEVICE = frozenset({"aten::_to_copy", "aten::copy_", "aten::to"})
"""Operators that copy a tensor to a device, and allocate its memory there."""
_FROM_HOST = lazy_pattern(r"HtoD|HostToDevice", re.IGNORECASE)


class Phases:
    """The phases of all threads of one trace."""

    def __init__(self, loaded: Loaded) -> None:
        self._loading = _of_marks(loaded, _DATA)
        self._backward = _of_operators(loaded, _BACKWARD)
        self._optimizers = optimizer_spans(loaded)
        self._copying = _copying(loaded)

    def at(self, thread: Thread, moment: int) -> MemoryPhase:
        """Return what a thread does at a moment. `forward` is what is none of the other phases."""
        if is_inside(self._loading.get(thread, []), moment):
            return "input"
        if is_inside(self._backward.get(thread, []), moment):
            return "backward"
        if is_inside(self._copying.get(thread, []), moment):
            return "input"
        return "optimizer" if is_inside(self._optimizers.get(thread, []), moment) else "forward"


def optimizer_spans(loaded: Loaded) -> dict[Thread, Spans]:
    """Return when each thread updated the parameters.

    PyTorch marks the calls of `Optimizer.step`. If a call has a closure, as in Lightning, the mark
    also has the forward pass and the backward pass. The update begins after the last backward pass
    in the mark.
    """
    ends = sorted(end for spans in _of_operators(loaded, _BACKWARD).values() for _, end in spans)
    found: defaultdict[Thread, list[Span]] = defaultdict(list)
    for mark in loaded.marks:
        if mark.name.startswith(_OPTIMIZER):
            last = bisect_right(ends, mark.end) - 1
            start = max(mark.start, ends[last]) if last >= 0 else mark.start
            found[mark.thread].append((start, mark.end))
    return {thread: union(spans) for thread, spans in found.items()}


def _of_marks(loaded: Loaded, prefix: str) -> dict[Thread, Spans]:
    found: defaultdict[Thread, list[Span]] = defaultdict(list)
    for mark in loaded.marks:
        if mark.name.startswith(prefix):
            found[mark.thread].append((mark.start, mark.end))
    return {thread: union(spans) for thread, spans in found.items()}


def _of_operators(loaded: Loaded, prefix: str) -> dict[Thread, Spans]:
    """Return when each thread was in operators whose names begin with a text."""
    meant = {number for number, name in enumerate(loaded.names) if name.startswith(prefix)}
    if not meant:
        return {}
    return {thread: _spans(loaded, thread, meant) for thread in loaded.operators}


def _spans(loaded: Loaded, thread: Thread, names: Container[int]) -> Spans:
    track = loaded.operators[thread]
    are_meant = [name in names for name in track.names]
    starts, ends = compress(track.starts, are_meant), compress(track.ends, are_meant)
    return union(zip(starts, ends, strict=True))


def _copying(loaded: Loaded) -> dict[Thread, Spans]:
    """Return when each thread copied a tensor from the memory of the node to a device."""
    calls = loaded.calls
    moments: defaultdict[Thread, list[int]] = defaultdict(list)
    for work in loaded.work.values():
        names = {name for name in set(work.names) if _FROM_HOST.search(loaded.names[name])}
        for name, number in zip(work.names, work.correlations, strict=True):
            place = calls.places.get(number) if name in names else None
            if place is not None:
                moments[loaded.threads[calls.threads[place]]].append(calls.starts[place])
    meant = {number for number, name in enumerate(loaded.names) if name in _TO_DEVICE}
    found = {}
    for thread, starts in moments.items():
        if thread in loaded.operators:
            starts.sort()
            spans = _spans(loaded, thread, meant)
            found[thread] = [span for span in spans if _has_any(starts, span)]
    return found


def _has_any(moments: list[int], span: Span) -> bool:
    """Return whether any of the sorted moments is in a span."""
    place = bisect_left(moments, span[0])
    return place < len(moments) and moments[place] < span[1]
