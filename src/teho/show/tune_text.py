"""What `teho tune` found, on a terminal: the verdict, what to change, what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from pathlib import Path

from rich.text import Text

from teho.model.document import Cell, Column, Table
from teho.model.tuned import Change, Settings, Trial, Tuned
from teho.show.cells import plain
from teho.show.text.flow import flow, printed, words
from teho.show.text.table import table_lines
from teho.units import format_pace, many

__all__ = ["render_tuned"]

_MARKS = {"gain": ("✓", "bold green"), "no_gain": ("i", "bold"), "unproved": ("?", "bold yellow")}


def render_tuned(tuned: Tuned, *, width: int, color: bool) -> str:
    """Render it; ends in a line break."""
    mark, style = _MARKS[tuned.outcome]
    lead = Text.assemble((mark, style), " ")
    blocks = [flow(words(tuned.verdict), width, lead, style="bold") + _paces(tuned, width)]
    if tuned.changes:
        blocks.append(_changes(tuned.changes, width))
    blocks.append(_tried(tuned.trials, tuned.unit, width))
    if out := _out(tuned.trials, width):
        blocks.append(out)
    if tuned.notes:
        blocks.append([line for note in tuned.notes for line in _sentence(note, width)])
    return printed(blocks, width=width, color=color)


def _sentence(text: str, width: int) -> list[Text]:
    return flow(words(text), width, Text("  "), style="dim")


def _paces(tuned: Tuned, width: int) -> list[Text]:
    if not tuned.settings or tuned.gain is None:
        return []
    base, own = (
        next(trial for trial in tuned.trials if trial.settings == settings)
        for settings in ({}, tuned.settings)
    )
    before = base.steps_per_s or 0.0
    # A larger batch makes fewer steps a second, and may be faster.
    after = before * (own.speed or 0.0)
    paces = f"{format_pace(before)} → {format_pace(after)} {many(tuned.unit)}/s"
    size = ", in steps of the size before" if "batch_size" in tuned.settings else ""
    how = f"in {tuned.gain.pairs} pairs of runs that took turns"
    return _sentence(f"{paces}{size}, {how}", width)


def _changes(changes: Sequence[Change], width: int) -> list[Text]:
    lines = [Text("Change", "bold")]
    for change in changes:
        if change.file:
            where = f"{_shown(change.file)}:{change.line}"
            lines.append(Text.assemble("  ", (plain(where), "bold"), "  ", plain(change.text)))
        lines.append(Text.assemble("    → ", (plain(change.set_to), "cyan")))
        if change.remark:
            lines += flow(words(change.remark), width, Text("      "), style="dim")
    return lines


def _shown(file: str) -> str:
    """Return a path as it may be typed here."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _tried(trials: Sequence[Trial], unit: str, width: int) -> list[Text]:
    measured = [trial for trial in trials if trial.runs]
    least = min((trial.steps_per_s or 1.0 for trial in measured), default=1.0)
    columns = (
        Column(key="pace", label=f"{many(unit)}/s", decimals=max(0, 2 - floor(log10(least)))),
        Column(key="speed", label="speed", decimals=2),
        Column(key="waited", label="waited %", decimals=0),
        Column(key="runs", label="runs"),
        Column(key="settings", label="settings"),
    )
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "pace": trial.steps_per_s,
            "speed": trial.speed,
            "waited": trial.waited_percent,
            "runs": trial.runs,
            "settings": _short(trial.settings),
        }
        for trial in measured
    )
    table = Table(
        key="tried", title="Tried", columns=columns, rows=rows, shown=tuple(range(len(rows)))
    )
    return table_lines(table, width)


def _short(settings: Settings) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items()) or "as it is"


def _out(trials: Sequence[Trial], width: int) -> list[Text]:
    lines = []
    for trial in trials:
        if trial.why:
            lead = Text.assemble("  ✗ ", plain(_short(trial.settings)), ": ")
            lines += flow(words(trial.why), width, lead, hang=4)
    return lines
