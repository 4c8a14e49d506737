"""The options of `teho profile` that say what to record, and the plan that they make."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from teho.errors import InputError
from teho.patterns import lazy_pattern
from teho.units import parse_bytes, parse_duration

if TYPE_CHECKING:
    from teho.model.profiling import ProfilerPlan

__all__ = ["EXTRAS", "RANGE", "TOOLS", "plan_of", "read_ranks", "read_steps"]

EXTRAS = ("stack", "shapes", "memory")
TOOLS = {
    "nsys": ("nsys", "CUDA or of Nsight Systems, such as `module load cuda`"),
    "rocprof": ("rocprofv3", "ROCm, such as `module load rocm`"),
}
"""Words of `--with` for the vendors' profilers: the program, and its module."""
RANGE = "range"
"""Word of `--with` for only marks, which the vendors' profilers read."""
_STEPS = lazy_pattern(r"(\d{1,12}):(\d{1,12})", re.ASCII)
_COUNT = lazy_pattern(r"\d{1,6}", re.ASCII)
_RANKS = lazy_pattern(r"\d{1,7}(,\d{1,7})*", re.ASCII)
_DEFAULT_COUNT = 5
_DEFAULT_WINDOW = "2s"
_MOST_STEPS = 10_000
_LONGEST_WINDOW_S = 600.0


def read_steps(text: str, *, may_be_count: bool) -> tuple[int, int] | int:
    """Return the first and the last step of `20:25`, which are 20 and 24; of `5`, the number.

    Args:
        text: what the user typed.
        may_be_count: whether a single number is allowed.

    Raises:
        InputError: it is not a range of steps.
    """
    match = _STEPS.fullmatch(text)
    if match:
        first, end = int(match[1]), int(match[2])
        if first < 2:
            raise InputError(
                f"--steps {text}: Teho knows the beginning of a step only after the first step",
                "a first step of 2 or more, such as `--steps 20:25`",
            )
        if not first < end <= first + _MOST_STEPS:
            raise InputError(
                f"--steps {text} has no steps"
                if end <= first
                else f"--steps {text} has more than {_MOST_STEPS:,} steps",
                "`--steps FIRST:END`, without the step END: 20:25 are the steps 20 to 24",
            )
        return first, end - 1
    if may_be_count and _COUNT.fullmatch(text) and 0 < int(text) <= _MOST_STEPS:
        return int(text)
    count = ", or a number of steps such as `--steps 5`" if may_be_count else ""
    raise InputError(
        f"--steps {text!r} is not a range of steps",
        f"`--steps FIRST:END`: 20:25 are the steps 20 to 24{count}",
    )


def read_ranks(text: str) -> str | tuple[int, ...]:
    """Return `one`, `all`, or the ranks of `0,3`.

    Raises:
        InputError: it is none of these.
    """
    if text in {"one", "all"}:
        return text
    if _RANKS.fullmatch(text):
        return tuple(sorted({int(one) for one in text.split(",")}))
    raise InputError(f"--ranks {text!r}", "`one`, `all`, or ranks such as `0,3`")


def read_extras(text: str) -> tuple[str, ...]:
    """Return what else to record.

    Raises:
        InputError: a word is not known.
    """
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    known = (*EXTRAS, *TOOLS, RANGE)
    for word in words:
        if word not in known:
            raise InputError(f"--with {word}", f"some of: {', '.join(known)}")
    if len(words) > 1 and {*TOOLS, RANGE} & set(words):
        tools = ", ".join(f"`{one}`" for one in TOOLS)
        raise InputError(f"--with {text}", f"{tools} or `{RANGE}` without other words")
    return words


def plan_of(
    *,
    steps: str | None,
    window: str | None,
    after: str | None,
    extras: str | None,
    ranks: str | None,
    max_time: str,
    max_size: str,
    is_running: bool,
) -> ProfilerPlan:
    """Return the plan that the options describe.

    Args:
        steps: as typed, and so are the others; None: not given.
        window: a length of time.
        after: the time before the window.
        extras: what else to record.
        ranks: which ranks.
        max_time: the longest time to record.
        max_size: the largest trace.
        is_running: whether the program runs already: then the default are steps, and not a
            window, and the steps may be a number.

    Raises:
        InputError: an option is not as expected.
        UnitError: an option is not a time or a size.
    """
    from teho.model.profiling import ProfilerPlan

    if steps is None and window is None and not is_running:
        window = _DEFAULT_WINDOW
    if steps is not None and window is not None:
        raise InputError("--steps cannot be used together with --window", "one of them")
    if after is not None and window is None:
        raise InputError("--after works only with --window", next_step="add `--window 2s`")
    first = last = count = window_s = None
    if window is not None:
        window_s = parse_duration(window, "--window")
        if not 0.01 <= window_s <= _LONGEST_WINDOW_S:
            raise InputError(f"--window: {window!r}", "a time between 10ms and 10min")
    elif steps is not None:
        read = read_steps(steps, may_be_count=is_running)
        if isinstance(read, int):
            count = read
        else:
            first, last = read
    else:
        count = _DEFAULT_COUNT
    return ProfilerPlan(
        id=secrets.token_hex(3),
        first=first,
        last=last,
        count=count,
        window_s=window_s,
        after_s=parse_duration(after, "--after") if after is not None else _after_s(is_running),
        extras=read_extras(extras or ""),
        ranks=read_ranks(ranks or "one"),
        most_s=max(parse_duration(max_time, "--max-time"), window_s or 0.0),
        most_bytes=parse_bytes(max_size, "--max-size"),
    )


def _after_s(is_running: bool) -> float:
    """Return the time before the window: a program that has just started still sets itself up."""
    return 0.0 if is_running else 10.0
