"""Occupancy and turnover of kerbside bays from a database of parking meter events."""
import os
import sqlite3
import tempfile

import numpy as np

METERS = 1_500
EVENTS = 1_900_000

OVERSTAYS = """
SELECT zone, count(*), avg(gap) FROM (
    SELECT zone, start - lag(start + paid) OVER (PARTITION BY meter ORDER BY start) AS gap
    FROM stay)
WHERE gap < 0 GROUP BY zone ORDER BY zone
"""

TURNOVER = """
SELECT zone, avg(n), max(n) FROM (
    SELECT zone, meter, start / 86400 AS day, count(*) AS n
    FROM stay GROUP BY meter, day)
GROUP BY zone ORDER BY zone
"""

MOVING = """
SELECT zone, max(load) FROM (
    SELECT zone, avg(paid) OVER (PARTITION BY meter ORDER BY start
                                 ROWS BETWEEN 20 PRECEDING AND CURRENT ROW) AS load
    FROM stay)
GROUP BY zone ORDER BY zone
"""

QUARTILES = """
SELECT zone, quarter, min(paid), max(paid), count(*) FROM (
    SELECT zone, paid, ntile(4) OVER (PARTITION BY zone ORDER BY paid) AS quarter
    FROM stay)
GROUP BY zone, quarter ORDER BY zone, quarter
"""


def build(con):
    rng = np.random.default_rng(1935)
    meter = np.sort(rng.integers(0, METERS, EVENTS))
    start = rng.integers(0, 365 * 86400, EVENTS)
    paid = (rng.gamma(2.0, 1800.0, EVENTS)).astype(np.int64) + 300
    order = np.lexsort((start, meter))
    con.execute("PRAGMA journal_mode = OFF")
    con.execute("PRAGMA cache_size = -200000")
    con.execute("CREATE TABLE stay (meter INTEGER, start INTEGER, paid INTEGER, zone INTEGER)")
    rows = zip(meter[order].tolist(), start[order].tolist(), paid[order].tolist(),
               (meter[order] % 12).tolist())
    with con:
        con.executemany("INSERT INTO stay VALUES (?,?,?,?)", rows)
    con.execute("CREATE INDEX stay_order ON stay (meter, start, paid, zone)")


def main():
    with tempfile.TemporaryDirectory() as folder:
        con = sqlite3.connect(os.path.join(folder, "meters.db"))
        build(con)
        over = con.execute(OVERSTAYS).fetchall()
        turn = con.execute(TURNOVER).fetchall()
        moving = con.execute(MOVING).fetchall()
        quarters = con.execute(QUARTILES).fetchall()
        con.close()
    busiest = max(turn, key=lambda row: row[1])
    print(f"{EVENTS} stays at {METERS} meters, {len(turn)} zones")
    print(f"overlaps {sum(row[1] for row in over)}, mean {over[0][2]:.1f} s in zone 0")
    print(f"busiest zone {busiest[0]}: {busiest[1]:.3f} stays a day, at most {busiest[2]}")
    print(f"longest moving mean {max(row[1] for row in moving) / 60:.1f} min,"
          f" median of zone 0 {quarters[1][3] / 60:.1f} min")


if __name__ == "__main__":
    main()
