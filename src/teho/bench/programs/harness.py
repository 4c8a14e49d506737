"""Serves one example to `teho bench`: a command a line comes in, an answer a line goes out.

It runs in the user's Python, 3.8 or later, and needs nothing of Teho. The request is the one
argument, as JSON: which `library`, on which `device`, on which `cores`, with how much
`memory_bytes` at most. All answers go to a duplicate of stdout that nobody else knows: what
libraries print goes to stderr.
"""

from __future__ import annotations

import gc
import json
import math
import os
import resource
import sys
import time
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Protocol,
    Sequence,
    Tuple,
    Type,
)

from libraries import Library, MissingLibrary, open_library

__all__ = ["Example", "Phase", "Point", "Unsupported", "serve"]

Point = Dict[str, Any]
"""What is swept, and what stays: `{"systems": 1000, "rows": 8}`."""

_SHORTEST_S = 0.001
"""Of a sample: the clock and the wait for the device are then below a per cent of it."""
_MEMORY = (
    "out of memory", "resource_exhausted", "not enough memory", "allocate memory",
    "failed to allocate", "alloc_failed", "bad_alloc",
)  # fmt: skip


class Unsupported(Exception):  # noqa: N818 - it is no fault
    """What a library does not have, raised by an example with one sentence without full stop."""


class Phase(NamedTuple):
    """One thing that is timed."""

    name: str
    run: Callable[[], object]
    """Does it once; the harness waits for what it returns."""
    flop: float | None = None
    """Arithmetic of one run, and"""
    bytes: float | None = None
    """what it moves, and"""
    items: float | None = None
    """how many systems, images… it is through with; None if that says nothing."""


class Example(Protocol):
    """A worked example in one library, on one device."""

    def __init__(self, library: Library) -> None: ...

    def check(self, point: Point) -> List[float]:
        """Return figures of a result, from inputs that are equal in every library."""
        ...

    def phases(self, point: Point) -> Iterable[Phase]:
        """Yield what is timed at a point; its data live no longer than that."""
        ...


def serve(example: Type[Example], libraries: Sequence[str]) -> None:
    """Answer until there are no more commands.

    Args:
        example: the class, made once with the library that was asked for.
        libraries: that it has a form in.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(**words: object) -> None:
        answers.write(json.dumps(words) + "\n")
        answers.flush()

    try:
        request = json.loads(sys.argv[1])
    except (IndexError, ValueError):
        sys.exit("`teho bench %s` starts this program" % os.path.basename(sys.argv[0])[:-3])
    _confine(request)
    try:
        library, served = _opened(example, libraries, request)
    except MissingLibrary as missing:
        answer(at="missing", why=missing.why, text=missing.text)
        return
    answer(
        at="ready",
        library=library.name,
        version=library.version,
        python=".".join(map(str, sys.version_info[:3])),
        device=library.device_name,
        threads=library.threads,
    )
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "end":
            break
        point = command["point"]
        try:
            if command["do"] == "check":
                figures = [one if math.isfinite(one) else None for one in served.check(point)]
                answer(at="result", point=point, figures=figures)
            else:
                for times in _times(library, served, command):
                    answer(at="times", point=point, **times)
                answer(at="done", point=point)
            continue
        except Exception as error:
            out = {"why": _why(error), "text": _in_words(error)}
        # Only here are the error's frames gone, and with them what they held.
        gc.collect()
        library.free()
        answer(at="out", point=point, **out)


def _opened(
    example: Type[Example], libraries: Sequence[str], request: Dict[str, Any]
) -> Tuple[Library, Example]:
    if request["library"] not in libraries:
        raise MissingLibrary("unsupported", "it has no form in %(library)s" % request)
    library = open_library(request["library"], request["device"])
    return library, example(library)


def _confine(request: Dict[str, Any]) -> None:
    """Stay on the cores that were given, and within the memory, before any library looks."""
    if request.get("cores"):
        os.sched_setaffinity(0, request["cores"])
    if request.get("memory_bytes"):
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = request["memory_bytes"]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _times(library: Library, example: Example, command: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    for phase in example.phases(command["point"]):
        yield {
            "phase": phase.name,
            **_samples(library, phase, command),
            "flop": phase.flop,
            "bytes": phase.bytes,
            "items": phase.items,
        }
        del phase  # before the next one's data are made
        library.free()


def _samples(library: Library, phase: Phase, command: Dict[str, Any]) -> Dict[str, Any]:
    """Time a phase: its first run apart, then until there is enough of it."""
    began_s = time.perf_counter()
    first_s = _timed(library, phase, 1)
    calls = 1
    samples_s = [_timed(library, phase, calls)]
    while samples_s[0] * calls < _SHORTEST_S:
        calls = max(2 * calls, math.ceil(_SHORTEST_S / max(samples_s[0], 1e-9)))
        samples_s = [_timed(library, phase, calls)]
    while len(samples_s) < command["samples"] or sum(samples_s) * calls < command["seconds"]:
        if time.perf_counter() - began_s >= command["most_s"]:
            break
        samples_s.append(_timed(library, phase, calls))
    return {"first_s": first_s, "samples_s": samples_s, "calls": calls}


def _timed(library: Library, phase: Phase, calls: int) -> float:
    """Return seconds a call, of several that the device may queue."""
    began_s = time.perf_counter()
    for _ in range(calls - 1):
        phase.run()
    library.wait(phase.run())
    return (time.perf_counter() - began_s) / calls


def _why(error: Exception) -> str:
    if isinstance(error, Unsupported):
        return "unsupported"
    text = (type(error).__name__ + str(error)).lower()
    is_memory = isinstance(error, MemoryError) or any(word in text for word in _MEMORY)
    return "memory" if is_memory or "outofmemory" in text else "failed"


def _in_words(error: Exception) -> str:
    if isinstance(error, Unsupported):
        return str(error)
    lines = str(error).strip().splitlines() or [""]
    return ("%s: %s" % (type(error).__name__, lines[0])).rstrip(": ")[:300]
