"""How often JAX compiled each function of a program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from teho.explain.rule import Evidence
from teho.explain.where import doing_in
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame, Seen, is_library
from teho.patterns import lazy_pattern

__all__ = [
    "compiled_again",
    "compiles_again",
    "longest_compile",
    "traced_line",
    "unfinished_compile_s",
    "uses_jax",
]

_JIT = lazy_pattern(r"/jax/_src/pjit\.py$")
_COMPILER = lazy_pattern(r"/jax/_src/compiler\.py$")
_NEARLY_ALL = 0.9
_MOSTLY = 0.5
_SOME = 0.05
"""A part of the run with a smaller share of compiling may only have the end of one compilation."""
_LEAST_S = 0.5
"""In less time, the probe reads too few stacks to name one line."""
_OTHERS = "(others)"
_SEVERAL_FUNCTIONS = frozenset(("", _OTHERS, "<lambda>"))
"""Names of more than one function."""


def compiles_again(main: MainProcess, most: float, is_loss: Callable[[float], bool]) -> bool:
    """Return whether JAX compiled the same functions again and again during the run.

    Compiling must continue in at least half of the parts of the run after the first quarter: a
    program that compiles for a few shapes at its start does not compile them again. And functions
    that were compiled more often than `most` must have taken most of the time of compiling, or one
    of them must have taken enough time to report it. Otherwise JAX compiled different functions
    once, and some small operations for each shape.

    Several functions without a name count as one: in a loop, they are the same function each time.

    Args:
        main: the process.
        most: the number of compilations of one function that is normal.
        is_loss: whether a time in s is long enough to report it.
    """
    functions = _functions(main)
    again = [
        float(facts["compile_s"])
        for name, facts in functions.items()
        if facts["compiles"] > most and name != _OTHERS
    ]
    whole_s = sum(float(facts["compile_s"]) for facts in functions.values())
    if not again or not (sum(again) >= _MOSTLY * whole_s or is_loss(max(again))):
        return False
    later = main.process.parts[len(main.process.parts) // 4 :]
    return 2 * sum(_compiles(main, part) for part in later) >= len(later)


def compiled_again(main: MainProcess, most: float) -> tuple[str, Evidence] | None:
    """Return the function that JAX compiled longest, and how often, if more often than `most`."""
    single = _single(main)
    name = max(single, key=lambda one: single[one]["compile_s"], default="")
    if not name or single[name]["compiles"] <= most:
        return None
    return name, Evidence(f"compilations of {name}", float(single[name]["compiles"]))


def longest_compile(main: MainProcess) -> tuple[str, float]:
    """Return the function that JAX compiled longest, and the time in s; 0 without JAX."""
    single = _single(main)
    name = max(single, key=lambda one: single[one]["compile_s"], default="")
    return name, float(single[name]["compile_s"]) if name else 0.0


def traced_line(main: MainProcess) -> Frame | None:
    """Return the innermost line of the program that took most of the tracing below `jax.jit`.

    If JAX unrolls a loop, this is a line in the loop, or the line that called its function.
    """
    walls: defaultdict[tuple[str, int], float] = defaultdict(float)
    deepest: dict[tuple[str, int], tuple[int, Frame]] = {}
    whole_s = 0.0
    for seen in main.process.stacks:
        frames = _traced(seen)
        whole_s += seen.wall_s if frames else 0.0
        for depth, frame in enumerate(reversed(frames)):
            key = frame.file, frame.line
            if deepest.get(key, (-1, frame))[0] < depth:
                deepest[key] = depth, frame
        for key in {(frame.file, frame.line) for frame in frames}:
            walls[key] += seen.wall_s
    most = [deepest[key] for key, wall_s in walls.items() if wall_s >= _MOSTLY * whole_s]
    return max(most, key=lambda pair: pair[0])[1] if most and whole_s >= _LEAST_S else None


def _traced(seen: Seen) -> list[Frame]:
    """Return the lines of the program that `jax.jit` called, innermost first."""
    frames = seen.own_frames
    jit = max((at for at, frame in enumerate(frames) if _JIT.search(frame.file)), default=0)
    return [frame for frame in frames[:jit] if not is_library(frame.file)]


def uses_jax(main: MainProcess) -> bool:
    """Return whether JAX compiled functions."""
    return bool(_functions(main))


def unfinished_compile_s(main: MainProcess) -> float:
    """Return the time in s of a compilation that had not ended at the end of the run; 0 if none."""
    last = main.process.parts[-1] if main.process.parts else ()
    if _compiling_s(last) < _NEARLY_ALL * sum(seen.wall_s for seen in last):
        return 0.0
    known_s = sum(float(facts["compile_s"]) for facts in _functions(main).values())
    return max(0.0, _compiling_s(main.process.stacks) - known_s)


def _compiles(main: MainProcess, part: Iterable[Seen]) -> bool:
    """Return whether a part of the run has some compiling."""
    stacks = list(part)
    compiling_s = sum(
        seen.wall_s for seen in stacks if doing_in(main.process, seen) is Doing.COMPILING
    )
    return compiling_s >= _SOME * sum(seen.wall_s for seen in stacks) > 0


def _compiling_s(stacks: Iterable[Seen]) -> float:
    return sum(
        seen.wall_s for seen in stacks if any(_COMPILER.search(frame.file) for frame in seen.frames)
    )


def _single(main: MainProcess) -> dict[str, dict[str, Any]]:
    known = _functions(main)
    return {name: facts for name, facts in known.items() if name not in _SEVERAL_FUNCTIONS}


def _functions(main: MainProcess) -> dict[str, dict[str, Any]]:
    return main.process.libraries.get("jax", {}).get("functions") or {}
