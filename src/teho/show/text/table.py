"""A table of the view in lines of a terminal: aligned figures, headings over bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from teho.model.document import Column, Table
from teho.model.missing import Missing
from teho.show.cells import (
    bands,
    column_text,
    heading_unit,
    is_numeric,
    plain,
    without_shared,
    worst_first,
)
from teho.show.text.flow import dotted, flow

__all__ = ["table_lines"]

_GAP = "  "


class _Laid:
    """A column with its texts and its width, in terminal cells."""

    def __init__(self, column: Column, table: Table, places: Sequence[int], most: int) -> None:
        self.band = _shortened(plain(column.band), most)
        self.unit = heading_unit(column)
        self.right = is_numeric(column, table.rows)
        label = _shortened(plain(column.label), most)
        # A band's heading carries the unit; a column that stands alone has it below its name.
        self.upper, self.lower = ("", label) if self.band or not self.unit else (label, self.unit)
        self.is_key = not column.band and not column.unit
        cells = [table.rows[place].get(column.key) for place in places]
        self.texts = [_shortened(column_text(cell, column), most) for cell in cells]
        self.faint = [cell is None or isinstance(cell, Missing) for cell in cells]
        self.width = max(cell_len(text) for text in (self.upper, self.lower, *self.texts))

    def padded(self, text: str) -> str:
        space = " " * (self.width - cell_len(text))
        return space + text if self.right else text + space


def table_lines(table: Table, width: int, *, is_full: bool = False) -> list[Text]:
    """Lay out a table with its title.

    A text that is the same in every row stands once, beside the title. Columns that
    do not fit side by side follow below, with the leading columns again. Of many rows, a
    few stand for all.
    """
    shared, columns = without_shared(table)
    columns = tuple(column for column in columns if is_full or not column.aside)
    places = table.shown or worst_first(table)
    # The last column may take what is left: a line that is too long is cut at its end.
    most = [*[max(width // 3, 8)] * (len(columns) - 1), width]
    laid = [_Laid(column, table, places, most=most[i]) for i, column in enumerate(columns)]
    lines = _title(table, shared, width)
    for number, block in enumerate(_blocks(_groups(columns, laid), width)):
        if number:
            lines.append(Text())
        lines.extend(_headings(block))
        lines.extend(_row(block, index) for index in range(len(places)))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _shortened(text: str, most: int) -> str:
    return text if cell_len(text) <= most else set_cell_size(text, most - 1).rstrip() + "…"


def _title(table: Table, shared: list[str], width: int) -> list[Text]:
    lead = Text.assemble((plain(table.title), "bold"), _GAP)
    facts = dotted([Text(fact, "dim") for fact in shared])
    lines = flow(facts, width, lead, hang=min(lead.cell_len, width // 2))
    for line in lines:
        line.rstrip()
    return lines


def _groups(columns: tuple[Column, ...], laid: list[_Laid]) -> list[list[_Laid]]:
    """Group the columns by band; a band's heading that is wider widens its first column."""
    rest = iter(laid)
    groups = [[next(rest) for _ in members] for _, members in bands(columns)]
    for group in groups:
        lacking = cell_len(_band_heading(group)) - _span(group)
        group[0].width += max(lacking, 0)
    return groups


def _band_heading(group: list[_Laid]) -> str:
    units = {column.unit for column in group}
    unit = units.pop() if len(units) == 1 else ""
    return f"{group[0].band}, {unit}" if unit else group[0].band


def _span(group: list[_Laid]) -> int:
    return sum(column.width for column in group) + len(_GAP) * (len(group) - 1)


def _blocks(groups: list[list[_Laid]], width: int) -> Iterator[list[list[_Laid]]]:
    """Put groups side by side until the line is full; keys are in front of each block."""
    keys = []
    for group in groups:
        if not group[0].is_key:
            break
        keys.append(group)
    block = list(keys)
    for group in groups[len(keys) :]:
        if len(block) > len(keys) and _span([c for g in [*block, group] for c in g]) > width:
            yield block
            block = list(keys)
        block.append(group)
    yield block


def _headings(block: list[list[_Laid]]) -> Iterator[Text]:
    upper = []
    for group in block:
        heading = _band_heading(group) if group[0].band else group[0].padded(group[0].upper)
        fill = "─" if group[0].band else " "
        space = _span(group) - cell_len(heading)
        upper.append(heading + (" " + fill * (space - 1) if space else ""))
    if any(text.strip() for text in upper):
        yield Text(_GAP.join(upper).rstrip(), "dim")
    yield Text(_GAP.join(c.padded(c.lower) for group in block for c in group).rstrip(), "dim")


def _row(block: list[list[_Laid]], index: int) -> Text:
    line = Text(_GAP).join(
        Text(column.padded(column.texts[index]), "dim" if column.faint[index] else "")
        for group in block
        for column in group
    )
    line.rstrip()
    return line
