"""One step of a trace over time, as plain SVG: a strip for each lane, with its legend above it.

Each strip is as wide as the page. A part of the step in which something took half of the time is
drawn at half of the height, so many short kernels look as full as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from teho.model.trace import Band, Lane, StepPicture
from teho.show.cells import quantity
from teho.show.html.markup import drawn_text, grid, row, text
from teho.units import format_time

__all__ = ["step_section"]

_HEIGHT = 36
"""Height of a strip, in pixels; also in units of its drawing."""
_COLORS = 8
_MARKS = (0, 25, 50, 75, 100)


def step_section(picture: StepPicture | None) -> str:
    """Write the strips of a step with a scale of times and a table; empty without a picture."""
    if picture is None:
        return ""
    name = "the trace" if picture.step is None else f"step {picture.step}"
    colors = _colors(picture.lanes)
    strips = "".join(_strip(lane, picture, name, colors) for lane in picture.lanes)
    return f"""<figure class="step">
<figcaption><p>Time goes from left to right. If a strip is empty, nothing of this was done then.</p>
</figcaption>
<div class="strips">{strips}</div>
{_axis(picture.elapsed_s)}
<details><summary>Show the numbers</summary>{_numbers(picture)}</details>
</figure>
"""


def _colors(lanes: Sequence[Lane]) -> dict[str, int]:
    """Return the colour of each label: the same in all lanes, and in one lane all are different."""
    colors: dict[str, int] = {}
    for lane in lanes:
        used = {colors[band.label] for band in lane.bands if band.label in colors}
        free = [color for color in range(_COLORS) if color not in used]
        for band in lane.bands:
            if band.label not in colors:
                colors[band.label] = free.pop(0) if free else 0
    return colors


def _strip(lane: Lane, picture: StepPicture, name: str, colors: dict[str, int]) -> str:
    legend = "".join(
        f'<span class="c{colors[band.label]}"><i></i>{text(band.label)} '
        f"{quantity(100 * band.time_s / picture.elapsed_s, '%')}</span>"
        for band in lane.bands
    )
    label = text(f"{lane.label} over {name}; the numbers follow below")
    return f"""<p class="lane"><b>{text(lane.label)}</b>{legend}</p>
<svg class="strip" height="{_HEIGHT}" viewBox="0 0 {len(lane.bands[0].shares)} {_HEIGHT}" \
preserveAspectRatio="none" role="img" aria-label="{label}">{_bands(lane.bands, colors)}</svg>
"""


def _bands(bands: Sequence[Band], colors: dict[str, int]) -> str:
    """Draw each band as one path, above the bands before it; equal neighbours are one rectangle."""
    below = [0] * len(bands[0].shares)
    paths = []
    for band in bands:
        tops = [
            min(under + round(share * _HEIGHT), _HEIGHT)
            for under, share in zip(below, band.shares, strict=True)
        ]
        path, left = "", 0
        for (under, top), same in groupby(zip(below, tops, strict=True)):
            right = left + sum(1 for _ in same)
            if top > under:
                path += f"M{left} {_HEIGHT - top}H{right}V{_HEIGHT - under}H{left}z"
            left = right
        paths.append(f'<path class="c{colors[band.label]}" d="{path}"/>')
        below = tops
    return "".join(paths)


def _axis(elapsed_s: float) -> str:
    anchors = {0: "start", 100: "end"}
    words = "".join(
        drawn_text(
            format_time(elapsed_s * percent / 100) if percent else "0", f"{percent}%", 9,
            anchors.get(percent, "middle"),
        )
        for percent in _MARKS
    )  # fmt: skip
    return f'<svg class="axis" height="18" aria-hidden="true">{words}</svg>'


def _numbers(picture: StepPicture) -> str:
    rows = (
        row(
            f"{lane.label}: {band.label}",
            (format_time(band.time_s), quantity(100 * band.time_s / picture.elapsed_s, "%")),
        )
        for lane in picture.lanes
        for band in lane.bands
    )
    return grid("the time of each part of the step", ("time", "share"), rows)
