"""Load river gauge readings into SQLite and derive rolling statistics with window functions."""
import os
import shutil
import sqlite3
import tempfile

import numpy as np

GAUGES, READINGS = 240, 8_000

ROLLING = """
WITH smooth AS (
    SELECT gauge, t, level,
           AVG(level) OVER (PARTITION BY gauge ORDER BY t ROWS BETWEEN 47 PRECEDING AND CURRENT ROW) AS two_days,
           LAG(level, 12) OVER (PARTITION BY gauge ORDER BY t) AS earlier
    FROM readings
)
SELECT gauge, AVG(level - two_days), MAX(level - earlier), SUM(level > two_days + 0.6)
FROM smooth GROUP BY gauge ORDER BY gauge
"""

FLOODS = """
WITH flagged AS (
    SELECT gauge, t, level, level > threshold AS high FROM gauges JOIN readings ON readings.gauge = gauges.id
), edges AS (
    SELECT gauge, t, level, high,
           high AND NOT COALESCE(LAG(high) OVER (PARTITION BY gauge ORDER BY t), 0) AS begins
    FROM flagged
), numbered AS (
    SELECT gauge, t, level, high, SUM(begins) OVER (PARTITION BY gauge ORDER BY t) AS event FROM edges
)
SELECT gauge, event, COUNT(*) AS hours, MAX(level) FROM numbered WHERE high GROUP BY gauge, event
"""

RANKS = """
SELECT gauge, AVG(r) FROM (
    SELECT gauge, t, PERCENT_RANK() OVER (PARTITION BY t ORDER BY level) AS r FROM readings
) GROUP BY gauge ORDER BY AVG(r) DESC LIMIT 5
"""


def load(db):
    rng = np.random.default_rng(44)
    db.execute("CREATE TABLE gauges (id INTEGER PRIMARY KEY, threshold REAL)")
    db.execute("CREATE TABLE readings (gauge INTEGER, t INTEGER, level REAL, PRIMARY KEY (gauge, t)) WITHOUT ROWID")
    with db:
        for gauge in range(GAUGES):
            rain = rng.gamma(0.05, 2.0, READINGS)
            level = np.convolve(rain, np.exp(-np.arange(200) / 30.0), mode="full")[:READINGS] * 0.2
            level += 1.5 + 0.05 * rng.standard_normal(READINGS) + 0.002 * gauge
            db.execute("INSERT INTO gauges VALUES (?, ?)", (gauge, float(np.quantile(level, 0.9))))
            db.executemany("INSERT INTO readings VALUES (?, ?, ?)",
                           zip([gauge] * READINGS, range(READINGS), level.tolist()))


def main():
    folder = tempfile.mkdtemp(prefix="gauges_")
    try:
        db = sqlite3.connect(os.path.join(folder, "rivers.db"))
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA cache_size = -200000")
        load(db)
        rolling = db.execute(ROLLING).fetchall()
        floods = db.execute(FLOODS).fetchall()
        ranks = db.execute(RANKS).fetchall()
        db.close()
    finally:
        shutil.rmtree(folder)
    print("gauges", len(rolling), "fastest rise %.4f" % max(r[2] for r in rolling))
    print("flood events", len(floods), "longest", max(f[2] for f in floods))
    print("highest ranks", [(g, round(r, 4)) for g, r in ranks])


if __name__ == "__main__":
    main()
