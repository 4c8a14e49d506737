"""Queries of a database that cannot use an index, and calls with only a few statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from teho.explain.activities import ActivityTime, every_stack
from teho.explain.options import lines_of_option
from teho.model.in_source import MissingIndex
from teho.model.program import MainProcess
from teho.model.stack import Frame

__all__ = ["IndexTime", "column_filter", "index_times", "of_few_statements"]

_MOST = 0.5
"""Share of the time in the database from which one query is named."""
_FEW_STATEMENTS = "statements_few"
"""Name in costly_options.toml."""


class IndexTime(NamedTuple):
    """Time of the queries for which a table has no index."""

    missing: MissingIndex
    """The slowest of the queries."""
    wall_s: float
    """Time of the main thread in all of them, or waiting for processes that were in them."""
    lines: Sequence[tuple[Frame, float]]
    """The lines with the queries, with the wall time of each in s, longest first."""
    stacks: Mapping[tuple[Frame, ...], float]
    """Time of each stack that was in one of them, in s."""


def index_times(main: MainProcess) -> list[IndexTime]:
    """Return the time of the queries that lack an index, for each index, longest first."""
    queries: dict[Frame, MissingIndex] = {}
    times: defaultdict[Frame, float] = defaultdict(float)
    stacks: defaultdict[Frame, dict[tuple[Frame, ...], float]] = defaultdict(dict)
    for process, seen, wall_s in every_stack(main):
        missing = next((one for one in process.missing_indexes if one.frame in seen.frames), None)
        if missing is not None:
            queries[missing.frame] = missing
            times[missing.frame] += wall_s
            of_line = stacks[missing.frame]
            of_line[seen.frames] = of_line.get(seen.frames, 0.0) + wall_s
    by_index: defaultdict[tuple[str, tuple[str, ...]], list[Frame]] = defaultdict(list)
    for line in sorted(queries, key=lambda one: -times[one]):
        by_index[queries[line].table, queries[line].columns].append(line)
    found = [
        IndexTime(
            queries[lines[0]],
            sum(times[line] for line in lines),
            [(line, times[line]) for line in lines],
            {frames: s for line in lines for frames, s in stacks[line].items()},
        )
        for lines in by_index.values()
    ]
    return sorted(found, key=lambda one: -one.wall_s)


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


def of_few_statements(main: MainProcess, time: ActivityTime) -> frozenset[tuple[Frame, ...]]:
    """Return the stacks of a time that are in calls with only a few statements in the whole run."""
    few = lines_of_option(main, _FEW_STATEMENTS)
    return frozenset(one for one in time.stacks if not few.isdisjoint(one))
