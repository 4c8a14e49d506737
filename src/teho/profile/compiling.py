"""When XLA or `torch.compile` compiled functions while the profiler recorded.

XLA compiles a function at its first call, and runs each candidate for a fast kernel on the GPU. A
trace of this time says little about the steps that follow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from teho.patterns import lazy_pattern
from teho.profile.load import Loaded
from teho.profile.spans import Span, Spans, union

__all__ = ["Compiled", "compiled_of"]

_XLA = lazy_pattern(
    r"^(PjRt\w*::Compile|PJRT_Client_Compile|HLO (Transforms|passes)|OptimizeHloModule"
    r"|CompileToBackendResult|CompileModuleToLlvmIr|CompileSingleModule|backend_compile|XlaCompil)"
)
"""Events of the compiler in an XSpace: of OpenXLA, seen in traces of JAX 0.10 on an H200 and on
CPUs."""
_TORCH = lazy_pattern(r"\(dynamo_timed\)$")
"""Marks that PyTorch puts around each phase of `torch.compile` (`dynamo_timed`)."""
_FUNCTION = lazy_pattern(r"[(:](jit_?[^()]*|pmap[^()]*)\)?$")
"""The compiled function in the name of an event, such as `HLO Transforms:jit_train_step`."""


class Compiled(NamedTuple):
    """The compilations of one trace."""

    spans: Spans
    """In any thread."""
    functions: dict[str, int]
    """Time in ns of each function whose name is known, the longest first."""


def compiled_of(loaded: Loaded) -> Compiled:
    """Return when functions were compiled."""
    found: dict[str, list[Span]] = defaultdict(list)
    every: list[Span] = []
    for name, span in _events(loaded):
        every.append(span)
        if function := _FUNCTION.search(name):
            found[function[1].removeprefix("jit_")].append(span)
    lengths = {name: sum(e - s for s, e in union(spans)) for name, spans in found.items()}
    ordered = sorted(lengths.items(), key=lambda pair: (-pair[1], pair[0]))
    return Compiled(union(every), dict(ordered))


def _events(loaded: Loaded) -> Iterator[tuple[str, Span]]:
    for mark in loaded.marks:
        if _TORCH.search(mark.name):
            yield mark.name, (mark.start, mark.end)
    meant = {
        number
        for number, name in enumerate(loaded.names)
        if _XLA.search(name) or _TORCH.search(name)
    }
    if not meant:
        return
    for track in loaded.operators.values():
        for start, end, name in zip(track.starts, track.ends, track.names, strict=True):
            if name in meant:
                yield loaded.names[name], (start, end)
