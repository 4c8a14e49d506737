"""Delays of ferries by ship and day from a position log in SQLite."""
import os
import sqlite3
import tempfile
from datetime import date, timedelta

import numpy as np

SHIPS = 12
DAYS = 210
PER_DAY = 240
FIRST = date(2023, 1, 1)


def write_log(path):
    rng = np.random.default_rng(31)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE fix (ship INTEGER, at TEXT, lat REAL, lon REAL, speed REAL, remark TEXT)")
    clock = [f"T{6 * i // 60:02d}:{6 * i % 60:02d}:00" for i in range(PER_DAY)]
    days = [(FIRST + timedelta(d)).isoformat() for d in range(DAYS)]
    for ship in range(SHIPS):
        n = DAYS * PER_DAY
        lat = 54 + 0.3 * np.sin(np.arange(n) / 11 + ship) + rng.normal(0, 0.01, n)
        lon = 10 + 0.5 * np.cos(np.arange(n) / 13 + ship)
        speed = np.abs(rng.normal(14, 5, n))
        db.executemany("INSERT INTO fix VALUES (?, ?, ?, ?, ?, 'ok')", (
            (ship, days[k // PER_DAY] + clock[k % PER_DAY], float(lat[k]), float(lon[k]), float(speed[k]))
            for k in range(n)))
    db.execute("CREATE INDEX by_ship ON fix (ship, at)")
    db.commit()
    db.close()


def one_day(db, ship, day):
    return db.execute(
        "SELECT lat, lon, speed FROM fix WHERE ship = ? AND substr(at, 1, 10) = ? ORDER BY at",
        (ship, day.isoformat())).fetchall()


def delay_of(rows):
    a = np.array(rows)
    leg = np.hypot(np.diff(a[:, 0]), np.diff(a[:, 1]) * 0.59) * 60
    # Dynamic time warping against the mean track gives the lag in minutes.
    plan = np.linspace(0, leg.sum(), 40)
    run = np.concatenate([[0.0], leg.cumsum()])[::6]
    cost = np.abs(run[:, None] - plan[None, :])
    best = np.full((len(run) + 1, len(plan) + 1), np.inf)
    best[0, 0] = 0.0
    for i in range(len(run)):
        row, above = best[i + 1], best[i]
        free = cost[i] + np.minimum(above[1:], above[:-1])
        acc = np.inf
        for j, (f, c) in enumerate(zip(free.tolist(), cost[i].tolist())):
            acc = f if f < acc + c else acc + c
            row[j + 1] = acc
    return best[-1, -1] / len(run), a[:, 2].mean()


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "ferries.db")
        write_log(path)
        db = sqlite3.connect(path)
        lag = np.empty((SHIPS, DAYS, 2))
        for ship in range(SHIPS):
            for d in range(DAYS):
                lag[ship, d] = delay_of(one_day(db, ship, FIRST + timedelta(d)))
        db.close()
    print(f"{SHIPS * DAYS} ship days, mean lag {lag[..., 0].mean():.4f}, worst {lag[..., 0].max():.4f}, "
          f"mean speed {lag[..., 1].mean():.4f}")


if __name__ == "__main__":
    main()
