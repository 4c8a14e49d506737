"""What `teho bench` measured, as tables that text and HTML share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from teho.bench.examples import LIBRARIES
from teho.bench.judge import key_of
from teho.bench.verdict import UNITS, number_text, of_placement, place_text
from teho.model.bench import Measured, Point, Timing
from teho.show.view import Cell, Column, Table
from teho.units import format_bytes, format_count, format_time

__all__ = ["Scale", "scale_of", "tables_of", "told_phases"]

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_RIGHT = "figure"
"""A unit that no heading shows: it sets texts flush right, as figures are."""


class Scale(NamedTuple):
    """In what a table or a plot shows its figures."""

    unit: str
    """Empty where each figure has its own."""
    value: Callable[[Timing], float | None]


def scale_of(measured: Measured) -> Scale:
    """Return what is shown of a timing: its median, or its rate in a unit that fits the highest."""
    if measured.figure == "time":
        return Scale("", lambda timing: timing.median_s)
    name, unit = f"{measured.figure}_per_s", UNITS[measured.figure]
    most = max((getattr(one, name) or 0.0 for one in measured.timings), default=0.0)
    factor, prefix = next((pair for pair in _PREFIXES if most >= pair[0]), (1.0, ""))
    if measured.figure == "items":
        factor, prefix = 1.0, ""

    def value(timing: Timing) -> float | None:
        found = getattr(timing, name)
        return None if found is None else found / factor

    return Scale(prefix + unit, value)


def tables_of(measured: Measured) -> list[Table]:
    """Return the figures, a table for each phase or one of all, then the crossovers."""
    told = told_phases(measured)
    of_phases = [[phase] for phase in told] if measured.figure in {"time", "flop"} else [told]
    found = [_figures(measured, phases) for phases in of_phases if phases]
    return [*found, *_crossovers(measured), *_pay_offs(measured)]


def told_phases(measured: Measured) -> list[str]:
    """Return the phases that are told and were timed, in order."""
    timed = {one.phase for one in measured.timings}
    return [phase for phase in measured.phases if phase in timed]


def _figures(measured: Measured, phases: Sequence[str]) -> Table:
    scale = scale_of(measured)
    timings = {
        (key_of(one.point), one.phase, one.placement, one.library): one for one in measured.timings
    }
    sides = [
        (one.placement, one.library)
        for one in measured.participants
        if any(key[1] in phases and key[2:] == (one.placement, one.library) for key in timings)
    ]
    points = [point for group in measured.groups.values() for point in group]
    keys = [key for key in points[0] if key != measured.axis]
    rows: list[dict[str, Cell]] = []
    for phase in phases:
        for point in points:
            cells: dict[str, Cell] = {
                f"{placement} {library}": _cell(
                    timings.get((key_of(point), phase, placement, library)), scale
                )
                for placement, library in sides
            }
            if any(cell is not None for cell in cells.values()):
                rows.append({"phase": phase, **_point_cells(point, measured.axis), **cells})
    columns = [
        *([Column(key="phase", label="")] if len(phases) > 1 else []),
        *(Column(key=key, label=key) for key in keys),
        Column(key=measured.axis, label=measured.axis, unit=_RIGHT),
        *(
            Column(
                key=f"{placement} {library}",
                label=LIBRARIES[library],
                band=of_placement(placement),
                unit=_RIGHT,
            )
            for placement, library in sides
        ),
    ]
    title = phases[0].capitalize() if len(phases) == 1 else measured.title
    return Table(
        key=phases[0] if len(phases) == 1 else "phases",
        title=f"{title}, {scale.unit}" if scale.unit else title,
        columns=tuple(columns),
        rows=tuple(rows),
        shown=tuple(range(len(rows))),
    )


def _point_cells(point: Point, axis: str) -> dict[str, Cell]:
    return {
        key: format_bytes(value)
        if key == "bytes"
        else format_count(value)
        if key == axis
        else str(value)
        for key, value in point.items()
    }


def _cell(timing: Timing | None, scale: Scale) -> Cell:
    value = scale.value(timing) if timing else None
    if value is None:
        return None
    if not scale.unit:
        return format_time(value)
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def _crossovers(measured: Measured) -> list[Table]:
    """Return from where on who is faster: a row for each pair and group, a band for each phase."""
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    pairs = list(dict.fromkeys((one.fast, one.slow) for one in measured.crossovers))
    for one in sorted(measured.crossovers, key=lambda one: pairs.index((one.fast, one.slow))):
        pair = f"{of_placement(one.fast)} against {of_placement(one.slow)}"
        row = rows.setdefault((pair, one.group), {"pair": pair, "group": one.group})
        words = {"never": "never", "always": "always"}
        row[f"{one.phase} from"] = words.get(one.outcome) or _place(measured.axis, one.high)
        row[f"{one.phase} equal"] = _place(measured.axis, one.estimate)
        row[f"{one.phase} times"] = number_text(one.times)
    if not rows:
        return []
    others = dict.fromkeys(
        f"{one.phase.capitalize()} is held against {of_placement(one.slow)} ({one.slow_phase})"
        for one in measured.crossovers
        if one.slow_phase
    )
    labels = (("from", "faster from"), ("equal", "equal near"), ("times", "times at last"))
    columns = [
        Column(key="pair", label=""),
        *([Column(key="group", label="of")] if any(group for _, group in rows) else []),
        *(
            Column(key=f"{phase} {key}", label=label, band=phase, unit=_RIGHT)
            for phase in told_phases(measured)
            if any(f"{phase} from" in row for row in rows.values())
            for key, label in labels
        ),
    ]
    return [
        Table(
            key="crossovers",
            title=f"Who is faster from where on, in {measured.axis}",
            columns=tuple(columns),
            rows=tuple(rows.values()),
            shown=tuple(range(len(rows))),
            note="; ".join(others),
        )
    ]


def _place(axis: str, place: float | None) -> str | None:
    if place is None:
        return None
    return format_bytes(place) if axis == "bytes" else number_text(place)


def _pay_offs(measured: Measured) -> list[Table]:
    last = {(one.group, one.placement, one.against): one for one in measured.pay_offs}
    rows: list[dict[str, Cell]] = [
        {
            "pair": f"{of_placement(one.placement)} against {of_placement(one.against)}",
            "group": one.group,
            "at": place_text(measured.axis, one.point[measured.axis]),
            "library": LIBRARIES[one.library],
            "first": format_time(one.first_s),
            "runs": number_text(math.ceil(one.runs)),
        }
        for one in last.values()
    ]
    if not rows:
        return []
    passes = dict.fromkeys(
        f"A run is one pass over {format_count(one.point['images'])} images"
        for one in last.values()
        if "images" in one.point
    )
    columns = (
        Column(key="pair", label=""),
        Column(key="group", label="of"),
        Column(key="at", label="at"),
        Column(key="library", label="library"),
        Column(key="first", label="start and copies", unit=_RIGHT),
        Column(key="runs", label="runs", unit=_RIGHT),
    )
    return [
        Table(
            key="pay_offs",
            title="Runs until a GPU has paid off",
            columns=columns,
            rows=tuple(rows),
            shown=tuple(range(len(rows))),
            note="; ".join(passes),
        )
    ]
