"""A small drawing of the times of the runs of a program."""

from __future__ import annotations

from collections.abc import Sequence

from teho.show.html.markup import text
from teho.units import format_duration

__all__ = ["spark_line"]

_WIDTH, _HEIGHT, _EDGE = 120.0, 28.0, 3.0


def spark_line(times_s: Sequence[float | None]) -> str:
    """Return an SVG with a line over the times in s; empty with fewer than two times.

    The lower edge is 0 s, so that a small change is drawn small.
    """
    known = [time_s for time_s in times_s if time_s is not None]
    top_s = max(known, default=0.0)
    if len(known) < 2 or top_s <= 0:
        return ""
    step = (_WIDTH - 2 * _EDGE) / (len(known) - 1)
    points = [
        (_EDGE + place * step, _HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * time_s / top_s)
        for place, time_s in enumerate(known)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    words = (
        f"times of {len(known)} runs, oldest first: from {format_duration(known[0])} to "
        f"{format_duration(known[-1])}"
    )
    return (
        f'<svg class="spark" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" '
        f'aria-label="{text(words)}"><polyline points="{line}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/></svg>'
    )
