"""The picture of `teho scale`: speed-up by the number of workers, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from teho.model.scaled import CurvePoint, Fit, Scaled
from teho.show.plot.drawn import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_scaled", "paint_scaled"]

_INCHES = (5.2, 3.6)
_LAWS = {"amdahl": "Amdahl's law", "usl": "Universal Scalability Law"}


def draw_scaled(scaled: Scaled, form: str) -> bytes:
    """Draw measured speed-ups with their 95 % intervals, the ideal line, and the first fit.

    Beyond the largest measured size, the fit is dashed.

    Args:
        scaled: the result.
        form: `svg` or `png`.

    Raises:
        InputError: matplotlib is not installed.
    """
    return drawn(
        lambda figure: paint_scaled(figure.subplots(), scaled), form, inches=_INCHES, salt="scale"
    )


def paint_scaled(axes: Axes, scaled: Scaled) -> None:
    """Draw a scaling result into axes."""
    measured = [(size.n, size.speed_up) for size in scaled.sizes if size.speed_up]
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlabel(f"{scaled.worker}s")
    axes.set_ylabel(
        "speed-up" if scaled.kind == "strong" else "work per second, relative to the smallest size"
    )
    if not measured:
        return
    sizes = [n for n, _ in measured]
    ideal = [n / sizes[0] for n in (sizes[0], sizes[-1])]
    axes.plot([sizes[0], sizes[-1]], ideal, color="0.5", linestyle=":", label="ideal")
    if scaled.fits:
        _draw_fit(axes, scaled.fits[0], sizes[-1])
    values = [speed_up.value for _, speed_up in measured]
    below = [one.value - (one.value if one.low is None else one.low) for _, one in measured]
    above = [(one.value if one.high is None else one.high) - one.value for _, one in measured]
    axes.errorbar(
        sizes, values, yerr=[below, above], fmt="o", color="C0", capsize=3, label="measured, 95 %"
    )
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False)


def _draw_fit(axes: Axes, fit: Fit, largest: int) -> None:
    axes.fill_between(
        [point.n for point in fit.curve],
        [point.low for point in fit.curve],
        [point.high for point in fit.curve],
        color="C1",
        alpha=0.2,
        linewidth=0,
    )
    inside = [point for point in fit.curve if point.n <= largest]
    _draw_line(axes, inside, "-", _LAWS[fit.law])
    _draw_line(axes, fit.curve[len(inside) - 1 :], "--", "")


def _draw_line(axes: Axes, points: Sequence[CurvePoint], style: str, label: str) -> None:
    axes.plot(
        [point.n for point in points],
        [point.speed_up for point in points],
        color="C1",
        linestyle=style,
        label=label or None,
    )
