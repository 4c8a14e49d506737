"""The causes of lost time that a trace shows, and the speed of its matrix operators, as tables."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from teho.model.document import Fact, Table
from teho.model.trace import Efficiency, Trace
from teho.show.build.layout import column, table
from teho.show.build.profile_names import short_operator

__all__ = ["cause_table", "speed_fact", "speed_table"]

_TOP = 12
"""Number of operators and sizes in the table of speeds."""
_WIDTH = 30
"""Width of the sizes in this table."""
_SURE = {"sure": "yes", "likely": "likely", "possible": "possibly"}


def speed_fact(trace: Trace) -> Iterator[Fact]:
    """Yield the part of the highest rate that all matrix operators reached together."""
    known = [one for one in trace.efficiencies if one.peak_flop_per_s]
    time_s = sum(one.time_s for one in known)
    if time_s:
        # At the highest rates, the same operations would need this time.
        least_s = sum(one.flop / (one.peak_flop_per_s or 1.0) for one in known)
        yield Fact(
            "matrix_speed", "Matrix operators at", 100 * least_s / time_s, "%",
            note="of the highest rate of the GPU",
        )  # fmt: skip


def speed_table(trace: Trace, of_trace: str) -> Table:
    """Return how fast the device computed each operator on matrices, for each size."""
    steps = max(trace.step_count, 1)

    def share(one: Efficiency) -> float | None:
        return None if one.share is None else 100 * one.share

    rows = trace.efficiencies[:_TOP]
    more = len(trace.efficiencies) - len(rows)
    made = table(
        "speed",
        f"Speed of matrix operators{of_trace}",
        rows,
        column("operator", "operator", lambda one: short_operator(one.operator)),
        column("sizes", "sizes", lambda one: _short(one.sizes)),
        column("type", "type", lambda one: one.number_type.removeprefix("c10::")),
        column("time", "time", lambda one: one.time_s / steps, unit="s", shown_in="ms",
               decimals=3),
        column("speed", "TFLOP/s", lambda one: one.flop_per_s / 1e12, decimals=1),
        column("share", "of peak", share, unit="%"),
        note="The peak is the highest rate of this GPU for this type of numbers, in the documents "
        "of the maker. The time includes conversions that the operator launched."
        + (f" {more} more sizes took less time." if more > 0 else ""),
    )  # fmt: skip
    return msgspec.structs.replace(made, level="why")


def cause_table(trace: Trace, of_trace: str) -> Table:
    """Return the causes with the figures that support them."""
    steps = trace.step_count
    made = table(
        "causes",
        f"Causes{of_trace}",
        trace.causes,
        column("cause", "cause", lambda one: one.kind),
        column("share", "share", lambda one: 100 * one.share, unit="%"),
        column("time", "time", lambda one: one.time_s, unit="s", shown_in="ms", decimals=3),
        column("count", "per step" if steps else "number", lambda one: one.count, decimals=1),
        column("operator", "operator", lambda one: short_operator(one.operator) or None),
        column("line", "line", lambda one: one.line or None),
        column("certainty", "sure", lambda one: _SURE[one.certainty.value]),
    )
    return msgspec.structs.replace(made, level="why")


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
