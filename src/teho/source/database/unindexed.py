"""Tables of a query that the database has to read whole, because they lack an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from teho.model.stack import Frame
from teho.source.database.sql import Column, Condition, Query
from teho.source.database.tables import Table, Tables

__all__ = ["Unindexed", "find_unindexed"]


class Unindexed(NamedTuple):
    """A table without an index for a query."""

    name: str
    made: Frame
    """The line that creates the table."""
    columns: tuple[str, ...]
    """The columns of the index that the query needs."""


class _Term(NamedTuple):
    """A condition for the column of one table."""

    name: str
    joined: str
    """The other table that has the value; empty: it is a value."""
    sign: str
    """`=`, or the sign of a range."""
    is_given: bool


class _Conditions:
    """The conditions of a query for one of its tables."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.terms: list[_Term] = []
        self.mentions: set[str] = set()

    def add_computed(self, condition: Condition) -> None:
        """Add a condition for an expression of a column, for which there is no index."""
        found = condition.computed
        if found is None or not self.table.is_in_sqlite or found.functions & self.table.indexed:
            self.mentions.update(name for _, name in condition.mentions)
        else:
            self.terms.append(_Term(found.text, "", condition.sign, condition.is_given))

    @property
    def has_index(self) -> bool:
        """Whether an index begins with a column of a condition."""
        return any(map(self.has_index_on, self.mentions))

    def has_index_on(self, column: str) -> bool:
        """Return whether an index begins with a column."""
        return column in self.table.indexed

    def is_found(self, found: set[str]) -> bool:
        """Return whether the database finds the rows by an index, if it knows some others."""
        return any(
            self.has_index_on(term.name) and (not term.joined or term.joined in found)
            for term in self.terms
        )

    def columns(self, found: set[str]) -> tuple[str, ...]:
        """Return the columns of an index with which the database finds the rows.

        Args:
            found: the tables of which the database knows the rows.
        """
        equal = [
            term.name
            for term in self.terms
            if term.sign == "=" and (term.joined in found or (term.is_given and not term.joined))
        ]
        signs: dict[str, set[str]] = {}
        for term in self.terms:
            if term.sign != "=" and not term.joined and term.is_given:
                signs.setdefault(term.name, set()).add(term.sign[0])
        # Between two limits are few rows; above one limit may be almost all of them.
        narrow = [name for name, given in signs.items() if given >= {"<", ">"} or "B" in given]
        ranges = (narrow or list(signs)) if equal else narrow
        return tuple(dict.fromkeys((*equal, *ranges[:1])))


def find_unindexed(query: Query, tables: Tables) -> Unindexed | None:
    """Return the only table that the database has to read whole for a query.

    None: there is no such table, there are several, or one of the tables is not known.
    """
    by_alias = {alias: _Conditions(table) for alias, table in _known(query, tables)}
    if len(by_alias) < len(query.tables) or not _add_terms(query, by_alias):
        return None
    found: set[str] = set()
    while more := {alias for alias, one in by_alias.items() if one.is_found(found)} - found:
        found |= more
    lacking = {
        alias: columns
        for alias, one in by_alias.items()
        if not one.has_index and (columns := one.columns(found))
    }
    if len(lacking) != 1:
        return None
    ((alias, columns),) = lacking.items()
    return Unindexed(query.tables[alias], by_alias[alias].table.made, columns)


def _known(query: Query, tables: Tables) -> Iterator[tuple[str, Table]]:
    for alias, name in query.tables.items():
        table = tables.find(name)
        if table is not None:
            yield alias, table


def _add_terms(query: Query, by_alias: Mapping[str, _Conditions]) -> bool:
    """Add the conditions to their tables; False: a column is not clear, or no value is given."""
    for condition in query.conditions:
        owners = {column: _owner(column, by_alias) for column in condition.mentions}
        if None in owners.values():
            return False
        if condition.computed is not None:
            by_alias[str(owners[condition.mentions[0]])].add_computed(condition)
            continue
        for (_, name), owner in owners.items():
            by_alias[str(owner)].mentions.add(name)
        column, other = condition.column, condition.other
        if column is None or (other and owners[column] == owners[other]):
            continue
        for one, joined in ((column, other), (other, column)) if other else ((column, None),):
            if one is not None and not (other and condition.sign != "="):
                owner, side = str(owners[one]), str(owners[joined]) if joined else ""
                by_alias[owner].terms.append(
                    _Term(one[1], side, condition.sign, condition.is_given)
                )
    if query.first_by is not None:
        owner = _owner(query.first_by, by_alias)
        # The database may find the first rows in the order of another index.
        if query.first_by[1] in _ROW_IDS or (
            owner and by_alias[owner].has_index_on(query.first_by[1])
        ):
            return False
    return any(one.is_given for one in query.conditions)


def _owner(column: Column, by_alias: Mapping[str, _Conditions]) -> str | None:
    """Return the alias of the table that has a column; None: it is not clear."""
    alias, name = column
    candidates = [alias] if alias else list(by_alias)
    owners = [
        one
        for one in candidates
        if one in by_alias
        and (not by_alias[one].table.columns or name in by_alias[one].table.columns)
    ]
    return owners[0] if len(owners) == 1 and name not in _ROW_IDS else None


_ROW_IDS = frozenset(("rowid", "_rowid_", "oid", "ctid"))
"""Columns that each table has, and for which the database needs no index."""
