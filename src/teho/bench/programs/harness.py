"""Serves one example to `teho bench`: it reads one command a line, and writes one answer a line.

It runs in the user's Python, 3.8 or later, and does not import Teho. The only argument is the
request, as JSON: `library`, `device`, `cores`, and at most how many `memory_bytes`. Answers go to a
duplicate of stdout. Output of the libraries goes to stderr.
"""

from __future__ import annotations

import gc
import json
import math
import os
import resource
import sys
import time
from typing import Any, Callable, Dict, Iterable, Iterator, NamedTuple, Protocol, Sequence

from libraries import Library, MissingLibrary, open_library

__all__ = ["Example", "Phase", "Point", "Unsupported", "serve"]

Point = Dict[str, Any]
"""Sizes and settings: `{"systems": 1000, "rows": 8}`."""

_SHORTEST_S = 0.001
"""Least time of a sample. The clock and waiting for the device then take less than 1 %."""
_MEMORY = (
    "out of memory", "resource_exhausted", "not enough memory", "allocate memory",
    "failed to allocate", "alloc_failed", "bad_alloc",
)  # fmt: skip


class Unsupported(Exception):  # noqa: N818 - not an error
    """The library does not have what an example needs: one sentence, without full stop."""


class Phase(NamedTuple):
    """A part of an example that is timed."""

    name: str
    run: Callable[[], object]
    """Runs it once. The harness waits for the result."""
    flop: float | None = None
    """Floating-point operations of one run; None if this figure makes no sense."""
    bytes: float | None = None
    """Bytes that one run moves."""
    items: float | None = None
    """Systems, images… of one run."""


class Example(Protocol):
    """A worked example in one library, on one device.

    It may have a `note`: a sentence about phases that this Python does not have.
    """

    def __init__(self, library: Library) -> None: ...

    def check(self, point: Point) -> list[float]:
        """Return figures of a result, from inputs that are the same in every library."""
        ...

    def phases(self, point: Point) -> Iterable[Phase]:
        """Yield the phases to time at a point. Their data are freed afterwards."""
        ...


def serve(example: type[Example], libraries: Sequence[str]) -> None:
    """Answer until there are no more commands.

    Args:
        example: the class. It gets the requested library.
        libraries: that the example supports.
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
    if request["library"] not in libraries:
        text = "this example does not support %(library)s" % request
        answer(at="missing", why="unsupported", text=text)
        return
    try:
        library = open_library(request["library"], request["device"])
        served = example(library)
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
        note=getattr(served, "note", ""),  # only some examples have a note
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
        # Only here are the error's frames gone, so that their memory can be freed.
        gc.collect()
        library.free()
        answer(at="out", point=point, **out)


def _confine(request: Dict[str, Any]) -> None:
    """Limit this process to the given cores and memory, before a library is loaded."""
    if request.get("cores"):
        os.sched_setaffinity(0, request["cores"])
    if request.get("memory_bytes"):
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = request["memory_bytes"]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _times(library: Library, example: Example, command: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    library.forget_peak()
    for phase in example.phases(command["point"]):
        yield {
            "phase": phase.name,
            **_samples(library, phase, command),
            "flop": phase.flop,
            "bytes": phase.bytes,
            "items": phase.items,
            "memory_bytes": library.peak_bytes(),
        }
        del phase  # before the next one makes its data
        library.free()
        library.forget_peak()


def _samples(library: Library, phase: Phase, command: Dict[str, Any]) -> Dict[str, Any]:
    """Return times of a phase: of its first run, then of samples until there are enough."""
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
    """Return seconds per call, of several calls that the device may queue."""
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
