"""A small analysis over SQLite: an aggregate in SQL, one through a Python function, an insert of
many rows, and a Python pass over fetched rows."""

import json
import random
import sqlite3
import sys
from time import perf_counter as clock

KIND = {"aggregate": "native", "udf": "mixed", "insert": "native", "rows": "python"}


def weight(value: float, group: int) -> float:
    if group % 3 == 0:
        return value * 2.0
    return value - group


def spread(db: sqlite3.Connection, low: int, count: int) -> float:
    best = 0.0
    for ident, group, value in db.execute("SELECT * FROM m WHERE id >= ? LIMIT ?", (low, count)):
        best = max(best, abs(value - 0.5) * (group + 1), ident * 1e-9)
    return best


def main(seconds: float) -> None:
    rng = random.Random(13)
    db = sqlite3.connect(":memory:")
    db.create_function("weight", 2, weight)
    db.execute("CREATE TABLE m (id INTEGER PRIMARY KEY, grp INTEGER, value REAL)")
    db.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, grp INTEGER, value REAL)")
    rows = [(i, i % 17, rng.random()) for i in range(20_000)]
    db.executemany("INSERT INTO m VALUES (?, ?, ?)", rows)
    by_group = "SELECT grp, avg(value), max(value) FROM m WHERE id < ? GROUP BY grp"
    by_weight = "SELECT sum(weight(value, grp)) FROM m WHERE id < ?"
    used = [0.0] * 4
    t4 = start = clock()
    while t4 - start < seconds:
        n = rng.randrange(1000, 5000)
        t0 = clock()
        db.execute(by_group, (n,)).fetchall()  #: aggregate
        t1 = clock()
        db.execute(by_weight, (n // 2,)).fetchone()  #: udf
        t2 = clock()
        db.executemany("REPLACE INTO log VALUES (?, ?, ?)", rows[: n // 4])  #: insert
        t3 = clock()
        spread(db, n, n // 2)  #: rows
        t4 = clock()
        ends = (t0, t1, t2, t3, t4)
        used = [total + ends[i + 1] - ends[i] for i, total in enumerate(used)]
    print(json.dumps({"loop_s": t4 - start, "stretches": dict(zip(KIND, used))}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
