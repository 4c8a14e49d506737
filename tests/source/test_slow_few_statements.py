"""Calls of a database that execute only a few statements, from the source."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

CUBE = """
import sqlite3
SUMMARIES = {"lines": "SELECT a, COUNT(*) FROM t GROUP BY a", "hours": "SELECT AVG(b) FROM t"}
def main(con, rows):
    for name, query in SUMMARIES.items():
        print(name, con.execute(query).fetchone())
main(connect(), ROWS)
"""
STACK = ("main(connect(), ROWS)", "con.execute(query)")


def found(source, *active):
    calls = find_slow_calls(*stack_of(source, *active))
    return next((one for one in calls if one.name == "statements_few"), None)


def test_a_few_summaries():
    assert found(CUBE, *STACK).at.text == "con.execute(query)"
    assert found(CUBE, STACK[0], "con.execute(query).fetchone()") is not None


@pytest.mark.parametrize(
    ("changes", "call"),
    [
        (("SUMMARIES.items()", "rows"), STACK[1]),
        (("SUMMARIES.items()", "zip(range(500), SUMMARIES)"), STACK[1]),
        (("con.execute(query)", "con.execute(query, (name,))"), "con.execute(query, (name,))"),
        (("for name, query in SUMMARIES.items()", "while rows"), STACK[1]),
        (("con.execute(query)", "con.commit()"), "con.commit()"),
        (("main(connect(), ROWS)", "for day in DAYS:\n    main(connect(), ROWS)"), STACK[1]),
    ],
)
def test_look_alikes(changes, call):
    assert changes[0] in CUBE
    assert found(CUBE.replace(*changes), STACK[0], call) is None
