"""Telegrams between offices by hour and tariff: one bulk load into SQLite, then a few large summaries."""
import os
import sqlite3
import tempfile

import numpy as np

TELEGRAMS = 2_400_000
OFFICES = 180
CHUNK = 200_000

SUMMARIES = {
    "busiest line": """
        SELECT origin, destination, COUNT(*), SUM(words) FROM telegram
        GROUP BY origin, destination ORDER BY 4 DESC, 1, 2 LIMIT 1""",
    "slowest hour": """
        SELECT (sent / 3600) % 24, ROUND(AVG(delivered - sent), 3), COUNT(*) FROM telegram
        GROUP BY 1 ORDER BY 2 DESC LIMIT 1""",
    "dearest district": """
        SELECT o.district, t.tariff, ROUND(SUM(t.words * r.pence), 1)
        FROM telegram t JOIN office o ON o.id = t.origin JOIN rate r ON r.tariff = t.tariff
        GROUP BY o.district, t.tariff ORDER BY 3 DESC LIMIT 1""",
    "longest queue": """
        SELECT destination, MAX(wait) FROM (
            SELECT destination, sent - LAG(sent) OVER (PARTITION BY destination ORDER BY sent) AS wait FROM telegram)
        GROUP BY destination ORDER BY 2 DESC, 1 LIMIT 1""",
}


def messages():
    rng = np.random.default_rng(1870)
    for begin in range(0, TELEGRAMS, CHUNK):
        origin = (rng.pareto(1.2, CHUNK) * 8).astype(int) % OFFICES
        destination = (rng.pareto(1.1, CHUNK) * 9).astype(int) % OFFICES
        sent = rng.integers(0, 365 * 86_400, CHUNK)
        delivered = sent + (600 + rng.gamma(2.0, 500.0, CHUNK) * (1 + (sent // 3600 % 24 == 10))).astype(int)
        words = 4 + rng.poisson(11.0, CHUNK)
        tariff = rng.integers(0, 4, CHUNK)
        yield from zip(origin.tolist(), destination.tolist(), sent.tolist(), delivered.tolist(),
                       words.tolist(), tariff.tolist())


def load(con):
    con.executescript("""
        PRAGMA journal_mode = OFF;
        PRAGMA synchronous = OFF;
        PRAGMA cache_size = -400000;
        PRAGMA temp_store = MEMORY;
        CREATE TABLE office (id INTEGER PRIMARY KEY, district INTEGER);
        CREATE TABLE rate (tariff INTEGER PRIMARY KEY, pence REAL);
        CREATE TABLE telegram (origin INTEGER, destination INTEGER, sent INTEGER, delivered INTEGER,
                               words INTEGER, tariff INTEGER);
    """)
    with con:
        con.executemany("INSERT INTO office VALUES (?, ?)", ((i, i % 14) for i in range(OFFICES)))
        con.executemany("INSERT INTO rate VALUES (?, ?)", ((i, 0.5 + 0.75 * i) for i in range(4)))
        con.executemany("INSERT INTO telegram VALUES (?, ?, ?, ?, ?, ?)", messages())


def main():
    with tempfile.TemporaryDirectory() as folder:
        con = sqlite3.connect(os.path.join(folder, "telegrams.sqlite"))
        load(con)
        print(con.execute("SELECT COUNT(*), SUM(words) FROM telegram").fetchone())
        for name, query in SUMMARIES.items():
            print(f"{name}: {con.execute(query).fetchone()}")
        con.close()


if __name__ == "__main__":
    main()
