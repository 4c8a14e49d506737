"""Quarterly report from the ledger of a research institute, with SQLite."""
import os
import sqlite3
import tempfile

import numpy as np

BOOKINGS = 800_000
PROJECTS = 900
ACCOUNTS = 60


def bookings(seed=97):
    rng = np.random.default_rng(seed)
    project = rng.integers(0, PROJECTS, BOOKINGS).tolist()
    account = rng.integers(0, ACCOUNTS, BOOKINGS).tolist()
    day = np.sort(rng.integers(0, 1460, BOOKINGS)).tolist()
    cents = np.round(rng.lognormal(8.0, 1.4, BOOKINGS)).astype(int).tolist()
    return zip(project, account, day, cents)


def load(db):
    db.execute("PRAGMA cache_size = -200000")
    with db:
        db.execute(
            "CREATE TABLE booking (id INTEGER PRIMARY KEY, project INT, account INT, day INT, cents INT)"
        )
        db.executemany(
            "INSERT INTO booking (project, account, day, cents) VALUES (?, ?, ?, ?)", bookings()
        )
    with db:
        db.execute("CREATE INDEX by_project ON booking (project, day, id, account, cents)")
        db.execute("ANALYZE")


BALANCE = """
WITH running AS (
    SELECT project, day, cents,
           sum(cents) OVER w AS total,
           avg(cents) OVER (w ROWS BETWEEN 99 PRECEDING AND CURRENT ROW) AS recent,
           count(*) OVER (PARTITION BY project) AS n,
           row_number() OVER w AS k
    FROM booking
    WINDOW w AS (PARTITION BY project ORDER BY day, id)
)
SELECT project, max(total), max(recent),
       min(CASE WHEN k * 2 >= n THEN day END) AS middle
FROM running GROUP BY project
"""

QUARTERS = """
SELECT day / 91 AS quarter, account, sum(cents), count(DISTINCT project)
FROM booking GROUP BY quarter, account
"""

GAPS = """
WITH steps AS (
    SELECT project, day - lag(day) OVER (PARTITION BY project ORDER BY day, id) AS gap
    FROM booking
)
SELECT project, max(gap) FROM steps GROUP BY project ORDER BY 2 DESC, 1 LIMIT 5
"""

RARE = """
SELECT b.project, count(*), sum(b.cents) FROM booking b
WHERE b.cents > 60000
  AND b.cents > (SELECT 20 * avg(a.cents) FROM booking a
                 WHERE a.project = b.project AND a.day BETWEEN b.day - 200 AND b.day)
GROUP BY b.project ORDER BY 2 DESC, 1 LIMIT 5
"""


def main():
    handle, path = tempfile.mkstemp(suffix=".db", dir=os.environ.get("TMPDIR", "."))
    os.close(handle)
    try:
        db = sqlite3.connect(path)
        load(db)
        balance = db.execute(BALANCE).fetchall()
        richest = max(balance, key=lambda row: row[1])
        print(f"{len(balance)} projects, largest {richest[0]}: {richest[1] / 100:.2f}")
        print(f"middle day {np.mean([row[3] for row in balance]):.2f}")
        quarters = db.execute(QUARTERS).fetchall()
        print(f"{len(quarters)} account quarters, {sum(q[2] for q in quarters) / 100:.2f} in total")
        print("longest gaps:", db.execute(GAPS).fetchall())
        print("rare bookings:", db.execute(RARE).fetchall())
        db.close()
    finally:
        os.remove(path)


if __name__ == "__main__":
    main()
