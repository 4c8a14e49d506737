"""Tables and lists of a document, made from the objects that they show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from teho.model.document import Cell, Column, Item, Level, Listing, Table

__all__ = ["ColumnOf", "column", "listing", "table"]

T = TypeVar("T")
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
) -> ColumnOf[T]:
    """Return a column with the function for its cells; the other arguments as in `Column`."""
    looks = Column(
        key=key, label=label, band=band, unit=unit, shown_in=shown_in, decimals=decimals,
        aside=aside,
    )  # fmt: skip
    return looks, cell


def table(
    key: str,
    title: str,
    objects: Iterable[T],
    columns: Iterable[ColumnOf[T]],
    *,
    note: str = "",
    level: Level = "default",
) -> Table:
    """Return a table with a row for each object."""
    columns = tuple(columns)
    return Table(
        key=key,
        title=title,
        columns=tuple(looks for looks, _ in columns),
        rows=tuple({looks.key: cell(one) for looks, cell in columns} for one in objects),
        note=note,
        level=level,
    )


def listing(key: str, title: str, items: Iterable[Item | str], level: Level = "default") -> Listing:
    """Return a list; an item that is a text has only this text."""
    entries = tuple(Item(text=item) if isinstance(item, str) else item for item in items)
    return Listing(key=key, title=title, items=entries, level=level)
