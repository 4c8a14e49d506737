"""What `teho compare` found, on a terminal: the verdict, the variants, from where on."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.text import Text

from teho.model.compared import BreakEven, Compared, Outcome, Point, Sample, Variant
from teho.model.document import Cell, Column, Table
from teho.model.missing import Missing
from teho.show.cells import plain
from teho.show.text.flow import flow, printed, words
from teho.show.text.table import table_lines
from teho.units import format_count, many

__all__ = ["STEPS", "cost_of", "render_compared"]

_MARKS: dict[Outcome, tuple[str, str]] = {
    "worth_it": ("✓", "bold green"),
    "not_worth_it": ("✗", "bold yellow"),
    "no_difference": ("=", "bold"),
    "not_enough_evidence": ("?", "bold yellow"),
}
STEPS = 1000
"""What the cost and energy of a pace are told for."""
_LITTLE_S = 0.05
"""Nobody cares for less of imports, compiling or copying."""


def render_compared(compared: Compared, *, width: int, color: bool) -> str:
    """Render it; ends in a line break."""
    blocks = [_headed(compared.outcome, compared.verdict, width)]
    # What holds of all points is said once, below.
    of_all = [
        note
        for note in compared.points[0].notes
        if all(note in point.notes for point in compared.points)
    ]
    for point in compared.points:
        blocks += _point(compared, point, [one for one in point.notes if one not in of_all], width)
    if notes := [*of_all, *compared.notes]:
        blocks.append([line for note in notes for line in _sentence(note, width)])
    first, *others = dict.fromkeys(
        sample.run
        for point in compared.points
        for variant in point.variants
        for sample in variant.samples
    ) or [""]
    if others:
        tag = f"compare={compared.id}"
        shown = f"`teho list --tag {tag}` shows all recordings, " if compared.id else ""
        blocks.append(_sentence(f"{shown}`teho report {first}` the first of them.", width))
    return printed(blocks, width=width, color=color)


def _headed(outcome: Outcome, verdict: str, width: int) -> list[Text]:
    mark, style = _MARKS[outcome]
    return flow(words(verdict), width, Text.assemble((mark, style), " "), style="bold")


def _sentence(text: str, width: int) -> list[Text]:
    return flow(words(text), width, Text("  "), style="dim")


def _point(compared: Compared, point: Point, notes: Sequence[str], width: int) -> list[list[Text]]:
    blocks: list[list[Text]] = []
    if point.value is not None:
        title = Text(f"{plain(compared.swept)} = {format_count(point.value)}", "bold")
        blocks.append([title, *_headed(point.outcome, point.verdict, width)])
    if point.break_even:
        blocks[-1:] = [[*(blocks[-1] if blocks else []), *_from(point, width)]]
    fit = [variant for variant in point.variants if not variant.why]
    if fit:
        blocks.append(table_lines(_table(compared, point, fit), width))
    if out := [one for one in point.variants if one.why]:
        blocks.append([line for one in out for line in _out(one, width)])
    if notes:
        blocks.append([line for note in notes for line in _sentence(note, width)])
    return blocks


def _from(point: Point, width: int) -> list[Text]:
    """Say when what is faster has made up for its longer start."""
    larger = point.contest.larger if point.contest else ""
    ends = " or ".join(_end(one) for one in point.break_even)
    return _sentence(f"{larger} takes longer to start; it is ahead from {ends} on.", width)


def _end(one: BreakEven) -> str:
    low, at, high = (_two_digits(value) for value in (one.low, one.at, one.high))
    return f"{one.unit} {at}" if low == high else f"{one.unit} {at} ({low} to {high})"


def _two_digits(value: float) -> str:
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def _out(variant: Variant, width: int) -> list[Text]:
    lead = Text.assemble("  ✗ ", plain(variant.name), ": ")
    return flow(words(variant.why), width, lead, hang=4)


def _table(compared: Compared, point: Point, fit: Sequence[Variant]) -> Table:
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
    kept = [column for column in columns if any(_is_told(row[column.key]) for row in rows)]
    is_dear = is_pace and {"energy", "cost"} & {column.key for column in kept}
    per = cost_of(point.unit) if is_dear else ""
    return Table(
        key="variants",
        title=f"Measured{per}",
        columns=tuple(kept),
        rows=rows,
        shown=tuple(range(len(rows))),
    )


def cost_of(unit: str) -> str:
    """Return what a table's title says of its energy and cost where they are a pace's."""
    return f", energy and cost of {STEPS:,} {many(unit)}"


def _is_told(cell: Cell) -> bool:
    return cell is not None and not isinstance(cell, Missing)


def _row(variant: Variant, *, is_pace: bool) -> dict[str, Cell]:
    rate = median(variant.rates)
    took_s = (STEPS if is_pace else 1) / rate
    speed = variant.speed
    parts = {name: _median(variant, name) for name in ("import_s", "compile_s", "copy_s")}
    return {
        "variant": variant.name,
        "pace" if is_pace else "time": rate if is_pace else 1 / rate,
        "speed": speed.times if speed else None,
        "interval": f"{speed.low:.2f} to {speed.high:.2f}" if speed else None,
        "start_up_s": _median(variant, "start_up_s"),
        **{name: took if took and took > _LITTLE_S else None for name, took in parts.items()},
        "energy": _energy(variant.samples, took_s),
        "cost": variant.hourly_cost * took_s / 3600 if variant.hourly_cost else None,
        "runs": len(variant.samples),
    }


def _median(variant: Variant, name: str) -> float | None:
    found = [getattr(sample, name) for sample in variant.samples]
    return median(known) if (known := [one for one in found if one is not None]) else None


def _energy(samples: Sequence[Sample], took_s: float) -> Cell:
    powers = [sample.mean_power_w for sample in samples]
    known = [power for power in powers if power is not None]
    if len(known) == len(powers):
        return median(known) * took_s
    return next(one.energy_j for one in samples if isinstance(one.energy_j, Missing))
