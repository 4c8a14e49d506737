"""Bootstrap harmonic amplitudes of a tide gauge on selected spring tide days."""
import os
import sqlite3
import tempfile

import numpy as np

ROWS = 300_000
STEP_MIN = 10
DAYS = 75
PERIODS_H = np.array([12.4206, 12.0, 12.6583, 25.8193, 23.9345])


def fill(db, rng):
    start = np.datetime64("2011-03-01T00:00:00")
    times = start + np.arange(ROWS) * np.timedelta64(STEP_MIN, "m")
    text = [s.replace("T", " ") for s in np.datetime_as_string(times, unit="s").tolist()]
    hours = np.arange(ROWS) * STEP_MIN / 60.0
    level = rng.normal(0, 0.06, ROWS)
    for amp, period in zip((1.9, 0.7, 0.4, 0.25, 0.3), PERIODS_H):
        level += amp * np.cos(2 * np.pi * hours / period + rng.uniform(0, 6.28))
    db.execute("CREATE TABLE obs (id INTEGER PRIMARY KEY, obs_time TEXT, level REAL)")
    db.executemany("INSERT INTO obs (obs_time, level) VALUES (?, ?)",
                   zip(text, level.round(4).tolist()))
    db.execute("CREATE INDEX obs_by_time ON obs (obs_time)")
    db.commit()


def day_levels(db, day):
    cur = db.execute(
        "SELECT level FROM obs WHERE date(obs_time) = ? ORDER BY obs_time", (day,))
    return np.array([r[0] for r in cur])


def design(n):
    t = np.arange(n) * STEP_MIN / 60.0
    cols = [np.ones(n)]
    for period in PERIODS_H[[0, 3]]:
        for harmonic in (1, 2):
            w = 2 * np.pi * harmonic / period
            cols += [np.cos(w * t), np.sin(w * t)]
    return np.column_stack(cols)


def amplitudes(coef):
    return np.hypot(coef[1::2], coef[2::2])


def main():
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        db = sqlite3.connect(os.path.join(tmp, "gauge.db"))
        fill(db, rng)
        first = np.datetime64("2011-03-02")
        picked = np.sort(rng.choice(2050, DAYS, replace=False))
        spring = [str(first + int(d)) for d in picked]
        means, widths = [], []
        for day in spring:
            y = day_levels(db, day)
            A = design(len(y))
            coef = np.linalg.lstsq(A, y, rcond=None)[0]
            fit = A @ coef
            res = y - fit
            boot = np.empty((700, 4))
            for b in range(700):
                yb = fit + res[rng.integers(0, len(res), len(res))]
                boot[b] = amplitudes(np.linalg.lstsq(A, yb, rcond=None)[0])
            means.append(boot.mean(axis=0))
            widths.append(np.ptp(boot, axis=0))
        db.close()
    m = np.mean(means, axis=0)
    w = np.mean(widths, axis=0)
    print("days", len(spring))
    print("M2 %.5f  M4 %.5f  O1 %.5f  O2 %.5f" % tuple(m))
    print("widths", np.round(w, 5))


if __name__ == "__main__":
    main()
