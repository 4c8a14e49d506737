"""Freight waybills of a railway in SQLite: idle time of wagons, flows, delays."""
import os
import sqlite3
import tempfile

import numpy as np

WAYBILLS = 1_800_000
WAGONS = 9000
STATIONS = 180
GOODS = ["coal", "grain", "timber", "ore", "cattle", "cloth", "salt", "beer"]


def rows():
    rng = np.random.default_rng(1872)
    step = 200_000
    for first in range(0, WAYBILLS, step):
        wagon = rng.integers(0, WAGONS, step).tolist()
        origin = rng.integers(0, STATIONS, step).tolist()
        target = rng.integers(0, STATIONS, step).tolist()
        goods = rng.integers(0, len(GOODS), step).tolist()
        tons = rng.gamma(4.0, 2.5, step).round(2).tolist()
        sent = (first // 2 + np.sort(rng.integers(0, step, step))).tolist()
        hours = rng.integers(4, 90, step).tolist()
        for w, o, t, g, m, s, h in zip(wagon, origin, target, goods, tons, sent, hours):
            yield w, o, t, GOODS[g], m, s, s + h


def fill(base):
    base.execute("PRAGMA journal_mode = OFF")
    base.execute("PRAGMA synchronous = OFF")
    base.execute("CREATE TABLE waybill (wagon INTEGER, origin INTEGER, target INTEGER,"
                 " goods TEXT, tons REAL, sent INTEGER, arrived INTEGER)")
    with base:
        base.executemany("INSERT INTO waybill VALUES (?, ?, ?, ?, ?, ?, ?)", rows())
        base.execute("CREATE INDEX by_wagon ON waybill (wagon, sent, arrived, target)")
    base.execute("ANALYZE")


IDLE = """
WITH gaps AS (
    SELECT wagon, target,
           lead(sent) OVER (PARTITION BY wagon ORDER BY sent) - arrived AS idle
    FROM waybill)
SELECT target, count(*), avg(idle) FROM gaps WHERE idle > 0
GROUP BY target ORDER BY 3 DESC
"""

FLOWS = """
SELECT origin, target, goods, sum(tons) AS mass, avg(arrived - sent)
FROM waybill GROUP BY origin, target, goods ORDER BY mass DESC
"""

RANKS = """
WITH yearly AS (
    SELECT sent / 100000 AS period, origin, sum(tons) AS mass
    FROM waybill GROUP BY period, origin)
SELECT period, origin, rank() OVER (PARTITION BY period ORDER BY mass DESC) AS place FROM yearly
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        base = sqlite3.connect(os.path.join(folder, "waybills.db"))
        fill(base)
        print("waybills:", base.execute("SELECT count(*) FROM waybill").fetchone()[0])
        idle = base.execute(IDLE).fetchall()
        print("longest waits at station %d: %.1f h (%d cases)" % (idle[0][0], idle[0][2], idle[0][1]))
        flows = base.execute(FLOWS).fetchall()
        print("flows: %d, largest: %d to %d, %s, %.0f t" % (len(flows), *flows[0][:4]))
        ranks = base.execute(RANKS).fetchall()
        firsts = {origin for _, origin, place in ranks if place == 1}
        print("periods:", len({period for period, _, _ in ranks}), "leading stations:", len(firsts))
        base.close()


if __name__ == "__main__":
    main()
