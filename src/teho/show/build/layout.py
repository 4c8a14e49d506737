"""Tables and lists of a document, made from the objects that they show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import floor, log10
from typing import TypeVar

from teho.model.document import Cell, Column, Document, Item, Level, Listing, Table
from teho.model.missing import Missing
from teho.version import __version__

__all__ = ["ColumnOf", "column", "document", "is_known", "listing", "table", "three_digits"]

T = TypeVar("T")
document = partial(Document, teho_version=__version__)
"""Makes a document of this Teho."""
ColumnOf = tuple[Column, Callable[[T], Cell]]
"""A column, and the function that returns its cell for an object."""


def column(
    key: str,
    label: str,
    cell: Callable[[T], Cell],
    *,
    band: str = "",
    unit: str = "",
    shown_in: str = "",
    decimals: int | None = None,
    aside: bool = False,
    spare: bool = False,
) -> ColumnOf[T]:
    """Return a column with the function for its cells; the other arguments as in `Column`."""
    style = Column(
        key=key, label=label, band=band, unit=unit, shown_in=shown_in, decimals=decimals,
        aside=aside, spare=spare,
    )  # fmt: skip
    return style, cell


def table(
    key: str,
    title: str,
    objects: Iterable[T],
    *columns: ColumnOf[T] | None,
    note: str = "",
    only_known: bool = False,
) -> Table:
    """Return a table with a row for each object.

    Args:
        key: its fixed name.
        title: its heading.
        objects: one for each row.
        columns: each with the function for its cells; None is left out.
        note: what its figures mean.
        only_known: whether columns without any value are left out.
    """
    present = [one for one in columns if one is not None]
    rows = tuple({style.key: cell(one) for style, cell in present} for one in objects)
    shown = tuple(
        style
        for style, _ in present
        if not only_known or any(is_known(row[style.key]) for row in rows)
    )
    return Table(key=key, title=title, columns=shown, rows=rows, note=note)


def is_known(cell: Cell) -> bool:
    """Return whether a cell has a value."""
    return cell is not None and not isinstance(cell, Missing)


def three_digits(values: Iterable[float]) -> int:
    """Return the number of decimals that gives the smallest value three digits."""
    return max(0, 2 - floor(log10(min(values, default=1.0))))


def listing(key: str, title: str, items: Iterable[Item | str], level: Level = "default") -> Listing:
    """Return a list; an item that is a text has only this text."""
    entries = tuple(Item(text=item) if isinstance(item, str) else item for item in items)
    return Listing(key=key, title=title, items=entries, level=level)
