"""Outliers in a table of many rows, and the rows to show if there is little room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from teho.explain.outliers import outlier_scores
from teho.explain.wording import joined, span
from teho.model.document import Cell, Column, Table
from teho.model.finding import Threshold

__all__ = ["Judged", "ranked"]

_FOLDED_FROM = 17
"""Number of rows from which on only some are shown; 16 GPUs on two nodes are all shown."""
_SHOWN_LEAST, _SHOWN_MOST = 4, 12


class Judged(NamedTuple):
    """A column by which rows are compared, if the table has it."""

    key: str
    less: str
    """Words for a row far below the others; empty: not an outlier."""
    more: str
    unit: str = ""
    """Unit that decides what is noise; empty: the unit of the column."""


def ranked(
    table: Table,
    noun: str,
    judged: Sequence[Judged],
    limits: Mapping[str, Threshold],
    first: Sequence[int] = (),
) -> Table:
    """Return a table with its outliers, the row with the farthest cell first.

    Args:
        table: with the rows in their natural order, which does not change.
        noun: what one row is, such as `node`.
        judged: columns to compare; the line about rows that are left out has the first two.
        limits: the thresholds of outliers.
        first: indices of rows that come before all others.
    """
    units = {column.key: column.unit for column in table.columns}
    judged = [column for column in judged if column.key in units]
    scores: dict[int, float] = {}
    words: dict[int, list[str]] = {}
    for column in judged:
        unit = column.unit or units[column.key]
        values = [_number(row.get(column.key)) for row in table.rows]
        for place, score in enumerate(outlier_scores(values, unit, limits)):
            word = column.less if score < 0 else column.more
            if abs(score) > 1 and word:
                scores[place] = max(scores.get(place, 0.0), abs(score))
                words.setdefault(place, []).append(word)
    by_score = sorted(scores, key=lambda place: (-scores[place], place))
    outliers = tuple(dict.fromkeys([*first, *by_score]))
    shown = _shown(len(table.rows), outliers)
    return msgspec.structs.replace(
        _with_words(table, words),
        outliers=outliers,
        shown=shown,
        rest=_rest(table, noun, judged[:2], shown, outliers) if shown else "",
    )


def _number(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, (int, float)) else None


def _with_words(table: Table, words: Mapping[int, list[str]]) -> Table:
    if not words:
        return table
    rows = tuple(
        {**row, "stands_out": ", ".join(words.get(place, [])) or None}
        for place, row in enumerate(table.rows)
    )
    column = Column(key="stands_out", label="Stands out")
    return msgspec.structs.replace(table, columns=(*table.columns, column), rows=rows)


def _shown(count: int, outliers: Sequence[int]) -> tuple[int, ...]:
    if count < _FOLDED_FROM:
        return ()
    worst = list(outliers[:_SHOWN_MOST])
    odd = set(outliers)
    others = [place for place in range(count) if place not in odd]
    return (*worst, *others[: max(0, _SHOWN_LEAST - len(worst))])


def _rest(
    table: Table,
    noun: str,
    columns: Sequence[Judged],
    shown: Sequence[int],
    outliers: Sequence[int],
) -> str:
    """Return the number of rows that are left out, and the ranges of their figures."""
    left = set(range(len(table.rows))).difference(shown)
    rows = [table.rows[place] for place in left]
    odd = len(left.intersection(outliers))
    labels = {column.key: (_label(column), column.unit) for column in table.columns}
    ranges = []
    for column in columns:
        label, unit = labels[column.key]
        values = [value for row in rows if (value := _number(row.get(column.key))) is not None]
        lacking = len(rows) - len(values)
        ranges += [f"{label} {span(values, unit)}"] if values else []
        lack = f"{label} missing in {lacking} {noun}{'' if lacking == 1 else 's'}"
        ranges += [lack] if lacking else []
    similar = "" if odd else "similar "
    alike = f", of which {odd} stand{'s' if odd == 1 else ''} out" if odd else ""
    plural = "" if len(left) == 1 else "s"
    return f"and {len(left)} more {similar}{noun}{plural}{alike}: {joined(ranges)}"


def _label(column: Column) -> str:
    """Return a column's name within a sentence: `power`, `GPU busy`, `program read`."""
    # In a band of statistics, the mean is compared.
    label = column.label if column.label.isupper() else column.label.lower()
    part = "" if column.label == "Mean" else f" {label}"
    name = f"{column.band}{part}" if column.band else column.label
    return name if name[:2].isupper() else name[:1].lower() + name[1:]
