"""Queries of a database that cannot use an index, found in the program's source."""

from __future__ import annotations

import textwrap

import pytest

from teho.model.stack import Frame
from teho.source.parsed import parsed
from teho.source.program import Program
from teho.source.queries import find_column_filter


def found(source, line):
    file = parsed(textwrap.dedent(source).encode())
    frame = Frame("/home/ada/a.py", "main", line, "")
    filtered = find_column_filter([frame], Program({"/home/ada/a.py": file}.get))
    assert filtered is None or filtered.frame == frame
    return filtered.text if filtered else None


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT a FROM t WHERE date(at) = ? ORDER BY at", "date(at)"),
        (
            "select a from t where n = 3 and substr(at,\n 1, 10) between ? and ?",
            "substr(at, 1, 10)",
        ),
        ("SELECT a FROM t WHERE lower(t.name) LIKE 'x%'", "lower(t.name)"),
        ("SELECT date(at) FROM t WHERE at >= ?", None),
        ("SELECT a FROM t WHERE at >= date(?)", None),
        ("SELECT a FROM t WHERE at = strftime('%s', ?)", None),
        ("SELECT count(*) FROM t", None),
        ("CREATE INDEX by_day ON t (date(at))", None),
    ],
)
def test_a_function_on_a_column_in_the_condition(query, text):
    assert found(f"db.execute({query!r}, (day,))", 1) == text


def test_a_query_has_a_name_or_several_parts():
    source = """
    TABLE = "obs"
    QUERY = f"SELECT level FROM {TABLE} WHERE date(at) = ?"
    def main(db):
        sql = ("SELECT a FROM t"
               " WHERE abs(level) > 3")
        rows = db.execute(sql)
        return rows, pd.read_sql(
            text(QUERY), db)
    """
    assert found(source, 7) == "abs(level)"
    assert found(source, 9) == "date(at)"
    assert found(source, 4) is None


def test_the_functions_around_need_no_source():
    file = parsed(b"def main(db):\n    return db.execute('SELECT a FROM t WHERE date(at) = ?')\n")
    frames = [Frame("/home/ada/a.py", "main", 2, ""), Frame("/home/ada/other.py", "run", 9, "")]
    filtered = find_column_filter(frames, Program({"/home/ada/a.py": file}.get))
    assert filtered is not None
    assert filtered.frame == frames[0]


def test_a_query_that_is_not_in_the_source():
    assert found("def main(db, sql):\n    return db.execute(sql)\n", 2) is None
    assert find_column_filter([], Program(lambda _: None)) is None
