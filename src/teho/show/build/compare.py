"""The result of `teho compare` as a document: the verdict, the variants, the break-even size."""

from __future__ import annotations

from collections.abc import Iterator

from teho.experiment.figures import STEPS, first_recording, notes_of_all, variant_figures
from teho.model.compared import BreakEven, Compared, Outcome, Point
from teho.model.document import Document, Fact, Item, Table, VerdictSeverity
from teho.model.tuned import Gain
from teho.show.build.layout import column, document, is_known, listing, table
from teho.units import format_count, format_duration, many

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
    return document(
        title=f"teho compare {compared.id}".strip(),
        verdict=compared.verdict,
        verdict_severity=_SEVERITIES[compared.outcome],
        facts=()
        if compared.swept
        else (
            *(Fact("ahead", "", sentence) for sentence in _ahead(points[0])),
            *(Fact("from_submission", "", sentence) for sentence in _from_submission(points[0])),
        ),
        tables=tuple(one for point in points for one in _tables(compared, point)),
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
    )


def per_steps(unit: str) -> str:
    """Return the end of a table's title: the number of steps that energy and cost are for."""
    return f"; energy and cost are for {STEPS:,} {many(unit)}"


def _points(compared: Compared) -> Iterator[Item]:
    """Yield the verdict at each value of the swept option."""
    of_all = notes_of_all(compared)
    for point in compared.points if compared.swept else ():
        yield Item(
            lead=_place(compared, point),
            text=point.verdict,
            severity=_SEVERITIES[point.outcome],
            details=(
                *_ahead(point),
                *_from_submission(point),
                *(note for note in point.notes if note not in of_all),
            ),
        )


def _place(compared: Compared, point: Point) -> str:
    return f"{compared.swept} = {format_count(point.value)}" if point.value is not None else ""


def _ahead(point: Point) -> Iterator[str]:
    """Yield from when on the faster variant is ahead, if it takes longer to start."""
    if point.break_even and point.comparison:
        first, *others = point.break_even
        also = " and ".join(
            f"{'in' if one.unit == 'epoch' else 'at'} {_end(one)}" for one in others
        )
        yield (
            f"{point.comparison.larger} takes longer to start, but overtakes "
            f"{point.comparison.smaller} at {_end(first)}{f', which is {also}' if also else ''}."
        )


def _from_submission(point: Point) -> Iterator[str]:
    """Yield the time from submission to result of both allocations, if it is known."""
    known = point.from_submission
    if known is None or point.comparison is None:
        return
    words = {one.name: one.words for one in point.variants}
    sides = (
        (point.comparison.larger, known.larger_s, known.larger_wait),
        (point.comparison.smaller, known.smaller_s, known.smaller_wait),
    )
    each = " and ".join(
        f"{format_duration(total_s)} with {words[name]} (median wait "
        f"{format_duration(wait.median_s)}, {wait.jobs} jobs)"
        for name, total_s, wait in sides
    )
    yield f"From submission to result, your jobs on {known.cluster} take {each}."


def _end(one: BreakEven) -> str:
    low, at, high = (_two_digits(value) for value in (one.low, one.at, one.high))
    return f"{one.unit} {at}" if low == high else f"{one.unit} {at} (range {low} to {high})"


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
        shown = f"`teho list --tag {tag}` shows all recordings. " if compared.id else ""
        yield f"{shown}`teho report {first}` shows the first recording."


def _tables(compared: Compared, point: Point) -> Iterator[Table]:
    is_pace = point.measure == "pace"
    fit = [(one, variant_figures(one, is_pace=is_pace)) for one in point.variants if not one.why]
    if not fit:
        return
    is_dear = any(is_known(own.energy_j) or is_known(own.cost) for _, own in fit)
    of_steps = per_steps(point.unit) if is_pace and is_dear else ""
    place = _place(compared, point)
    yield table(
        "variants",
        f"Measurements{f' at {place}' if place else ''}{of_steps}",
        fit,
        column("variant", "on", lambda pair: pair[0].name),
        column("pace", "pace", lambda pair: pair[1].rate_per_s, unit=f"{many(point.unit)}/s")
        if is_pace
        else column("time", "time", lambda pair: 1 / pair[1].rate_per_s, unit="s"),
        column("speed", "speed", lambda pair: _times(pair[0].speed), decimals=2),
        column("interval", "95 % interval", lambda pair: _interval(pair[0].speed)),
        column("start_up_s", "start-up", lambda pair: pair[1].start_up_s, unit="s"),
        column("import_s", "imports", lambda pair: pair[1].import_s, unit="s"),
        column("compile_s", "compile", lambda pair: pair[1].compile_s, unit="s"),
        column("copy_s", "copy", lambda pair: pair[1].copy_s, unit="s"),
        column("energy", "energy", lambda pair: pair[1].energy_j, unit="J"),
        column("cost", "cost", lambda pair: pair[1].cost, unit=compared.cost_unit),
        column("runs", "runs", lambda pair: len(pair[0].samples)),
        only_known=True,
    )


def _times(speed: Gain | None) -> float | None:
    return speed.times if speed else None


def _interval(speed: Gain | None) -> str | None:
    return f"{speed.low:.2f} to {speed.high:.2f}" if speed else None
