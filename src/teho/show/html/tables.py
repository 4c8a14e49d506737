"""A table of a document as HTML: headings over bands, in a box that scrolls."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from teho.model.document import Cell, Column, Table
from teho.model.missing import Missing
from teho.show.cells import (
    bands,
    column_text,
    explanations,
    heading_unit,
    is_numeric,
    without_empty,
    without_shared,
    worst_first,
)
from teho.show.html.markup import folded, prose, scrolling, text
from teho.show.html.words import PageWords

__all__ = ["html_tables"]

_LONG = 40
"""Letters of a cell from which on it is written on several lines."""


def html_tables(tables: Sequence[Table], page_words: PageWords | None = None) -> str:
    """Write the tables of the default level, then the others folded.

    Args:
        tables: what to write.
        page_words: collects the words of the headings; None: the page has no definitions.
    """
    shown = [
        kept
        for table in tables
        if table.rows and table.level != "why" and (kept := without_empty(table))
    ]
    others = [table for table in tables if table.rows and table not in shown]
    inner = "".join(_table(table, page_words) for table in shown)
    more = folded(
        ", ".join(dict.fromkeys(table.title for table in others)),
        f'<div class="tables">{"".join(_table(table, page_words) for table in others)}</div>'
        if others
        else "",
    )
    return (f'<div class="tables">{inner}</div>\n' if inner else "") + more


def _table(table: Table, page_words: PageWords | None) -> str:
    """Write a table with its title, in a box that scrolls."""
    shared, columns = without_shared(table)
    numeric = {column.key: is_numeric(column, table.rows) for column in columns}
    rows = "".join(_row(table, place, columns, numeric) for place in worst_first(table))
    below = filter(None, (table.note, table.rest))
    notes = "".join(f"<li>{prose(sentence)}</li>" for sentence in below)
    missing = "".join(f"<li>{prose(sentence)}</li>" for sentence in explanations(table))
    head = _table_head(table.key, columns, numeric, page_words)
    title = page_words.title(table.title, table.key) if page_words else text(table.title)
    return f"""<div class="table">
<h3>{title} <small>{escape(" · ".join(shared))}</small></h3>
{scrolling(table.title, f"<thead>{head}</thead><tbody>{rows}</tbody>")}
{f'<ul class="below">{notes}</ul>' if notes else ""}
{folded("Missing values", f'<ul class="below">{missing}</ul>' if missing else "")}
</div>
"""


def _row(table: Table, place: int, columns: tuple[Column, ...], numeric: dict[str, bool]) -> str:
    row = table.rows[place]
    cells = "".join(
        _cell(row.get(column.key), column, numeric=numeric[column.key], heads=position == 0)
        for position, column in enumerate(columns)
    )
    odd = ' class="outlier"' if place in table.outliers else ""
    return f"<tr{odd}>{cells}</tr>\n"


def _table_head(
    key: str,
    columns: tuple[Column, ...],
    numeric: dict[str, bool],
    page_words: PageWords | None,
) -> str:
    """Write the headings: bands above, then the columns with their units."""

    def heading(label: str, unit: str) -> str:
        word = page_words.link(label, key) if page_words else text(label)
        return f"{word}, {text(unit)}" if unit else word

    upper, lower = [], []
    for band, members in bands(columns):
        units = {heading_unit(column) for column in members}
        shared = units.pop() if band and len(units) == 1 else ""
        upper.append(
            f'<th scope="colgroup" colspan="{len(members)}"><span>{heading(band, shared)}</span>'
            "</th>"
            if band
            else "<td></td>"
        )
        for column in members:
            unit = "" if shared else heading_unit(column)
            side = ' class="n"' if numeric[column.key] else ""
            lower.append(f'<th scope="col"{side}>{heading(column.label, unit)}</th>')
    first = f"<tr>{''.join(upper)}</tr>" if any("<th" in cell for cell in upper) else ""
    return f"{first}<tr>{''.join(lower)}</tr>"


def _cell(cell: Cell, column: Column, *, numeric: bool, heads: bool) -> str:
    classes = ["n"] if numeric else []
    if cell is None or isinstance(cell, Missing):
        classes.append("missing")
    start = 'th scope="row"' if heads else "td"
    shown = column_text(cell, column)
    if len(shown) > _LONG:
        classes.append("long")
    named = f' class="{" ".join(classes)}"' if classes else ""
    return f"<{start}{named}>{text(shown)}</{start[:2]}>"
