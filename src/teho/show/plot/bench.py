"""Plots of `teho bench`: the figures by size, and the crossovers of the lines."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from teho.bench.example import shown_group
from teho.bench.examples import LIBRARIES
from teho.bench.judge import key_of
from teho.bench.verdict import known_peaks, of_placement, peak_owner, verdict_pair
from teho.model.bench import Crossover, Measured, Timing
from teho.show.build.bench_tables import Scale, scale_of, shown_phases
from teho.show.plot.drawn import COLORS, MARK, drawn, log_axes, mark_range
from teho.units import format_bytes, format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_MARKERS = {"numpy": "o", "cupy": "s", "jax": "^", "torch": "D"}
_PANEL_INCHES = (3.4, 2.7)
_MOST_IN_ROW = 3
_MOST_TICKS = 7


def draw(measured: Measured, form: str) -> bytes:
    """Draw an example: a panel for each phase and each group of points.

    Groups without measurements are left out. Groups of one point are left out if another group
    has several.

    Args:
        measured: with at least one timing.
        form: `svg` or `png`.

    Raises:
        InputError: matplotlib is not installed.
    """
    shown = shown_phases(measured)
    rows = [tuple(shown)] if measured.figure == "bytes" else [(phase,) for phase in shown]
    timed = {key_of(one.point) for one in measured.timings if one.phase in shown}
    places = {
        group: sum(key_of(point) in timed for point in points)
        for group, points in measured.groups.items()
    }
    groups = [group for group, count in places.items() if count > 1]
    groups = groups or [group for group, count in places.items() if count]
    across = min(len(groups), _MOST_IN_ROW)
    down = len(rows) * ceil(len(groups) / across)

    def paint(figure: Figure) -> None:
        free = iter(figure.subplots(down, across, squeeze=False).flat)
        entries: dict[str, Any] = {}
        for phases in rows:
            first: Axes | None = None
            for place in range(across * ceil(len(groups) / across)):
                panel = next(free)
                if place >= len(groups):
                    panel.remove()
                    continue
                first = first or panel
                panel.sharey(first)
                _panel(measured, panel, phases, groups[place])
                panel.set_xlabel(measured.axis)
                if place % across == 0:
                    panel.set_ylabel(scale_of(measured).unit or "time")
                handles, labels = panel.get_legend_handles_labels()
                entries |= dict(zip(labels, handles, strict=True))
        figure.legend(
            entries.values(), entries.keys(), loc="outside lower center", ncols=3, frameon=False
        )

    width, height = _PANEL_INCHES
    inches = (width * across + 0.6, height * down + 0.9)
    return drawn(paint, form, inches=inches, salt=measured.name)


def _panel(measured: Measured, panel: Axes, phases: tuple[str, ...], group: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    scale = scale_of(measured)
    sides = list(dict.fromkeys(one.placement for one in measured.participants))
    keys = {key_of(point) for point in measured.groups[group]}
    lines: dict[tuple[str, str, str], list[Timing]] = {}
    for one in measured.timings:
        if one.phase in phases and key_of(one.point) in keys and scale.value(one) is not None:
            lines.setdefault((one.phase, one.placement, one.library), []).append(one)
    for (phase, placement, library), timings in lines.items():
        which = phases.index(phase) if len(phases) > 1 else sides.index(placement)
        label = f"{LIBRARIES[library]}, {of_placement(placement)}"
        _line(
            panel,
            sorted(timings, key=lambda one: float(one.point[measured.axis])),
            scale,
            measured.axis,
            color=COLORS[which % len(COLORS)],
            marker=_MARKERS[library],
            linestyle="-" if len(phases) == 1 or placement == sides[0] else "--",
            label=f"{phase}: {label}" if len(phases) > 1 else label,
        )
    for (placement, peak_group), peak in known_peaks(measured, phases).items():
        if peak_group == group:
            label = f"peak of {peak_owner(measured, placement)}"
            panel.axhline(peak / scale.factor, color=MARK, linestyle="-.", label=label)
    log_axes(panel)
    low, high = panel.get_ylim()
    # If the range has few powers of ten, values between them get a label too.
    panel.yaxis.set_major_locator(
        LogLocator(
            subs=range(1, 10) if high < 10 * low else (1, 2, 5) if high < 100 * low else (1,)
        )
    )
    panel.tick_params(length=3, width=0.6)
    show = _short_time if measured.figure == "time" else "{:,g}".format
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))
    write = format_bytes if measured.axis == "bytes" else _short_count
    places = sorted({float(one.point[measured.axis]) for own in lines.values() for one in own})
    panel.set_xticks(places[:: ceil(len(places) / _MOST_TICKS)])
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    if len(phases) == 1:
        shown = shown_group(group, phases[0], measured.groups[group][0])
        panel.set_title(" · ".join(filter(None, (phases[0], shown))))
    else:
        panel.set_title(group)
    pair = verdict_pair(measured)
    for cut in measured.crossovers:
        if (cut.slow, cut.fast) == pair and cut.phase in phases and cut.group in {"", group}:
            _crossing(panel, cut)


def _line(panel: Axes, timings: list[Timing], scale: Scale, axis: str, **style: Any) -> None:
    """Draw medians with their confidence intervals."""
    places = [float(one.point[axis]) for one in timings]
    values = [scale.value(one) or 0.0 for one in timings]
    panel.plot(places, values, **style)
    # For a rate, the longer time gives the lower end; the order of the ends does not matter.
    power = -1 if scale.unit else 1
    least, most = (
        [
            value * (getattr(one, end) / one.median_s) ** power
            for value, one in zip(values, timings, strict=True)
        ]
        for end in ("low_s", "high_s")
    )
    panel.fill_between(places, least, most, color=style["color"], alpha=0.18, linewidth=0)


def _crossing(panel: Axes, crossover: Crossover) -> None:
    """Mark the two points between which a placement becomes faster."""
    if crossover.low is None or crossover.high is None or crossover.estimate is None:
        return
    mark_range(panel, crossover.low, crossover.estimate, crossover.high)


def _short_time(value: float) -> str:
    figure, _, unit = format_time(value).partition(" ")
    return f"{float(figure.replace(',', '')):g} {unit}"


def _short_count(value: float) -> str:
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if value >= factor and value % (factor / 10) == 0:
            return f"{value / factor:g}{unit}"
    return f"{value:,g}"
