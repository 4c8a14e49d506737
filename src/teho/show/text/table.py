"""A table as lines for a terminal: aligned figures, bands above their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from teho.model.document import Column, Table
from teho.model.missing import Missing
from teho.patterns import lazy_pattern
from teho.show.cells import (
    bands,
    column_text,
    heading_unit,
    is_numeric,
    plain,
    without_shared,
    worst_first,
)
from teho.show.text.flow import dotted, flow, words

__all__ = ["table_lines"]

_GAP = "  "
_LEAST_NAME = 8
"""Width up to which a name is cut in a short report."""
_LINE_NUMBER = lazy_pattern(r":\d{1,6}$")
_LEAST = 20
"""Width up to which a cell is never cut."""


class _Laid:
    """A column with its texts and its width, in terminal cells."""

    def __init__(
        self, column: Column, table: Table, places: Sequence[int], most: int, *, is_full: bool
    ) -> None:
        self.band = _shortened(plain(column.band), most)
        self.unit = heading_unit(column)
        self.right = is_numeric(column, table.rows)
        label = _shortened(plain(column.label), most)
        # A band's heading has the unit; without a band, the unit is below the column's name.
        self.upper, self.lower = ("", label) if self.band or not self.unit else (label, self.unit)
        self.is_key = not column.band and not column.unit
        cells = [table.rows[place].get(column.key) for place in places]
        fit = _wrapped if is_full else _cut
        self.texts = [fit(column_text(cell, column), most) for cell in cells]
        self.faint = [cell is None or isinstance(cell, Missing) for cell in cells]
        texts = [text for lines in self.texts for text in lines]
        self.width = max(cell_len(text) for text in (self.upper, self.lower, *texts))

    def padded(self, text: str) -> str:
        space = " " * (self.width - cell_len(text))
        return space + text if self.right else text + space

    def line(self, index: int, number: int) -> str:
        """Return a line of a cell; empty if the cell has fewer lines."""
        lines = self.texts[index]
        return self.padded(lines[number] if number < len(lines) else "")


def table_lines(
    table: Table, width: int, *, is_full: bool = False, is_short: bool = False
) -> list[Text]:
    """Lay out a table with its title.

    A text that is the same in every row is written once, next to the title. Columns that do not
    fit side by side follow below, with the leading columns again. If there are many rows, only
    some are shown.

    Args:
        table: with at least one row.
        width: columns of the terminal.
        is_full: whether columns that can be left out are shown too, and long cells are wrapped
            instead of cut.
        is_short: whether columns that do not fit next to the first ones are left out: spare
            columns, then the last ones. Before the last ones are left out, names are cut.
    """
    shared, columns = without_shared(table)
    columns = tuple(column for column in columns if is_full or not column.aside)
    places = table.shown or worst_first(table)
    if is_short:
        columns, laid = _fitting(columns, table, places, width)
    else:
        laid = _lay(columns, table, places, width, is_full=is_full)
    lines = _title(table, shared, width)
    if not laid:
        return lines
    blocks = list(_blocks(_groups(columns, laid), width))
    for number, block in enumerate(blocks[:1] if is_short else blocks):
        if number:
            lines.append(Text())
        lines.extend(_headings(block))
        for index in range(len(places)):
            lines.extend(_row(block, index))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _lay(
    columns: Sequence[Column], table: Table, places: Sequence[int], width: int, *, is_full: bool
) -> list[_Laid]:
    laid: list[_Laid] = []
    for column in columns:
        most = max(width // 3, _LEAST)
        if len(laid) == len(columns) - 1:
            # The last column takes the rest of the line, unless little is left.
            most = width - _span(laid) - len(_GAP)
            # A cell that is cut has no words to keep whole.
            if most < (max(_LEAST, _longest_word(column, table, places)) if is_full else _LEAST):
                most = max(width - _span(_keys(laid, width)) - len(_GAP), 8)
        laid.append(_Laid(column, table, places, most, is_full=is_full))
    return laid


def _fitting(
    columns: tuple[Column, ...], table: Table, places: Sequence[int], width: int
) -> tuple[tuple[Column, ...], list[_Laid]]:
    """Leave out spare columns, then cut names, until the columns fit side by side."""
    laid = _lay(columns, table, places, width, is_full=False)
    while (over := _span(laid) - width) > 0:
        spare = [column for column in columns if column.spare]
        if not spare:
            break
        columns = tuple(column for column in columns if column is not spare[-1])
        laid = _lay(columns, table, places, width, is_full=False)
    if over <= 0 or not any(column.spare for column in table.columns):
        return columns, laid
    names = [one for one in laid[:-1] if one.is_key and not one.right]
    widest = max(names, key=lambda one: one.width, default=None)
    if widest is not None and widest.width - over >= _LEAST_NAME:
        at = laid.index(widest)
        laid[at] = _Laid(columns[at], table, places, widest.width - over, is_full=False)
    return columns, laid


def _shortened(text: str, most: int) -> str:
    """Cut a text; a place in a file, such as `train.py:52`, keeps its line number."""
    if cell_len(text) <= most:
        return text
    number = _LINE_NUMBER.search(text)
    end = number[0] if number else ""
    return set_cell_size(text, max(0, most - 1 - len(end))).rstrip() + "…" + end


def _longest_word(column: Column, table: Table, places: Sequence[int]) -> int:
    texts = (column_text(table.rows[place].get(column.key), column) for place in places)
    return max((cell_len(word) for text in texts for word in text.split()), default=0)


def _cut(text: str, most: int) -> list[str]:
    return [_shortened(text, most)]


def _wrapped(text: str, most: int) -> list[str]:
    if cell_len(text) <= most:
        return [text]
    lead = Text(text[: len(text) - len(text.lstrip())])
    return [line.plain for line in flow(words(text), most, lead)]


def _title(table: Table, shared: list[str], width: int) -> list[Text]:
    lead = Text.assemble((plain(table.title), "bold"), _GAP)
    facts = dotted([Text(fact, "dim") for fact in shared])
    lines = flow(facts, width, lead, hang=min(lead.cell_len, width // 2))
    for line in lines:
        line.rstrip()
    return lines


def _groups(columns: tuple[Column, ...], laid: list[_Laid]) -> list[list[_Laid]]:
    """Group the columns by band; a wide heading of a band widens its first column."""
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


def _span(group: Sequence[_Laid]) -> int:
    return sum(column.width for column in group) + len(_GAP) * (len(group) - 1)


def _keys(laid: Sequence[_Laid], width: int) -> list[_Laid]:
    """Return the leading columns that say what a row is, up to half of the width."""
    keys = list(takewhile(lambda column: column.is_key, laid))
    while len(keys) > 1 and _span(keys) > width // 2:
        keys.pop()
    return keys


def _blocks(groups: list[list[_Laid]], width: int) -> Iterator[list[list[_Laid]]]:
    """Put groups side by side until the line is full; each block begins with the keys."""
    keys = [[column] for column in _keys([group[0] for group in groups], width)]
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


def _row(block: list[list[_Laid]], index: int) -> Iterator[Text]:
    columns = [column for group in block for column in group]
    for number in range(max(len(column.texts[index]) for column in columns)):
        line = Text(_GAP).join(
            Text(column.line(index, number), "dim" if column.faint[index] else "")
            for column in columns
        )
        line.rstrip()
        yield line
