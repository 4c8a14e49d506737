"""Queries of a database that cannot use an index."""

from __future__ import annotations

from collections.abc import Mapping

from teho.model.program import MainProcess
from teho.model.watched import Frame

__all__ = ["column_filter"]

_MOST = 0.5
"""Share of the time in the database from which one query is named."""


def column_filter(main: MainProcess, stacks: Mapping[tuple[Frame, ...], float]) -> str | None:
    """Return the call on a column in the condition of the query that took most of some time.

    None: no query with such a condition took half of the time.

    Args:
        main: the process.
        stacks: stacks in the database, each with its time in s.
    """
    for process in (main.process, *main.workers, *main.children):
        for one in process.column_filters:
            in_query_s = sum(s for frames, s in stacks.items() if one.frame in frames)
            if in_query_s >= _MOST * sum(stacks.values()):
                return one.text
    return None
