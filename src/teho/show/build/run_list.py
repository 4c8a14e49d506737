"""The list of recordings as a document."""

from __future__ import annotations

from collections.abc import Sequence

from teho.model.document import Cell, Column, Document, Table
from teho.show.build.layout import document

__all__ = ["run_list_document"]


def run_list_document(
    verdict: str, titles: Sequence[str], rows: Sequence[Sequence[str]]
) -> Document:
    """Lay out a list of recordings.

    Args:
        verdict: the number of runs, in words.
        titles: the headings.
        rows: the texts of each recording.
    """
    columns = tuple(Column(key=title.lower(), label=title) for title in titles)
    keys = [column.key for column in columns]
    cells: list[dict[str, Cell]] = [dict(zip(keys, row, strict=True)) for row in rows]
    return document(
        title="teho list",
        verdict=verdict,
        verdict_severity="remark",
        tables=(Table(key="runs", title="Runs", columns=columns, rows=tuple(cells)),),
    )
