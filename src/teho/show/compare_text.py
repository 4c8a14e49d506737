"""What `teho compare` found, on a terminal: the verdict, the variants, from where on."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from statistics import median

from rich.text import Text

from teho.model.compared import BreakEven, Compared, Outcome, Point, Sample, Variant
from teho.model.missing import Missing
from teho.show.cells import plain
from teho.show.flow import flow, printed, words
from teho.show.text_table import table_lines
from teho.show.view import Cell, Column, Table
from teho.units import format_count

__all__ = ["render_compared"]

_MARKS: dict[Outcome, tuple[str, str]] = {
    "worth_it": ("✓", "bold green"),
    "not_worth_it": ("✗", "bold yellow"),
    "no_difference": ("=", "bold"),
    "not_enough_evidence": ("?", "bold yellow"),
}
_STEPS = 1000
"""What the cost and energy of a pace are told for."""


def render_compared(compared: Compared, *, width: int, color: bool) -> str:
    """Render it; ends in a line break."""
    blocks = [_headed(compared.outcome, compared.verdict, width)]
    if compared.break_even:
        blocks[0] += _sentence(_from(compared.break_even), width)
    for point in compared.points:
        blocks += _point(compared, point, width)
    if compared.notes:
        blocks.append([line for note in compared.notes for line in _sentence(note, width)])
    tag = f"compare={compared.id}"
    blocks.append(
        _sentence(
            f"`teho list --tag {tag}` shows all recordings, `teho report RUN` one of them.", width
        )
    )
    return printed(blocks, width=width, color=color)


def _headed(outcome: Outcome, verdict: str, width: int) -> list[Text]:
    mark, style = _MARKS[outcome]
    return flow(words(verdict), width, Text.assemble((mark, style), " "), style="bold")


def _sentence(text: str, width: int) -> list[Text]:
    return flow(words(text), width, Text("  "), style="dim")


def _point(compared: Compared, point: Point, width: int) -> list[list[Text]]:
    blocks: list[list[Text]] = []
    if compared.swept:
        value = format_count(point.value) if point.value is not None else "?"
        title = Text(f"{compared.swept} = {value}", "bold")
        blocks.append([title, *_headed(point.outcome, point.verdict, width)])
    elif point.break_even:
        blocks.append([line for one in point.break_even for line in _sentence(_from(one), width)])
    blocks.append(table_lines(_table(compared, point), width))
    if out := [one for one in point.variants if one.why]:
        blocks.append([line for one in out for line in _out(one, width)])
    if point.notes:
        blocks.append([line for note in point.notes for line in _sentence(note, width)])
    return blocks


def _from(one: BreakEven) -> str:
    return (
        f"From {one.unit} {one.at:,.3g} on the larger is the faster one "
        f"({one.low:,.3g} to {one.high:,.3g})."
    )


def _out(variant: Variant, width: int) -> list[Text]:
    lead = Text.assemble("  ✗ ", plain(variant.name), ": ")
    return flow(words(variant.why), width, lead, hang=4)


def _table(compared: Compared, point: Point) -> Table:
    fit = [variant for variant in point.variants if not variant.why]
    is_pace = point.measure == "pace"
    figures = [_main_figure(one, is_pace=is_pace) for one in fit]
    least = min((one for one in figures if one), default=1.0)
    per = f"of {_STEPS:,} {point.unit}s" if is_pace else "of a run"
    columns = (
        Column(key="variant", label="on"),
        Column(
            key="figure",
            label=f"{point.unit}s/s" if is_pace else "time",
            unit="" if is_pace else "s",
            decimals=max(0, 2 - floor(log10(least))),
        ),
        Column(key="speed", label="speed", decimals=2),
        Column(key="interval", label="95 %"),
        Column(key="start", label="start-up", unit="s", decimals=1),
        Column(key="energy", label=f"energy {per}", unit="J", shown_in="Wh", decimals=2),
        Column(key="cost", label=f"{compared.cost_unit or 'cost'} {per}", decimals=3),
        Column(key="runs", label="runs"),
    )
    rows = tuple(
        _row(one, figure, is_pace=is_pace) for one, figure in zip(fit, figures, strict=True)
    )
    kept = tuple(
        column
        for column in columns
        if any(row.get(column.key) is not None for row in rows)
        and not (column.key == "energy" and all(isinstance(row["energy"], Missing) for row in rows))
    )
    return Table(
        key="variants", title="Measured", columns=kept, rows=rows, shown=tuple(range(len(rows)))
    )


def _main_figure(variant: Variant, *, is_pace: bool) -> float:
    rate = median(variant.rates)
    return rate if is_pace else 1 / rate


def _row(variant: Variant, figure: float, *, is_pace: bool) -> dict[str, Cell]:
    took_s = _STEPS / figure if is_pace else figure
    starts = [sample.start_up_s for sample in variant.samples if sample.start_up_s is not None]
    speed = variant.speed
    return {
        "variant": variant.name,
        "figure": figure,
        "speed": speed.times if speed else None,
        "interval": f"{speed.low:.2f} to {speed.high:.2f}" if speed else None,
        "start": median(starts) if starts else None,
        "energy": _energy(variant.samples, took_s),
        "cost": variant.hourly_cost * took_s / 3600 if variant.hourly_cost else None,
        "runs": len(variant.samples),
    }


def _energy(samples: Sequence[Sample], took_s: float) -> Cell:
    powers = [sample.mean_power_w for sample in samples]
    known = [power for power in powers if power is not None]
    if not known or len(known) < len(powers):
        missing = [one.energy_j for one in samples if isinstance(one.energy_j, Missing)]
        return missing[0] if missing else None
    return median(known) * took_s
