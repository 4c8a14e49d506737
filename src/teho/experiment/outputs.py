"""Whether a program printed something else on other cores or GPUs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

__all__ = ["other_results"]

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NEAR = 1e-3
"""Relative: sums in another order, in float32, over a training, differ by less."""
_NOTHING = 1e-6
"""What is smaller is a residue of rounding, and differs from device to device."""
_PLACE = re.compile(
    r"\b(?:cpus?|gpus?|cuda|hip|rocm|mps|devices?|threads?|cores?|workers?|ranks?|processes|affinity)\b",
    re.IGNORECASE,
)
"""What a line has that tells where the program runs, and not what it found."""
_SHOWN = 60


def other_results(printed: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a sentence for each variant that prints other results than the first.

    Only lines count that a variant prints alike in each of its runs: times and what is random
    differ from run to run, and tell nothing. Nor do lines that speak of devices, cores, threads or
    ranks. Numbers may differ by 0.1 %, and by 0.000001.

    Args:
        printed: variant -> the whole standard output of each of its runs, two or more.
    """
    stable = {name: _stable(runs) for name, runs in printed.items() if len(runs) > 1}
    if len(stable) < 2:
        return []
    (first, lines), *others = stable.items()
    return [words for name, own in others if (words := _difference(first, lines, name, own))]


def _stable(runs: Sequence[str]) -> list[str | None] | None:
    """Return the lines that are the same in all runs, None for others; None: not even as many."""
    split = [run.splitlines() for run in runs]
    if len({len(lines) for lines in split}) != 1:
        return None
    return [same[0] if len(set(same)) == 1 else None for same in zip(*split, strict=True)]


def _difference(
    first: str, lines: list[str | None] | None, name: str, own: list[str | None] | None
) -> str:
    if lines is None or own is None:
        return ""
    if len(lines) != len(own):
        how_many = f"{len(lines)} line{'s' if len(lines) != 1 else ''}"
        return f"It prints {how_many} on {first}, and {len(own)} on {name}."
    for number, (line, other) in enumerate(zip(lines, own, strict=True), 1):
        if line is not None and other is not None and not _are_alike(line, other):
            return (
                f"It prints other results on {name} than on {first}: line {number} is "
                f"`{_short(other)}` instead of `{_short(line)}`."
            )
    return ""


def _are_alike(line: str, other: str) -> bool:
    if line == other or _PLACE.search(line) or _PLACE.search(other):
        return True
    if _NUMBER.sub("#", line) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_NUMBER.findall(line), _NUMBER.findall(other), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=_NEAR, abs_tol=_NOTHING) for a, b in pairs)


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
