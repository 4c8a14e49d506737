"""How often JAX compiled each function of a program."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from teho.explain.rule import Evidence
from teho.model.program import MainProcess
from teho.model.watched import Seen

__all__ = ["compiled_again", "compiles_of", "longest_compile_s", "unfinished_compile_s"]

_COMPILER = re.compile(r"/jax/_src/compiler\.py$")
_NEARLY_ALL = 0.9
_SEVERAL_FUNCTIONS = frozenset(("", "(others)", "<lambda>"))
"""Names of more than one function."""


def compiles_of(main: MainProcess) -> int:
    """Return how often JAX compiled the function that it compiled most often.

    Several functions without a name count as one: in a loop, they are the same function each time.
    """
    functions = _functions(main)
    return max(
        (facts["compiles"] for name, facts in functions.items() if name != "(others)"), default=0
    )


def compiled_again(main: MainProcess, most: float) -> Evidence | None:
    """Return the function that JAX compiled longest, if it was compiled more often than `most`."""
    single = _single(main)
    name = max(single, key=lambda one: single[one]["compile_s"], default="")
    if not name or single[name]["compiles"] <= most:
        return None
    return Evidence(f"compiled {single[name]['compiles']} times", name)


def longest_compile_s(main: MainProcess) -> float:
    """Return the time in s in which JAX compiled the function that took longest; 0 without JAX."""
    return max((facts["compile_s"] for facts in _single(main).values()), default=0.0)


def unfinished_compile_s(main: MainProcess) -> float:
    """Return the time in s of a compilation that had not ended at the end of the run; 0 if none."""
    last = main.process.parts[-1] if main.process.parts else ()
    if _compiling_s(last) < _NEARLY_ALL * sum(seen.wall_s for seen in last):
        return 0.0
    known_s = sum(float(facts["compile_s"]) for facts in _functions(main).values())
    return max(0.0, _compiling_s(main.process.stacks) - known_s)


def _compiling_s(stacks: Iterable[Seen]) -> float:
    return sum(
        seen.wall_s for seen in stacks if any(_COMPILER.search(frame.file) for frame in seen.frames)
    )


def _single(main: MainProcess) -> dict[str, dict[str, Any]]:
    known = _functions(main)
    return {name: facts for name, facts in known.items() if name not in _SEVERAL_FUNCTIONS}


def _functions(main: MainProcess) -> dict[str, dict[str, Any]]:
    return main.process.libraries.get("jax", {}).get("functions") or {}
