"""Feast days in the registers of a mediaeval pilgrim hospice.

The arrivals (time, home parish, gift) are kept in SQLite. For each feast day
the gifts are compared with those of the whole register by resampling.
"""
import datetime as dt
import os
import random
import sqlite3
import tempfile

import numpy as np

ARRIVALS = 450_000
FEASTS = 60
START = dt.datetime(1391, 1, 1)


def fill(db):
    rnd = random.Random(1391)
    db.execute("CREATE TABLE arrival (arrived TEXT, parish INTEGER, gift REAL)")
    rows = []
    for _ in range(ARRIVALS):
        when = START + dt.timedelta(minutes=rnd.randrange(365 * 24 * 60))
        rows.append((when.isoformat(sep=" "), rnd.randrange(240),
                     round(rnd.expovariate(0.4), 2)))
    with db:
        db.executemany("INSERT INTO arrival VALUES (?, ?, ?)", rows)
        db.execute("CREATE INDEX arrival_time ON arrival (arrived, parish, gift)")
    db.execute("ANALYZE")


def feast_days():
    rnd = random.Random(7)
    days = sorted(rnd.sample(range(360), FEASTS))
    return [(START + dt.timedelta(days=day)).date() for day in days]


def gifts_of(db, day):
    cursor = db.execute(
        "SELECT parish, gift FROM arrival WHERE date(arrived) = ? ORDER BY arrived, parish, gift",
        (day.isoformat(),))
    return cursor.fetchall()


def resample(gifts, pool, rng, draws=1500):
    observed = gifts.mean()
    sample = rng.choice(pool, size=(draws, len(gifts)))
    return float((sample.mean(axis=1) >= observed).mean())


def main():
    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(os.path.join(folder, "register.sqlite"))
        fill(db)
        pool = np.array([g for (g,) in db.execute("SELECT gift FROM arrival ORDER BY rowid")])
        rng = np.random.default_rng(12)
        rich = []
        visitors = 0
        parishes = set()
        for day in feast_days():
            rows = gifts_of(db, day)
            visitors += len(rows)
            parishes.update(parish for parish, _ in rows)
            gifts = np.array([gift for _, gift in rows])
            chance = resample(gifts, pool, rng)
            if chance < 0.05:
                rich.append((day, gifts.mean(), chance))
        for day, mean, chance in rich[:5]:
            print(f"{day}: mean gift {mean:.3f}, p = {chance:.4f}")
        print(f"{visitors} visitors on {FEASTS} feast days from {len(parishes)} parishes, "
              f"{len(rich)} days with unusual gifts")
        db.close()


if __name__ == "__main__":
    main()
