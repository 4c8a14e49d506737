"""Causes of lost time in a trace, by the patterns of `causes.toml`, with their measured share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, Union

import msgspec

from teho.config.toml import read_toml, to_noun
from teho.model.finding import Certainty
from teho.model.trace import Cause
from teho.profile import causes_calls as on_cpu
from teho.profile.causes_find import Found, Pattern, Traced, in_copies, in_kernels
from teho.profile.spans import Span, clipped, length
from teho.units import format_quantity

__all__ = ["General", "causes_of", "explained_share", "rows"]

General = Literal["launch", "sync", "pinned", "tensor_cores"]
"""A general advice that a cause may explain better."""

_FILE = Path(__file__).with_name("causes.toml")
_NS = 1e9
_STEPS = 0.5
"""Share of the steps in which a cause with `each_step` must be. It is Teho's own choice."""
_PARTS = 10
"""Number of equal parts of a trace without steps, which count as steps. It is Teho's own choice."""
_MOSTLY_IDLE = 0.5
"""Share of a step from which a device is idle so long that shorter kernels hardly help. It is
Teho's own choice."""
_OFTEN_IDLE = 0.1
"""Share of a step from which an idle device makes it less sure that shorter kernels help."""
_NAMES = 3
"""Largest number of names in a sentence."""
_FINDERS: Mapping[str, Callable[[Traced, Pattern], Union[Found, None]]] = {
    "kernel": in_kernels,
    "copy": in_copies,
    "call": on_cpu.in_calls,
    "operator": on_cpu.in_operators,
    "sync": on_cpu.in_syncs,
    "optimizer": on_cpu.in_optimizers,
    "search": on_cpu.in_searches,
    "between": on_cpu.in_other_code,
    "line": on_cpu.in_one_line,
    "compile": on_cpu.in_compilations,
}
"""Search for each kind of pattern."""


class _Row(Pattern, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the file, which describes the fields."""

    kind: str
    least_share: float
    least_count: float = 0.0
    each_step: bool = False
    xla: bool = False
    certainty: Certainty
    instead: tuple[General, ...] = ()
    mutes: tuple[str, ...] = ()
    sentence: str
    advice: str
    source: str


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cause: tuple[_Row, ...]


@functools.cache
def rows() -> tuple[_Row, ...]:
    """Return all rows of the file."""
    return to_noun(read_toml(_FILE), _Table, _FILE).cause


def causes_of(traced: Traced) -> tuple[Cause, ...]:
    """Return the causes that a trace shows, the largest first."""
    found = {row.kind: cause for row in rows() if (cause := _cause(traced, row))}
    muted = {kind for row in rows() if row.kind in found for kind in row.mutes}
    left = [cause for kind, cause in found.items() if kind not in muted]
    return tuple(sorted(left, key=lambda one: (-one.share, one.kind)))


def explained_share(causes: Sequence[Cause], general: General) -> float:
    """Return the part of a step, 0 to 1, that causes explain better than a general advice."""
    kinds = {row.kind for row in rows() if general in row.instead}
    return sum(cause.share for cause in causes if cause.kind in kinds)


def _cause(traced: Traced, row: _Row) -> Cause | None:
    if (traced.is_xla and not row.xla) or (traced.line is None and row.what != "compile"):
        return None
    idle = traced.idle_share
    is_kernel = row.what == "kernel"
    if is_kernel and idle >= _MOSTLY_IDLE:
        return None
    found = _FINDERS[row.what](traced, row)
    if found is None or not found.spans:
        return None
    windows = [(start, end) for _, start, end in traced.windows]
    time = _in(found, windows)
    share = time / max(sum(end - start for start, end in windows), 1)
    count = found.number / len(windows)
    if share < row.least_share or count < row.least_count:
        return None
    if row.each_step and not _is_in_most(found, windows):
        return None
    certainty = row.certainty
    if is_kernel and idle >= _OFTEN_IDLE and certainty is Certainty.SURE:
        certainty = Certainty.LIKELY
    words = dict(_words(traced, found, share, count))
    advice = row.advice.format(**words)
    if found.line:
        advice = f"At `{found.line}`: {advice[0].lower()}{advice[1:]}"
    return Cause(
        kind=row.kind,
        sentence=_capital(row.sentence.format(**words)),
        advice=advice,
        share=share,
        time_s=time / len(windows) / _NS,
        count=count,
        operator=found.operator,
        line=found.line,
        certainty=certainty,
        source=row.source,
    )


def _in(found: Found, windows: Sequence[Span]) -> int:
    return sum(length(clipped(found.spans, *window)) for window in windows)


def _is_in_most(found: Found, windows: Sequence[Span]) -> bool:
    """Return whether a cause is in most steps, so that it is not only the start of the program."""
    if len(windows) == 1:
        ((start, end),) = windows
        edges = [start + (end - start) * place // _PARTS for place in range(_PARTS + 1)]
        windows = list(pairwise(edges))
    return sum(_in(found, [window]) > 0 for window in windows) > _STEPS * len(windows)


def _words(traced: Traced, found: Found, share: float, count: float) -> Iterator[tuple[str, str]]:
    yield "share", format_quantity(100 * share, "%")
    yield "step", "a step" if traced.has_steps else "the time"
    yield "count", f"{count:,.0f}" if count >= 1 else "less than 1"
    yield "times", "once" if round(count) == 1 else f"{count:,.0f} times"
    yield "plain", found.names[0] if found.names else ""
    yield "each", "in each step" if traced.has_steps else "in this time"
    yield "operator", found.operator.removeprefix("aten::")
    names = [f"`{name}`" for name in found.names[:_NAMES]]
    more = ", …" if len(found.names) > _NAMES else ""
    yield "names", f"{', '.join(names)}{more}" if names else "their names are not in the trace"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
