"""Stock of the pharmacy of a hospital, rebuilt from ten years of movements.

The movements are loaded in one transaction; running stock, days without stock
and the use by ward come from three statements over the whole table.
"""
import os
import random
import sqlite3
import tempfile

MOVEMENTS = 3_000_000
DRUGS = 600
WARDS = 45


def movements():
    rnd = random.Random(2012)
    day_of = rnd.random
    for number in range(MOVEMENTS):
        drug = int(day_of() ** 1.5 * DRUGS)
        if number % 9 == 0:
            amount, ward = 8 + int(day_of() * 45), 0
        else:
            amount, ward = -1 - int(day_of() * 6), 1 + int(day_of() * WARDS)
        yield number // 820, drug, ward, amount


def load(db):
    db.execute("CREATE TABLE movement (day INTEGER, drug INTEGER, ward INTEGER, amount INTEGER)")
    with db:
        db.executemany("INSERT INTO movement VALUES (?, ?, ?, ?)", movements())
        db.execute("CREATE INDEX movement_drug ON movement (drug, day, amount)")
    db.execute("ANALYZE")


STOCK = """
CREATE TABLE stock AS
SELECT drug, day,
       SUM(SUM(amount)) OVER (PARTITION BY drug ORDER BY day) AS level,
       LEAD(day) OVER (PARTITION BY drug ORDER BY day) AS until
FROM movement GROUP BY drug, day
"""

EMPTY = """
SELECT drug, SUM(until - day) AS days, MIN(level) AS lowest
FROM stock WHERE level < 0 AND until IS NOT NULL
GROUP BY drug ORDER BY days DESC, drug LIMIT 3
"""

USE = """
SELECT ward, AVG(used), MAX(used) FROM (
    SELECT ward, day / 7 AS week, -SUM(amount) AS used
    FROM movement WHERE ward > 0 GROUP BY ward, week)
GROUP BY ward ORDER BY 2 DESC LIMIT 3
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(os.path.join(folder, "pharmacy.sqlite"))
        db.execute("PRAGMA cache_size = -400000")
        db.execute("PRAGMA temp_store = MEMORY")
        load(db)
        db.execute(STOCK)
        for drug, days, lowest in db.execute(EMPTY):
            print(f"drug {drug}: {days} days below zero, lowest {lowest}")
        for ward, mean, most in db.execute(USE):
            print(f"ward {ward}: {mean:.2f} packs a week, at most {most}")
        count, = db.execute("SELECT COUNT(*) FROM stock").fetchone()
        print(f"{count} stock levels")
        db.close()


if __name__ == "__main__":
    main()
