"""Queries of SQLite that search a text in all rows, in a loop."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

QUERIES = """
import {package}
def main(db, words, few):
    counts = {{}}
    {loop}
        counts[word] = {call}
"""
CALL = 'db.execute("SELECT count(*) FROM letters WHERE body LIKE ?", (f"%{word}%",)).fetchone()'
LOOP = "for word in words:"


def searched(call=CALL, loop=LOOP, package="sqlite3"):
    return found(QUERIES.format(call=call, loop=loop, package=package), call)


def test_the_words():
    assert searched() == {
        "texts_searched": {
            "table": "letters",
            "column": "body",
            "old": "body LIKE ?",
            "loop": "train.py:12",
        }
    }


@pytest.mark.parametrize(
    ("call", "is_found"),
    [
        (CALL.replace('f"%{word}%"', '"%" + word + "%"'), True),
        (CALL.replace('f"%{word}%"', '"%%%s%%" % word'), True),
        (CALL.replace('f"%{word}%"', '"%{}%".format(word)'), True),
        (CALL.replace("LIKE ?", "LIKE '%' || ? || '%'").replace('f"%{word}%"', "word"), True),
        (CALL.replace("LIKE ?", "LIKE ? AND year > 1900"), True),
        ("db.execute(f\"SELECT id FROM letters WHERE body LIKE '%{word}%'\").fetchall()", False),
        # ---- which look like it ----
        (CALL.replace('f"%{word}%"', 'f"{word}%"'), False),
        (CALL.replace('f"%{word}%"', "word"), False),
        (CALL.replace("LIKE", "="), False),
        (CALL.replace("LIKE", "NOT LIKE"), False),
        (CALL.replace("letters WHERE", "letters JOIN authors ON author = name WHERE"), False),
        (CALL.replace("letters WHERE", "letters, authors WHERE"), False),
        (CALL.replace("LIKE ?", "LIKE ? OR title LIKE ?"), False),
        (CALL.replace('f"%{word}%"', '"%abbot%"'), False),  # always the same text
        (CALL.replace("LIKE ?", "LIKE '%abbot%'").replace(', (f"%{word}%",)', ""), False),
    ],
)
def test_conditions(call, is_found):
    assert list(searched(call)) == (["texts_searched"] if is_found else [])


@pytest.mark.parametrize(
    ("loop", "package"),
    [
        ("for word in ('abbot', 'monk'):", "sqlite3"),
        ("if word := words[0]:", "sqlite3"),
        (LOOP, "psycopg"),
    ],
)
def test_few_texts_and_other_databases(loop, package):
    assert searched(loop=loop, package=package) == {}
