"""The figures of `teho bench` as tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from teho.bench.examples import AXES, LIBRARIES
from teho.bench.images import ALL_IMAGES, LOADER
from teho.bench.judge import key_of
from teho.bench.verdict import (
    UNITS,
    known_peaks,
    number_text,
    of_placement,
    peak_owner,
    place_text,
)
from teho.explain.wording import joined
from teho.model.bench import Amortisation, Crossover, Measured, Point, Timing
from teho.model.document import Cell, Column, Table
from teho.show.build.layout import ColumnOf, column, table
from teho.units import format_bytes, format_count, format_pace, format_rate, format_time

__all__ = ["Scale", "scale_of", "shown_phases", "tables_of"]

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_AMORTISED = 100
"""Number of runs that share one start and its copies in an amortised time."""
_RIGHT = "figure"
"""A unit that no heading shows; texts of the column are aligned to the right."""


class Scale(NamedTuple):
    """The unit in which a table or a plot shows its figures."""

    unit: str
    """Empty if each figure has its own."""
    value: Callable[[Timing], float | None]
    factor: float = 1.0
    """How many base units one of `unit` is."""


def scale_of(measured: Measured) -> Scale:
    """Return the scale for times, or for rates with a prefix that fits the highest one."""
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

    return Scale(prefix + unit, value, factor)


def tables_of(measured: Measured) -> list[Table]:
    """Return tables of the figures (for each phase, or one for all), then of the crossovers."""
    shown = shown_phases(measured)
    of_phases = [[phase] for phase in shown] if measured.figure in {"time", "flop"} else [shown]
    found = [_figures(measured, phases) for phases in of_phases if phases]
    if measured.figure == "items":
        found += _uses(measured, shown)
    return [*found, *_crossovers(measured), *_amortisations(measured)]


def shown_phases(measured: Measured) -> list[str]:
    """Return the phases that are shown and were timed, in order."""
    timed = {one.phase for one in measured.timings}
    return [phase for phase in measured.phases if phase in timed]


def _figures(measured: Measured, phases: Sequence[str]) -> Table:
    scale = scale_of(measured)
    title = phases[0].capitalize() if len(phases) == 1 else measured.title
    what = f"{scale.unit}, more is better" if scale.unit else "median time of a run, less is better"
    return msgspec.structs.replace(
        _grid(measured, phases, lambda timing: _cell(timing, scale)),
        key=phases[0] if len(phases) == 1 else "phases",
        title=f"{title}: {what}",
        note=_epochs(measured) or _peaks(measured, phases),
    )


def _uses(measured: Measured, phases: Sequence[str]) -> Iterator[Table]:
    """Yield how much memory each phase needed, and how busy the GPU was."""
    memory = _grid(
        measured, phases,
        lambda one: None if one.memory_bytes is None else format_bytes(one.memory_bytes),
    )  # fmt: skip
    if memory.rows:
        yield msgspec.structs.replace(
            memory, key="memory", title="Most memory",
            note="For a GPU, this is the memory that the library allocated. For a CPU, this is "
                 "the memory of the process, with the library and the images, but without the "
                 "loader's workers",
        )  # fmt: skip
    use = _grid(
        measured, phases,
        lambda one: None if one.busy_percent is None else f"{one.busy_percent:.0f} %",
    )  # fmt: skip
    if use.rows:
        yield msgspec.structs.replace(
            use, key="use", title="GPU use: share of time with a kernel running",
            note="A dash means that the phase took less than a second, or that the driver does not "
            "report the GPU use",
        )  # fmt: skip


def _grid(
    measured: Measured, phases: Sequence[str], cell: Callable[[Timing], Cell]
) -> Table:  # fmt: skip
    """Return a table without a title: a row for each phase and point, a column for each side."""
    timings = {
        (key_of(one.point), one.phase, one.placement, one.library): cell(one)
        for one in measured.timings
        if one.phase in phases
    }
    sides = [
        (one.placement, one.library)
        for one in measured.participants
        if any(
            key[2:] == (one.placement, one.library) and value is not None
            for key, value in timings.items()
        )
    ]
    points = [point for group in measured.groups.values() for point in group]
    keys = [key for key in points[0] if key not in {measured.axis, "images"}]
    rows: list[dict[str, Cell]] = []
    for phase in phases:
        for point in points:
            cells = {
                f"{placement} {library}": timings.get((key_of(point), phase, placement, library))
                for placement, library in sides
            }
            if any(value is not None for value in cells.values()):
                rows.append({"phase": phase, **_point_cells(point, measured.axis, phase), **cells})
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
    return Table(key="", title="", columns=tuple(columns), rows=tuple(rows))


def _epochs(measured: Measured) -> str:
    """Return the number of images on which each placement was trained."""
    placements: dict[int, dict[str, None]] = {}
    for one in measured.timings:
        if "images" in one.point:
            placements.setdefault(one.point["images"], {})[of_placement(one.placement)] = None
    counts = [
        f"{format_count(images)} image{'s' if images != 1 else ''} on {joined(list(places))}"
        for images, places in placements.items()
    ]
    if not counts:
        return ""
    more = "; to use all of CIFAR-10: `--images 50000`" if min(placements) < ALL_IMAGES else ""
    return f"An epoch has {', and '.join(counts)}{more}"


def _peaks(measured: Measured, phases: Sequence[str]) -> str:
    """Return the peaks of the devices: `Peak of 1 GPU, by its maker: FP64 67.0 TFLOP/s`."""
    peaks: dict[str, list[str]] = {}
    for (placement, group), peak in known_peaks(measured, phases).items():
        rate = format_rate(peak, UNITS[measured.figure])
        peaks.setdefault(peak_owner(measured, placement), []).append(f"{group} {rate}".strip())
    return "; ".join(
        f"Peak of {device}, published by its maker: {', '.join(own)}"
        for device, own in peaks.items()
    )


def _point_cells(point: Point, axis: str, phase: str) -> dict[str, Cell]:
    cells: dict[str, Cell] = {
        key: format_bytes(value)
        if key == "bytes"
        else format_count(value)
        if key == axis
        else str(value)
        for key, value in point.items()
    }
    if "images" in point:  # of which only the loader has settings
        cells["workers"] = cells["workers"] if phase == LOADER else None
        cells["prefetch"] = cells["prefetch"] if phase == LOADER and point["workers"] else None
    return cells


def _cell(timing: Timing, scale: Scale) -> Cell:
    value = scale.value(timing)
    if value is None:
        return None
    return format_pace(value) if scale.unit else format_time(value)


def _crossovers(measured: Measured) -> list[Table]:
    """Return from which size on a device is faster: a table for each phase."""
    pairs = list(dict.fromkeys((one.fast, one.slow) for one in measured.crossovers))
    found = []
    for phase in shown_phases(measured):
        own = [one for one in measured.crossovers if one.phase == phase]
        own.sort(key=lambda one: pairs.index((one.fast, one.slow)))
        if own:
            found.append(_crossover(measured.axis, phase, own))
    return found


def _crossover(axis: str, phase: str, own: Sequence[Crossover]) -> Table:
    others = dict.fromkeys(
        f"A run on the CPU needs no copy to a device. So Teho compares the phase "
        f'"{one.slow_phase}" of the CPU with the phase "{phase}" of the GPU'
        for one in own
        if one.slow_phase
    )
    case: ColumnOf[Crossover] = column("group", "case", lambda one: one.group)
    return table(
        f"{phase} crossovers",
        f"{phase.capitalize()}: which placement was faster, and from which {AXES[axis]}",
        own,
        column("pair", "",
               lambda one: _pair(one.fast, one.slow)),
        case if any(one.group for one in own) else None,
        column("from", "faster from",
               lambda one: _place(axis, one.high) if one.outcome == "from" else one.outcome,
               unit=_RIGHT),
        column("equal", "equal near", lambda one: _place(axis, one.estimate), unit=_RIGHT),
        column("times", "speed-up at largest", lambda one: number_text(one.times), unit=_RIGHT),
        note="; ".join(others),
    )  # fmt: skip


def _pair(one: str, other: str) -> str:
    return f"{of_placement(one)} against {of_placement(other)}"


def _place(axis: str, place: float | None) -> str | None:
    if place is None:
        return None
    return format_bytes(place) if axis == "bytes" else number_text(place)


def _amortisations(measured: Measured) -> list[Table]:
    """Return after how many runs a GPU is faster in total: a row for each pair and problem."""
    points: dict[tuple[str, str, str], list[Amortisation]] = {}
    for one in measured.amortisations:
        points.setdefault((one.group, one.placement, one.against), []).append(one)
    shown = list(map(_shown_amortisation, points.values()))
    if not shown:
        return []
    case: ColumnOf[Amortisation] = column("group", "case", lambda one: one.group)
    figures = table(
        "pay_offs",
        "Number of runs after which a GPU is faster in total, including its start and copies",
        shown,
        column("pair", "",
               lambda one: _pair(one.placement, one.against)),
        column("phase", "run", lambda one: one.phase),
        case if any(one.group for one in shown) else None,
        column("at", "at", lambda one: place_text(measured.axis, one.point[measured.axis])),
        column("library", "library", lambda one: LIBRARIES[one.library]),
        column("first", "start and copies", lambda one: format_time(one.first_s), unit=_RIGHT),
        column("run", "a run", lambda one: format_time(one.run_s), unit=_RIGHT),
        column("amortised", f"mean of {_AMORTISED} runs",
               lambda one: format_time(one.first_s / _AMORTISED + one.run_s), unit=_RIGHT),
        column("against", "on the CPU", lambda one: format_time(one.against_s), unit=_RIGHT),
        column("runs", "runs until faster", lambda one: number_text(math.ceil(one.runs)),
               unit=_RIGHT),
        note="; ".join(
            dict.fromkeys(
                f"A run is one pass over {format_count(one.point['images'])} images, at the "
                "batch size with the shortest time on the GPU"
                for one in shown
                if _is_feed(one)
            )
        ),
    )  # fmt: skip
    return [figures]


def _is_feed(one: Amortisation) -> bool:
    """Return whether a run goes over images: then every point of the sweep is the same work."""
    return "images" in one.point


def _shown_amortisation(own: Sequence[Amortisation]) -> Amortisation:
    """Return the entry of the largest problem; if all are equal, of the shortest run."""
    return min(own, key=lambda one: one.run_s) if _is_feed(own[-1]) else own[-1]
