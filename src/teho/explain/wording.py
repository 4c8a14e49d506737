"""Write nodes, ranks and figures in a sentence, for any number of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from teho.model.stack import Frame
from teho.model.watched import is_for_cpus
from teho.units import format_quantity

__all__ = [
    "EVALUATE_LESS",
    "FEWER_KERNELS",
    "MOST_NAMED",
    "blind_tensorflow",
    "blind_torch",
    "capital",
    "counted",
    "joined",
    "listed",
    "longest_places",
    "most_of_it",
    "numbered",
    "ranks_on",
    "short_numbers",
    "span",
    "the_ranks",
]

MOST_NAMED = 4
"""Number of places that a sentence names before `and 12 more`."""
_MOST_LINES, _LARGE_PART = 3, 0.2
"""A sentence names at most so many lines of code: those that took this part of the time."""
_LONGEST_CODE = 40
"""Maximum number of characters of a line of code in a sentence."""

FEWER_KERNELS = (
    'Launch fewer kernels: `torch.compile(model, mode="reduce-overhead")` joins kernels and '
    "launches many of them at once, as a CUDA graph. In JAX, put `jax.jit` around the whole step "
    "to launch fewer kernels."
)
"""Advice for programs that launch many small kernels."""
EVALUATE_LESS = (
    "Evaluate less often, or on a fixed part of the data: set `check_val_every_n_epoch`, "
    "`val_check_interval` or `limit_val_batches` in Lightning, `eval_steps` in Transformers, or "
    "`validation_freq` in Keras. For the evaluation, use larger batches and "
    "`torch.inference_mode()`."
)
"""Advice for programs that evaluate for long."""


def most_of_it(lines: Sequence[tuple[Frame, float]]) -> str:
    """Return `, most of it at train.py:12 (`code`)`, to follow a time; empty without lines.

    Args:
        lines: the program's lines with their times, longest first.
    """
    if not lines:
        return ""
    frame = lines[0][0]
    long = len(frame.text) > _LONGEST_CODE
    text = f"{frame.text[: _LONGEST_CODE - 1]}…" if long else frame.text
    return f", most of it at {frame.short_place}{f' (`{text}`)' if text else ''}"


def joined(names: Sequence[str]) -> str:
    """Join names: `a`, `a and b`, `a, b and c`."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def longest_places(lines: Sequence[tuple[Frame, float]], whole_s: float) -> str:
    """Join the places of the lines that took a large part of some time: the first one, and others.

    Args:
        lines: with the time of each in s, longest first; at least one.
        whole_s: the whole time, in s.
    """
    large = [one for one, s in lines[:_MOST_LINES] if s >= _LARGE_PART * whole_s]
    return joined([*dict.fromkeys(one.short_place for one in large or [lines[0][0]])])


def listed(names: Sequence[str], noun: str = "") -> str:
    """Join names, and count the rest of many: `a, b, c, d and 12 more`.

    Args:
        names: at least one.
        noun: a word for the rest, such as `nodes`.
    """
    if len(names) <= MOST_NAMED:
        return joined(names)
    more = f"{len(names) - MOST_NAMED} more {noun}".rstrip()
    return joined([*names[:MOST_NAMED], more])


def numbered(numbers: Iterable[int]) -> str:
    """Join whole numbers, three or more neighbours as a range: `0–7 and 9`, `0, 2 and 12 more`."""
    parts = _neighbours(numbers)
    left = sum(map(len, parts[MOST_NAMED:]))
    texts = [*map(_range, parts[:MOST_NAMED]), *([f"{left} more"] if left else [])]
    return joined(texts)


def short_numbers(numbers: Iterable[int]) -> str:
    """Join whole numbers for a column of a table: `0–7,9`."""
    return ",".join(map(_range, _neighbours(numbers)))


def _range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"


def _neighbours(numbers: Iterable[int]) -> list[list[int]]:
    """Return sorted numbers; three or more neighbours are one part."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    # `0 and 1` reads better than `0–1`.
    return [part for run in runs for part in ([run] if len(run) > 2 else [[one] for one in run])]


def the_ranks(ranks: Iterable[int]) -> str:
    """Name ranks: `rank 7`, `ranks 0–7 and 9`."""
    numbers = set(ranks)
    return f"rank{'' if len(numbers) == 1 else 's'} {numbered(numbers)}"


def ranks_on(ranks: Iterable[int], nodes: Iterable[str]) -> str:
    """Name ranks and their nodes, if these are known: `ranks 8–15 on r01g02`."""
    places = [node for node in dict.fromkeys(nodes) if node]
    return f"{the_ranks(ranks)} on {listed(places)}" if places else the_ranks(ranks)


def capital(words: str) -> str:
    """Return the words with a capital first letter."""
    return words[:1].upper() + words[1:]


def span(values: Iterable[float], unit: str) -> str:
    """Write one figure or a range: `12 %`, `12 % to 31 %`."""
    figures = list(values)
    low, high = (format_quantity(value, unit) for value in (min(figures), max(figures)))
    return low if low == high else f"{low} to {high}"


def counted(values: Iterable[float], noun: str) -> str:
    """Write a number with its noun: `1 core`, `8 cores`, `4 to 8 cores`."""
    numbers = set(values)
    return f"{span(numbers, '')} {noun}{'' if numbers == {1} else 's'}"


def blind_tensorflow(facts: Mapping[str, Any]) -> str:
    """Return that a TensorFlow is built for CPUs; empty if it is not, or if it is not known."""
    if is_for_cpus(facts):
        return f"its TensorFlow {facts.get('version', '')} is built for CPUs only"
    return ""


def blind_torch(facts: Mapping[str, Any]) -> str:
    """Return what a PyTorch without CUDA and ROCm is built for.

    Args:
        facts: what the probe recorded; recordings before 2026-11-22 have no `xpu`.
    """
    version = str(facts["version"])
    made_for = "Intel's GPUs" if facts.get("xpu") or "+xpu" in version else "CPUs"
    return f"its PyTorch {version} is built for {made_for} only"
