"""The result of `teho compare` as a document: the verdict, the variants, the break-even size."""

from __future__ import annotations

from collections.abc import Iterator

from teho.experiment.figures import (
    STEPS,
    first_recording,
    notes_of_all,
    variant_figures,
)
from teho.model.compared import BreakEven, Compared, Outcome, Point, Variant
from teho.model.document import Cell, Column, Document, Fact, Item, Table, VerdictSeverity
from teho.model.missing import Missing
from teho.show.build.layout import listing
from teho.units import format_count, many
from teho.version import __version__

__all__ = ["compare_document", "per_steps"]

_SEVERITIES: dict[Outcome, VerdictSeverity] = {
    "worth_it": "good",
    "not_worth_it": "remark",
    "no_difference": "remark",
    "not_enough_evidence": "unknown",
}


def compare_document(compared: Compared) -> Document:
    """Lay out the verdict and the figures of all variants."""
    points = compared.points
    of_all = notes_of_all(compared)
    own = [note for point in points for note in point.notes if note not in of_all]
    return Document(
        title=f"teho compare {compared.id}".strip(),
        verdict=compared.verdict,
        verdict_severity=_SEVERITIES[compared.outcome],
        facts=()
        if compared.swept
        else tuple(Fact("ahead", "", said) for said in _ahead(points[0])),
        tables=tuple(table for point in points for table in _tables(compared, point)),
        lists=(
            listing("points", f"By {compared.swept}", _points(compared), "first"),
            listing(
                "out",
                "Not measured",
                [item for point in points for item in _out(compared, point)],
            ),
        ),
        notes=(*([] if compared.swept else own), *of_all, *compared.notes),
        commands=tuple(_commands(compared)),
        teho_version=__version__,
    )


def per_steps(unit: str) -> str:
    """Return the end of a table's title: the number of steps that energy and cost are for."""
    return f", energy and cost of {STEPS:,} {many(unit)}"


def _points(compared: Compared) -> Iterator[Item]:
    """Yield the verdict at each value of the swept option."""
    of_all = notes_of_all(compared)
    for point in compared.points if compared.swept else ():
        yield Item(
            lead=_place(compared, point),
            text=point.verdict,
            severity=_SEVERITIES[point.outcome],
            details=(*_ahead(point), *(note for note in point.notes if note not in of_all)),
        )


def _place(compared: Compared, point: Point) -> str:
    return f"{compared.swept} = {format_count(point.value)}" if point.value is not None else ""


def _ahead(point: Point) -> Iterator[str]:
    """Yield from when on the faster variant is ahead, if it takes longer to start."""
    if point.break_even:
        larger = point.contest.larger if point.contest else ""
        ends = " or ".join(_end(one) for one in point.break_even)
        yield f"{larger} takes longer to start. It is faster in total from {ends}."


def _end(one: BreakEven) -> str:
    low, at, high = (_two_digits(value) for value in (one.low, one.at, one.high))
    return f"{one.unit} {at}" if low == high else f"{one.unit} {at} ({low} to {high})"


def _two_digits(value: float) -> str:
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def _out(compared: Compared, point: Point) -> Iterator[Item]:
    place = _place(compared, point)
    for one in point.variants:
        if one.why:
            lead = f"{place}, {one.name}" if place else one.name
            yield Item(lead=lead, text=one.why, severity="critical")


def _commands(compared: Compared) -> Iterator[str]:
    if first := first_recording(compared):
        tag = f"compare={compared.id}"
        shown = f"`teho list --tag {tag}` shows all recordings, " if compared.id else ""
        yield f"{shown}`teho report {first}` shows the first recording."


def _tables(compared: Compared, point: Point) -> Iterator[Table]:
    fit = [variant for variant in point.variants if not variant.why]
    if not fit:
        return
    is_pace = point.measure == "pace"
    columns = (
        Column(key="variant", label="on"),
        Column(key="pace", label="pace", unit=f"{many(point.unit)}/s")
        if is_pace
        else Column(key="time", label="time", unit="s"),
        Column(key="speed", label="speed", decimals=2),
        Column(key="interval", label="95 %"),
        Column(key="start_up_s", label="start-up", unit="s"),
        Column(key="import_s", label="imports", unit="s"),
        Column(key="compile_s", label="compile", unit="s"),
        Column(key="copy_s", label="copy", unit="s"),
        Column(key="energy", label="energy", unit="J"),
        Column(key="cost", label="cost", unit=compared.cost_unit),
        Column(key="runs", label="runs"),
    )
    rows = tuple(_row(one, is_pace=is_pace) for one in fit)
    kept = tuple(column for column in columns if any(_is_known(row[column.key]) for row in rows))
    is_dear = is_pace and {"energy", "cost"} & {column.key for column in kept}
    place = _place(compared, point)
    yield Table(
        key="variants",
        title=f"Measured{f' at {place}' if place else ''}{per_steps(point.unit) * bool(is_dear)}",
        columns=kept,
        rows=rows,
    )


def _is_known(cell: Cell) -> bool:
    return cell is not None and not isinstance(cell, Missing)


def _row(variant: Variant, *, is_pace: bool) -> dict[str, Cell]:
    figures = variant_figures(variant, is_pace=is_pace)
    speed = variant.speed
    return {
        "variant": variant.name,
        "pace" if is_pace else "time": figures.rate_per_s if is_pace else 1 / figures.rate_per_s,
        "speed": speed.times if speed else None,
        "interval": f"{speed.low:.2f} to {speed.high:.2f}" if speed else None,
        "start_up_s": figures.start_up_s,
        "import_s": figures.import_s,
        "compile_s": figures.compile_s,
        "copy_s": figures.copy_s,
        "energy": figures.energy_j,
        "cost": figures.cost,
        "runs": len(variant.samples),
    }
