"""Compares what a program printed on different cores or GPUs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from teho.observe.stdout_capture import KEPT_BYTES
from teho.patterns import lazy_pattern
from teho.store.layout import output_file

__all__ = ["Printed", "other_results", "printed_by"]

_NUMBER = lazy_pattern(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NEAR = 1e-3
"""Relative difference. Sums in another order, in float32 over a training, differ by less."""
_NOTHING = 1e-6
"""Absolute difference. Smaller values come from rounding, and differ between devices."""
_PLACE = lazy_pattern(
    r"\b(?:cpus?|gpus?|cuda|hip|rocm|mps|devices?|threads?|cores?|workers?|ranks?|processes|affinity)\b",
    re.IGNORECASE,
)
"""Words of lines that say on which hardware a program runs, not what it computed."""
_SHOWN = 60


class Printed(NamedTuple):
    """The standard output of one run."""

    text: str
    is_whole: bool = True
    """Whether this is all; otherwise it is the first part, cut at any place."""


class _Stable(NamedTuple):
    """The lines that a variant prints in each of its runs."""

    lines: Sequence[str | None]
    """None for a line that differs between runs."""
    is_whole: bool


def printed_by(recording: Path, *, is_whole: bool) -> Printed | None:
    """Return the output of a recorded program; None if it was not kept.

    Args:
        recording: its directory.
        is_whole: whether the program ran to its end.
    """
    try:
        kept = output_file(recording).read_bytes()
    except OSError:
        return None
    return Printed(kept.decode(errors="replace"), is_whole and len(kept) < KEPT_BYTES)


def other_results(printed: Mapping[str, Sequence[Printed]]) -> list[str]:
    """Return a sentence for each variant that prints other results than the first.

    A line counts only if it is the same in each run of a variant: times and random numbers do not
    count. Lines about devices, cores, threads or ranks do not count either. Numbers may differ by
    0.1 % or by 0.000001. If runs were stopped early, only lines count that all of them printed.

    Args:
        printed: variant -> the output of each of its runs, two or more.
    """
    stable = {name: _stable(runs) for name, runs in printed.items() if len(runs) > 1}
    if len(stable) < 2:
        return []
    (first, lines), *others = stable.items()
    return [words for name, own in others if (words := _difference(first, lines, name, own))]


def _stable(runs: Sequence[Printed]) -> _Stable | None:
    """Return the lines that are the same in all runs; None if their number differs."""
    is_whole = all(run.is_whole for run in runs)
    split = [_lines(run) for run in runs]
    if is_whole and len({len(lines) for lines in split}) != 1:
        return None
    both = zip(*split, strict=is_whole)
    return _Stable([same[0] if len(set(same)) == 1 else None for same in both], is_whole)


def _lines(run: Printed) -> list[str]:
    text = run.text if run.is_whole else run.text[: run.text.rfind("\n") + 1]
    return text.splitlines()


def _difference(first: str, lines: _Stable | None, name: str, own: _Stable | None) -> str:
    if lines is None or own is None:
        return ""
    is_whole = lines.is_whole and own.is_whole
    if is_whole and len(lines.lines) != len(own.lines):
        many, others = (
            f"{len(one.lines)} line{'s' if len(one.lines) != 1 else ''}" for one in (lines, own)
        )
        return f"The program prints {many} on {first}, and {others} on {name}."
    both = zip(lines.lines, own.lines, strict=is_whole)
    for number, (line, other) in enumerate(both, 1):
        if line is not None and other is not None and not _are_alike(line, other):
            return (
                f"The program prints other results on {name} than on {first}: line {number} is "
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
