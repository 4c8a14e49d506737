"""Queries that read a whole table for want of an index, and programs that look like it."""

from __future__ import annotations

import contextlib
import sqlite3
import textwrap

import pytest

from source.database_programs import CLEAN, FOUND
from teho.model.stack import Frame
from teho.source.database.sql import read_query
from teho.source.database.tables import Tables
from teho.source.parsed import parsed
from teho.source.program import Program
from teho.source.queries import find_missing_index

FOLDER = "/home/ada/"
TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b REAL, c INT)"


def missing(source, call, others=(), packages="sqlite3"):
    """Search the stack that is in this line of a program, and in those that call its function."""
    text = f"import {packages}\n" + textwrap.dedent(source)
    files = {f"{FOLDER}a.py": parsed(text.encode())}
    files |= {f"{FOLDER}{name}": parsed(other.encode()) for name, other in others}
    file = files[f"{FOLDER}a.py"]
    calls = [call] if isinstance(call, str) else call
    frames = []
    for one in calls:
        (line,) = (
            number
            for number, other in enumerate(text.split("\n"), 1)
            if one in other and "def " not in other
        )
        frames.append(Frame(f"{FOLDER}a.py", file.function_at(line).name or "<module>", line, one))
    on_stack = {f"{FOLDER}a.py": file}
    return find_missing_index(frames[::-1], Program(files.get), lambda: Tables(on_stack, files.get))


def columns_of(query, schema=TABLE, packages="sqlite3"):
    """Return the index that a query in a loop needs: `t (a, b)`."""
    source = f"SCHEMA = {schema!r}\nfor key in keys:\n    db.execute({query!r}, (key,))\n"
    found = missing(source, f"db.execute({query!r}, (key,))", packages=packages)
    return f"{found.table} ({', '.join(found.columns)})" if found else None


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("SELECT b FROM t WHERE a = ?", "t (a)"),
        ("select b from t as x where x.a=:key order by c desc limit 1", "t (a)"),
        ("SELECT sum(b) FROM t WHERE a = ? AND c = ?", "t (a, c)"),
        ("SELECT b FROM t WHERE a IN (?, ?, ?)", "t (a)"),
        ("SELECT b FROM t WHERE c BETWEEN ? AND ? AND b > 0", "t (c)"),
        ("SELECT b FROM t WHERE c >= ? AND c < ?", "t (c)"),
        ("SELECT b FROM t WHERE a = %s AND c > %s", "t (a, c)"),
        ("SELECT b FROM t WHERE a = lower(?) AND b = 1", "t (a)"),
        ("UPDATE t SET b = b + 1 WHERE a = ?", "t (a)"),
        ("DELETE FROM t WHERE a = ? -- the old ones", "t (a)"),
        ('SELECT "b" FROM main."t" WHERE "a" = ?', "t (a)"),
        ("SELECT b FROM t WHERE id = ?", None),
        ("SELECT b FROM t WHERE id = ? AND a = ?", None),
        ("SELECT b FROM t WHERE rowid = ? AND a = 'x'", None),
        ("SELECT b FROM t WHERE a = 'x'", None),  # the program gives no value
        ("SELECT b FROM t WHERE c > ?", None),  # perhaps most of the rows
        ("SELECT b FROM t WHERE a LIKE ?", None),
        ("SELECT b FROM t WHERE a != ?", None),
        ("SELECT b FROM t WHERE lower(a) = ?", "t (lower(a))"),
        ("SELECT b FROM t WHERE date(x.a) = ? ORDER BY a", None),  # there is no x
        ("SELECT b FROM t AS x WHERE date(x.a) = ? ORDER BY a", "t (date(a))"),
        ("SELECT b FROM t WHERE ? = substr(a, 1, 7) AND c = ?", "t (substr(a, 1, 7), c)"),
        ("SELECT b FROM t WHERE strftime('%Y-%m', a) IN (?, ?)", "t (strftime('%Y-%m', a))"),
        ("SELECT b FROM t WHERE CAST(b AS INTEGER) BETWEEN ? AND ?", "t (CAST(b AS INTEGER))"),
        ("SELECT b FROM t WHERE lower(trim(a)) = lower(?)", "t (lower(trim(a)))"),
        ("SELECT b FROM t WHERE strftime('%m', a) = ?", None),  # only twelve results
        ("SELECT b FROM t WHERE date(a, 'localtime') = ?", None),  # not possible in an index
        ("SELECT b FROM t WHERE date(a, ?) = ?", None),
        ("SELECT b FROM t WHERE distance(a) = ?", None),  # perhaps a function of the program
        ("SELECT b FROM t WHERE lower(a) LIKE ?", None),
        ("SELECT b FROM t WHERE date(a) > ?", None),  # perhaps most of the rows
        ("SELECT b FROM t WHERE date(a) = '1391-01-01'", None),  # the same rows each time
        ("SELECT b FROM t WHERE coalesce(a, b) = ?", None),  # two columns
        ("SELECT b FROM t WHERE id = ? AND date(a) = ?", None),  # few rows
        ("SELECT b FROM t WHERE date(unknown) = ?", None),
        ("SELECT b FROM t WHERE NOT a = ?", None),
        ("SELECT b FROM t WHERE a = ? OR id = ?", None),
        ("SELECT b FROM t WHERE a = ? AND id IN (SELECT id FROM u)", None),
        ("SELECT b FROM t WHERE a = ? ORDER BY id DESC LIMIT 1", None),  # by another index
        ("SELECT b FROM t WHERE unknown = ?", None),
        ("SELECT b FROM other WHERE a = ?", None),
        ("SELECT count(*) FROM t", None),
        ("WITH x AS (SELECT * FROM t) SELECT * FROM x WHERE a = ?", None),
        ("INSERT INTO t VALUES (?, ?, ?, ?)", None),
        ("SELECT b FROM t WHERE a = ?; DROP TABLE t", None),
        ("PRAGMA table_info(t)", None),
        ("not SQL", None),
    ],
)
def test_queries(query, index):
    assert columns_of(query) == index


@pytest.mark.parametrize(
    ("schema", "is_missing"),
    [
        (TABLE, True),
        ("create table if not exists main.t (a text not null, b real) without rowid", True),
        ("CREATE TABLE t (a TEXT, b REAL, PRIMARY KEY (b, a))", True),  # `a` is not the first one
        ("CREATE TABLE t (a TEXT, b REAL, FOREIGN KEY (a) REFERENCES s (a))", True),
        ("CREATE TABLE t (a TEXT, b REAL); CREATE INDEX i ON t (b, a)", True),
        ("CREATE TABLE t AS SELECT * FROM s", True),
        ("CREATE TABLE t (a TEXT PRIMARY KEY, b REAL)", False),
        ("CREATE TABLE t (a TEXT UNIQUE, b REAL)", False),
        ("CREATE TABLE t (a TEXT, b REAL, PRIMARY KEY (a, b))", False),
        ("CREATE TABLE t (a TEXT, b REAL, CONSTRAINT u UNIQUE (a, b))", False),
        ("CREATE TABLE t (a TEXT, b REAL, KEY of_a (a))", False),
        ("CREATE TABLE t (a TEXT, b REAL); create unique index if not exists i on t(a)", False),
        ("CREATE TABLE t (a TEXT, b REAL); CREATE INDEX i ON t USING hash (a)", False),
        ("CREATE TABLE t (a TEXT, b REAL); CREATE INDEX i ON t (lower(a))", False),
        ("CREATE TABLE t (a TEXT, b REAL); ALTER TABLE t ADD PRIMARY KEY (a)", False),
        ("CREATE TABLE t (a TEXT, b REAL) PARTITION BY LIST (a)", False),
        ("CREATE VIRTUAL TABLE t USING fts5(a, b)", False),
        ("CREATE VIEW t AS SELECT a, b FROM s", False),
        ("CREATE TABLE t (LIKE s INCLUDING ALL)", False),
        ("CREATE TABLE t (a TEXT, b", False),
        ("", False),
    ],
)
def test_tables(schema, is_missing):
    assert (columns_of("SELECT b FROM t WHERE a = ?", schema) == "t (a)") is is_missing


@pytest.mark.parametrize(
    ("packages", "is_missing"),
    [("psycopg2", True), ("pymysql", False), ("duckdb", False), ("sqlite3, duckdb", False)],
)
def test_databases(packages, is_missing):
    schema = "CREATE TABLE t (a TEXT, b REAL, FOREIGN KEY (a) REFERENCES s (a))"
    found = columns_of("SELECT b FROM t WHERE a = ?", schema, packages)
    assert (found is not None) is is_missing


TWO = f"{TABLE}; CREATE TABLE s (code TEXT, a TEXT, n INT); CREATE INDEX i ON s (code)"


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("SELECT b FROM s JOIN t ON t.a = s.a WHERE s.code = ?", "t (a)"),
        (
            "SELECT b FROM s LEFT OUTER JOIN t AS x ON x.a = s.a AND x.c = ? WHERE code = ?",
            "t (a, c)",
        ),
        ("SELECT b FROM t, s WHERE t.a = s.a AND t.id = ?", "s (a)"),
        ("SELECT b FROM s JOIN t ON t.id = s.n WHERE s.code = ?", None),
        ("SELECT b FROM s JOIN t ON t.a = s.a", None),  # all rows of both
        ("SELECT b FROM s JOIN t ON t.a = s.a WHERE s.n = ? AND t.c = ?", None),  # not clear
        ("SELECT b FROM s JOIN t ON t.a = s.a WHERE a = ?", None),
        ("SELECT b FROM s JOIN t USING (a) WHERE s.code = ?", None),
        ("SELECT b FROM s JOIN (SELECT * FROM t) AS x ON x.a = s.a WHERE s.code = ?", None),
    ],
)
def test_joins(query, index):
    assert columns_of(query, TWO) == index


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("SELECT code, (SELECT max(b) FROM t WHERE t.a = s.a) FROM s", "t (a)"),
        (
            "SELECT n FROM s WHERE EXISTS (SELECT 1 FROM t AS x WHERE a = s.code AND x.c = 3)",
            "t (a)",
        ),
        ("SELECT n FROM s WHERE EXISTS (SELECT 1 FROM t AS x WHERE b = s.code)", "t (b)"),
        ("UPDATE s SET n = (SELECT count(*) FROM t WHERE s.code = t.c)", "t (c)"),
        ("DELETE FROM t WHERE id IN (SELECT n FROM s WHERE s.a = t.a)", "s (a)"),
        ("SELECT code, (SELECT max(b) FROM t WHERE t.id = s.n) FROM s", None),
        ("SELECT b FROM t WHERE a IN (SELECT a FROM s)", None),  # runs once
        ("SELECT b FROM t WHERE a IN (SELECT a FROM s WHERE n = ?)", None),
        ("SELECT * FROM (SELECT b FROM t WHERE t.a = 'x') AS y", None),
        ("WITH y AS (SELECT b FROM t WHERE t.a = s.a) SELECT * FROM y, s", None),
        ("SELECT code, (SELECT max(b) FROM t WHERE t.a = s.a AND b > (SELECT 1)) FROM s", None),
    ],
)
def test_queries_in_queries(query, index):
    source = f"SCHEMA = {TWO!r}\nrows = db.execute({query!r}).fetchall()\n"
    found = missing(source, f"db.execute({query!r}).fetchall()")
    assert (f"{found.table} ({', '.join(found.columns)})" if found else None) == index
    assert found is None or found.is_inner


@pytest.mark.parametrize("name", FOUND)
def test_an_index_is_missing(name):
    found = missing(*FOUND[name])
    assert (found.table, found.columns) == ("bird", ("plot",))


@pytest.mark.parametrize("name", CLEAN)
def test_no_index_is_missing_for_sure(name):
    assert missing(*CLEAN[name]) is None


QUERY = 'db.execute("SELECT n FROM bird WHERE plot = ?", (name,))'
MAIN = f"""
import schema
def main(db, names):
    schema.make(db)
    for name in names:
        {QUERY}
"""
MADE = 'def make(db):\n    db.execute("CREATE TABLE bird (plot TEXT, n INTEGER)")\n'
INDEX = 'db.execute("CREATE INDEX of_plot ON bird (plot)")\n'


def test_tables_of_other_files():
    found = missing(MAIN, QUERY, [("schema.py", MADE)])
    assert found.made.short_place == "schema.py:2"
    assert missing(MAIN, QUERY, [("schema.py", f"{MADE}    {INDEX}")]) is None
    assert missing(MAIN, QUERY) is None
    package = [("schema/__init__.py", "from .made import make\nfrom . import more\n")]
    package += [("schema/made.py", MADE), ("schema/more.py", INDEX)]
    assert missing(MAIN, QUERY, package) is None
    assert missing(MAIN, QUERY, package[:2]) is not None


def test_a_file_that_cannot_be_read_may_have_indexes():
    file = parsed(f"import sqlite3, other\n{MADE}".encode())
    paths = {f"{FOLDER}other.py": False}
    assert Tables({f"{FOLDER}a.py": file}, paths.get).find("bird") is None
    assert Tables({f"{FOLDER}a.py": file}, {}.get).find("bird") is not None


def test_the_line_and_the_loop():
    found = missing(MAIN, QUERY, [("schema.py", MADE)])
    assert found.frame.text == QUERY
    assert found.loop.text == "for name in names"
    many = missing(*FOUND["one call for many rows"])
    assert many.loop == many.frame


@pytest.mark.parametrize("text", ["", ";", "SELECT", "SELECT FROM WHERE", "UPDATE", "(", "WHERE a"])
def test_broken_statements_are_not_read(text):
    assert read_query(text) is None


def test_long_texts_are_read():
    long = " + ".join(['"CREATE TABLE bird (plot TEXT, n INTEGER)"', *['" "'] * 3000])
    source = f"for name in names:\n    {QUERY}\nSCHEMA = {long}\n"
    file = parsed(f"import sqlite3\n{source}".encode())
    assert file is None or Tables({f"{FOLDER}a.py": file}, {}.get).find("bird") is not None


def test_an_index_of_the_column_does_not_help_a_function():
    schema = f"{TABLE}; CREATE INDEX i ON t (a)"
    assert columns_of("SELECT b FROM t WHERE date(a) = ?", schema) == "t (date(a))"
    assert columns_of("SELECT b FROM t WHERE a = ? AND date(a) = ?", schema) is None


@pytest.mark.parametrize("index", ["date(a)", "date(a), b", "date (a) DESC", "upper(a)"])
def test_an_index_of_an_expression_is_known(index):
    query = f"SELECT b FROM t WHERE {'upper' if 'upper' in index else 'date'}(a) = ?"
    assert columns_of(query, f"{TABLE}; CREATE INDEX i ON t ({index})") is None


@pytest.mark.parametrize("packages", ["psycopg", "sqlite3, psycopg", "pymysql", "sqlalchemy"])
def test_only_of_sqlite_it_is_known_that_the_index_is_possible(packages):
    assert columns_of("SELECT b FROM t WHERE date(a) = ?", packages=packages) is None


@pytest.mark.parametrize(
    "expression",
    ["date(a)", "lower(a)", "substr(a, 1, 7)", "strftime('%Y-%m', a)", "CAST(b AS INTEGER)",
     "julianday(a)", "coalesce(a, '')", "round(b, 2)", "abs(b)"],
)  # fmt: skip
def test_sqlite_uses_the_index(expression):
    found = columns_of(f"SELECT b FROM t WHERE {expression} = ?")
    assert found == f"t ({expression})"
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute(TABLE)
        database.execute(f"CREATE INDEX i ON {found}")
        query = f"EXPLAIN QUERY PLAN SELECT b FROM t WHERE {expression} = ?"
        assert "USING INDEX i" in database.execute(query, ("x",)).fetchone()[3]
