"""One step of a trace over time, as plain SVG: a strip for each lane, with its legend above it.

Each strip is as wide as the page. A part of the step in which something took half of the time is
drawn at half of the height, so many short kernels seem as full as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from teho.model.trace import Lane, StepPicture
from teho.model.trace_memory import MemoryPhase
from teho.profile.memory_words import DURING
from teho.show.cells import quantity
from teho.show.html.markup import drawn_text, grid, row, text
from teho.units import format_bytes, format_time

__all__ = ["step_section"]

_HEIGHT = 36
"""Height of a strip, in pixels; also in units of its drawing."""
_COLORS = 8
_MARKS = (0, 25, 50, 75, 100)
_SAME_COLOR: dict[MemoryPhase, str] = {
    "input": "waiting for data",
    "forward": "other operators",
    "backward": "backward pass",
    "optimizer": "optimizer",
}
"""Band of the CPU that has the same colour as the memory that was allocated in this phase."""


def step_section(picture: StepPicture | None) -> str:
    """Write the strips of a step with a scale of times and a table; empty without a picture."""
    if picture is None:
        return ""
    name = "the trace" if picture.step is None else f"step {picture.step}"
    colors = _colors(picture.lanes)
    strips = "".join(_strip(lane, picture, name, colors) for lane in picture.lanes)
    strips += _memory_strip(picture, name, colors)
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
    bands = [(colors[band.label], band.shares) for band in lane.bands]
    return _drawn(lane.label, legend, name, bands)


def _memory_strip(picture: StepPicture, name: str, colors: dict[str, int]) -> str:
    """Draw the memory of the device; empty if the profiler did not record memory."""
    memory = picture.memory
    if memory is None:
        return ""
    known = {
        band.phase: colors[label]
        for band in memory.bands
        if (label := _SAME_COLOR.get(band.phase)) in colors
    }
    free = [color for color in range(_COLORS) if color not in known.values()]
    chosen = [known[one.phase] if one.phase in known else free.pop(0) for one in memory.bands]
    legend = "".join(
        f'<span class="c{color}"><i></i>{text(DURING[band.phase])} '
        f"{text(format_bytes(band.peak_bytes))}</span>"
        for color, band in zip(chosen, memory.bands, strict=True)
    )
    label = f"GPU {picture.device}, memory up to {format_bytes(memory.peak_bytes)}, allocated"
    bands = [(color, one.shares) for color, one in zip(chosen, memory.bands, strict=True)]
    return _drawn(label, legend, name, bands)


def _drawn(label: str, legend: str, name: str, bands: Sequence[tuple[int, Sequence[float]]]) -> str:
    """Draw a strip below its legend; each band has its colour and its shares."""
    described = text(f"{label} over {name}; the numbers follow below")
    return f"""<p class="lane"><b>{text(label)}</b>{legend}</p>
<svg class="strip" height="{_HEIGHT}" viewBox="0 0 {len(bands[0][1])} {_HEIGHT}" \
preserveAspectRatio="none" role="img" aria-label="{described}">{_bands(bands)}</svg>
"""


def _bands(bands: Sequence[tuple[int, Sequence[float]]]) -> str:
    """Draw each band as one path, above the bands before it; equal neighbours are one rectangle."""
    below = [0] * len(bands[0][1])
    paths = []
    for color, shares in bands:
        tops = [
            min(under + round(share * _HEIGHT), _HEIGHT)
            for under, share in zip(below, shares, strict=True)
        ]
        path, left = "", 0
        for (under, top), same in groupby(zip(below, tops, strict=True)):
            right = left + sum(1 for _ in same)
            if top > under:
                path += f"M{left} {_HEIGHT - top}H{right}V{_HEIGHT - under}H{left}z"
            left = right
        paths.append(f'<path class="c{color}" d="{path}"/>')
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
    times = grid("the time of each part of the step", ("time", "share"), rows)
    if picture.memory is None:
        return times
    amounts = (
        row(f"allocated {DURING[band.phase]}", (format_bytes(band.peak_bytes),))
        for band in picture.memory.bands
    )
    return times + grid("the memory in the step", ("most memory",), amounts)
