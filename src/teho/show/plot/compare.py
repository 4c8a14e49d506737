"""The picture of `teho compare`: speeds with their intervals, or times by the swept value."""

from __future__ import annotations

from statistics import median, mode
from typing import TYPE_CHECKING

from teho.model.compared import Compared, Variant
from teho.show.plot.drawn import COLORS, MARK, drawn, log_axes, mark_range
from teho.units import format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_compared"]

_INCHES = (5.2, 3.2)
_MARKERS = "os^Dvp"


def draw_compared(compared: Compared, form: str) -> bytes:
    """Draw bars with their 95 % intervals; if a value was swept, a line for each variant.

    Args:
        compared: the result, with at least one measured variant.
        form: `svg` or `png`.

    Raises:
        InputError: matplotlib is not installed.
    """

    def paint(figure: Figure) -> None:
        panel = figure.subplots()
        panel.set_title(compared.verdict.partition(" (95 %")[0], wrap=True)
        if compared.swept:
            _lines(panel, compared)
        else:
            _bars(panel, [one for one in compared.points[0].variants if one.rates])

    return drawn(paint, form, inches=_INCHES, salt=compared.id or "compare")


def _bars(panel: Axes, variants: list[Variant]) -> None:
    first = variants[0]
    for place, one in enumerate(variants):
        speed = one.speed
        times = speed.times if speed else median(one.rates) / median(first.rates)
        panel.bar(place, times, width=0.6, color=COLORS[one.kind == "gpu"], alpha=0.85)
        if speed:
            ends = [[times - speed.low], [speed.high - times]]
            panel.errorbar(place, times, yerr=ends, color=MARK, capsize=4, linewidth=1.2)
        top = speed.high if speed else times
        panel.annotate(
            f"{times:.3g}×", (place, top), (0, 3), textcoords="offset points", ha="center"
        )
    panel.set_xticks(range(len(variants)), [one.words for one in variants])
    panel.set_ylabel(f"times as fast as {first.words}")
    panel.margins(y=0.12)


def _lines(panel: Axes, compared: Compared) -> None:
    from matplotlib.ticker import FuncFormatter

    # Times of runs and of steps cannot share a line: the kind with more points is drawn.
    measured = [one for one in compared.points if any(own.rates for own in one.variants)]
    kinds = [(one.measure, one.unit if one.measure == "pace" else "") for one in measured]
    measure, unit = kind = mode(kinds)
    points = [one for one, own in zip(measured, kinds, strict=True) if own == kind]
    names = dict.fromkeys(one.name for point in points for one in point.variants)
    for number, name in enumerate(names):
        found = [
            (point.value, one)
            for point in points
            for one in point.variants
            if one.name == name and one.rates and point.value is not None
        ]
        if not found:
            continue
        color = COLORS[number % len(COLORS)]
        values = [value for value, _ in found]
        panel.plot(
            values,
            [1 / median(one.rates) for _, one in found],
            color=color,
            marker=_MARKERS[number % len(_MARKERS)],
            label=found[0][1].words,
        )
        panel.fill_between(
            values,
            [1 / max(one.rates) for _, one in found],
            [1 / min(one.rates) for _, one in found],
            color=color,
            alpha=0.18,
            linewidth=0,
        )
    if edge := compared.break_even:
        mark_range(panel, edge.low, edge.at, edge.high)
    log_axes(panel)
    panel.set_xticks(values := [one.value for one in points if one.value is not None])
    panel.set_xticklabels([f"{value:,.15g}" for value in values])
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_time(value)))
    panel.set_xlabel(compared.swept)
    panel.set_ylabel("time" if measure == "time" else f"time per {unit}")
    panel.legend(frameon=False)
