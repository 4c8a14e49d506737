"""The rooflines of the page, as plain SVG: arithmetic over arithmetic intensity, both logarithmic.

Horizontal positions are per cent of the width, and heights are pixels. So the drawing fits the
width of the page, and its text keeps its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.document import RooflinePlot, RooflinePoint
from teho.show.cells import between, quantity
from teho.show.html.markup import drawn_text, grid, prose, row, text

__all__ = ["rooflines_section"]

_HEIGHT_PX = 320.0
_NAMES_PX = 76
_ROOM_ABOVE = 0.3
"""Decades above the highest roof, for its label."""
_LEAST_INTENSITY, _MOST_INTENSITY = 0, 4
"""Powers of ten that every drawing covers, in FLOP/byte; a point outside widens it."""
_LABEL_PX = 5.0
_NAME_PX = 16.0
"""Distance between a point and its name."""
_ABOVE_PX, _BELOW_PX = 22.0, 9.0
"""Least distance of the name from a roof, which has a name above it."""
_LEFT_ROOM = 0.4
"""Share of the width of a telephone that the name of the memory slope needs."""
_EDGE = 18
"""Distance from the side or the slope, in per cent of the width, below which a name is moved
to the middle: half of `mean of 128 GPUs` on a telephone."""
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


class _Frame(NamedTuple):
    """The ranges of a drawing, in powers of ten."""

    left: float
    right: float
    bottom: float
    top: float

    def x(self, flop_per_byte: float) -> float:
        """Return the position of an intensity, in per cent of the width."""
        return 100 * (math.log10(flop_per_byte) - self.left) / (self.right - self.left)

    def y(self, flop_per_s: float) -> float:
        """Return the position of a rate, in pixels from the top."""
        return _HEIGHT_PX * (self.top - math.log10(flop_per_s)) / (self.top - self.bottom)

    def intensities(self) -> range:
        """Return the powers of ten on the horizontal axis."""
        return range(math.ceil(self.left), math.floor(self.right) + 1)

    def rates(self) -> range:
        """Return the powers of ten on the vertical axis."""
        return range(math.ceil(self.bottom), math.floor(self.top) + 1)

    def flop_per_s(self, y: float) -> float:
        """Return the rate at a position, the inverse of `y`."""
        return float(10 ** (self.top - y / _HEIGHT_PX * (self.top - self.bottom)))


def rooflines_section(rooflines: Sequence[RooflinePlot]) -> str:
    """Write a figure for each GPU model; empty without rooflines."""
    return "".join(_figure(roofline) for roofline in rooflines)


def _figure(roofline: RooflinePlot) -> str:
    frame = _frame(roofline)
    name = f"{roofline.model} under its roofline: {roofline.sentence}"
    notes = "".join(f"<li>{prose(note)}</li>" for note in roofline.notes)
    return f"""<figure class="roofline">
<figcaption><div class="title"><h4>{text(roofline.model)}</h4></div>
<p>{prose(roofline.sentence)}</p></figcaption>
<div class="map">
{_heights(frame)}
<svg class="field" height="{_HEIGHT_PX:g}" role="img" \
aria-label="{text(name)}; the numbers follow below">
{_grid(frame)}
{_roofs(frame, roofline)}
{_points(frame, roofline)}
</svg>
{_intensities(frame)}
</div>
{_key(roofline)}
<ul class="below">{notes}</ul>
<details><summary>Show the numbers</summary>{_numbers(roofline)}</details>
</figure>
"""


def _frame(roofline: RooflinePlot) -> _Frame:
    points = [roofline.mean, *roofline.points]
    highest = roofline.roofs[-1].flop_per_s
    ridge = highest / roofline.memory_bytes_per_s
    lowest = min([roofline.roofs[0].flop_per_s, *(point.least_flop_per_s for point in points)])
    return _Frame(
        left=min(_LEAST_INTENSITY, *(_floor(point.least_flop_per_byte) for point in points)),
        right=max(
            _MOST_INTENSITY, _floor(ridge) + 1, *(_floor(p.most_flop_per_byte) + 1 for p in points)
        ),
        bottom=_floor(lowest / 3),
        top=math.log10(highest) + _ROOM_ABOVE,
    )


def _floor(value: float) -> int:
    return math.floor(math.log10(value))


def _heights(frame: _Frame) -> str:
    """Write the scale of the rates, on the left."""
    words = "".join(
        drawn_text(_rate(power), f"{_NAMES_PX - 6}", frame.y(10.0**power), "end")
        for power in frame.rates()
    )
    return (
        f'<svg class="names" width="{_NAMES_PX}" height="{_HEIGHT_PX:g}" aria-hidden="true">'
        f"{words}</svg>"
    )


def _intensities(frame: _Frame) -> str:
    """Write the scale of the intensities, below."""
    powers = frame.intensities()
    anchors = {powers[0]: "start", powers[-1]: "end"}
    words = "".join(
        f'<text x="{frame.x(10.0**power):.4g}%" y="14" '
        f'text-anchor="{anchors.get(power, "middle")}">{10.0**power:,g}</text>'
        for power in powers
    )
    title = '<text x="100%" y="30" text-anchor="end">operations per byte of memory traffic</text>'
    return f'<svg class="axis" height="36" aria-hidden="true">{words}{title}</svg>'


def _rate(power: int) -> str:
    prefix, digits = divmod(power, 3)
    return f"{10**digits} {_PREFIXES[prefix]}FLOP/s"


def _grid(frame: _Frame) -> str:
    across = (_line(0, frame.y(10.0**power), 100, frame.y(10.0**power)) for power in frame.rates())
    down = (
        _line(frame.x(10.0**power), 0, frame.x(10.0**power), _HEIGHT_PX)
        for power in frame.intensities()
    )
    return f'<g class="grid">{"".join(across)}{"".join(down)}</g>'


def _roofs(frame: _Frame, roofline: RooflinePlot) -> str:
    """Draw the slope of the memory, and each roof from the slope to the right."""
    memory = roofline.memory_bytes_per_s
    parts = [_slope(frame, roofline)]
    for roof in roofline.roofs:
        height = frame.y(roof.flop_per_s)
        kind = "roof active" if roof.active else "roof"
        label = f"{roof.label} {quantity(roof.flop_per_s, 'FLOP/s')}"
        parts.append(
            f'<g class="{kind}">{_line(frame.x(roof.flop_per_s / memory), height, 100, height)}'
            f"{drawn_text(label, '99.5%', height - _LABEL_PX - 3, 'end')}</g>"
        )
    return "\n".join(parts)


def _slope(frame: _Frame, roofline: RooflinePlot) -> str:
    memory = roofline.memory_bytes_per_s
    begin = max(frame.left, frame.bottom - math.log10(memory))
    end = math.log10(roofline.roofs[-1].flop_per_s / memory)
    # The name is above the slope, far enough to the right to fit on a narrow page.
    room = frame.left + _LEFT_ROOM * (frame.right - frame.left)
    named = 10 ** max(begin + 0.6 * (end - begin), room)
    height = frame.y(memory * min(named, 10**end))
    line = _line(
        frame.x(10**begin), frame.y(memory * 10**begin),
        frame.x(10**end), frame.y(memory * 10**end),
    )  # fmt: skip
    label = f"memory {quantity(memory, 'B/s')}"
    where = f"{frame.x(named) - 2:.4g}%"
    return f'<g class="roof active">{line}{drawn_text(label, where, height - _LABEL_PX, "end")}</g>'


def _points(frame: _Frame, roofline: RooflinePlot) -> str:
    """Draw every GPU as a small point, and the mean or the only GPU large with its name."""
    mean = roofline.mean
    small = roofline.points if len(roofline.points) > 1 else ()
    dots = "".join(_dot(frame, point) for point in small)
    spans = mean.least_flop_per_s < mean.most_flop_per_s
    low = _circle(frame, mean.least_flop_per_byte, mean.least_flop_per_s, "spot least")
    x, y = frame.x(mean.least_flop_per_byte), frame.y(mean.least_flop_per_s) + _NAME_PX
    for roof in reversed(roofline.roofs):
        height = frame.y(roof.flop_per_s)
        if height - _ABOVE_PX < y < height + _BELOW_PX:
            y = height + _BELOW_PX
    # The name must not cross the slope, which has a name too.
    slope = frame.x(frame.flop_per_s(y) / roofline.memory_bytes_per_s)
    if x < max(slope, 0) + _EDGE and max(x, slope) < 100 - 2 * _EDGE:
        x, anchor = max(x, slope + 2), "start"
    else:
        anchor = "end" if x > 100 - _EDGE else "middle"
    return (
        f'<g class="dots">{dots}</g>{_span(frame, mean) + low if spans else ""}'
        f"{_circle(frame, mean.most_flop_per_byte, mean.most_flop_per_s, 'spot')}"
        f'<g class="name">{drawn_text(mean.label, f"{x:.4g}%", y, anchor)}</g>'
    )


def _dot(frame: _Frame, point: RooflinePoint) -> str:
    x, y = frame.x(point.most_flop_per_byte), frame.y(point.most_flop_per_s)
    return f'<circle cx="{x:.4g}%" cy="{y:.4g}" r="3"><title>{text(_title(point))}</title></circle>'


def _circle(frame: _Frame, flop_per_byte: float, flop_per_s: float, kind: str) -> str:
    x, y = frame.x(flop_per_byte), frame.y(flop_per_s)
    return f'<circle class="{kind}" cx="{x:.4g}%" cy="{y:.4g}" r="5"/>'


def _span(frame: _Frame, point: RooflinePoint) -> str:
    line = _line(
        frame.x(point.least_flop_per_byte), frame.y(point.least_flop_per_s),
        frame.x(point.most_flop_per_byte), frame.y(point.most_flop_per_s),
    )  # fmt: skip
    return f'<g class="span">{line}</g>'


def _title(point: RooflinePoint) -> str:
    return (
        f"{point.label}: at most {quantity(point.most_flop_per_s, 'FLOP/s')} at "
        f"{quantity(point.most_flop_per_byte, 'FLOP/byte')}"
    )


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.4g}%" y1="{y1:.4g}" x2="{x2:.4g}%" y2="{y2:.4g}"/>'


def _key(roofline: RooflinePlot) -> str:
    if roofline.mean.least_flop_per_s == roofline.mean.most_flop_per_s:
        return ""
    circles = (
        ("spot least", "if the tensor cores ran in TF32"),
        ("spot", "if the tensor cores ran in 16 bit"),
    )
    return (
        '<p class="scale">'
        + "".join(
            f'<span><svg width="12" height="12" aria-hidden="true"><circle class="{kind}" cx="6" '
            f'cy="6" r="5"/></svg> {words}</span>'
            for kind, words in circles
        )
        + "</p>"
    )


def _numbers(roofline: RooflinePlot) -> str:
    several = [roofline.mean] if len(roofline.points) > 1 else []
    points = grid(
        f"{roofline.model}, each GPU",
        ("memory traffic", "arithmetic, at most", "operations per byte, at most"),
        map(_row, (*several, *roofline.points)),
    )
    memory = row("memory", [quantity(roofline.memory_bytes_per_s, "B/s")])
    roofs = [row(roof.label, [quantity(roof.flop_per_s, "FLOP/s")]) for roof in roofline.roofs]
    return points + grid(f"{roofline.model}, its peaks", ["peak"], [memory, *roofs])


def _row(point: RooflinePoint) -> str:
    figures = (
        quantity(point.bytes_per_s, "B/s"),
        between(point.least_flop_per_s, point.most_flop_per_s, "FLOP/s"),
        between(point.least_flop_per_byte, point.most_flop_per_byte, "FLOP/byte"),
    )
    return row(point.label, figures)
