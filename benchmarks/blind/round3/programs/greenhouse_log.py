"""Replay the messages of a greenhouse into SQLite and write the weekly report."""
import os
import sqlite3
import tempfile

import numpy as np

MESSAGES = 1_600
SENSORS = 40
HISTORY = 1_400_000

SCHEMA = """
CREATE TABLE reading (sensor INTEGER, minute INTEGER, kind TEXT, value REAL);
CREATE TABLE alarm (id INTEGER PRIMARY KEY, sensor INTEGER, minute INTEGER, note TEXT);
"""


def past_weeks(rng):
    sensor = rng.integers(0, SENSORS, HISTORY)
    minute = np.sort(rng.integers(0, 60 * 24 * 84, HISTORY))
    wave = 8.0 * np.sin(2 * np.pi * minute / 1440.0)
    value = 19.0 + wave + rng.normal(0, 1.2, HISTORY)
    kinds = ("air", "soil", "leaf")
    return [
        (s, m, kinds[s % 3], v)
        for s, m, v in zip(sensor.tolist(), minute.tolist(), value.round(2).tolist())
    ]


def messages(rng):
    """What arrives while the controller runs: a reading, sometimes an alarm."""
    minute = 60 * 24 * 84
    for _ in range(MESSAGES):
        minute += int(rng.integers(1, 4))
        yield int(rng.integers(0, SENSORS)), minute, round(float(rng.normal(20, 6)), 2)


def replay(db, rng):
    for sensor, minute, value in messages(rng):
        db.execute("INSERT INTO reading VALUES (?, ?, ?, ?)", (sensor, minute, "air", value))
        if value > 31.0:
            db.execute(
                "INSERT INTO alarm (sensor, minute, note) VALUES (?, ?, ?)",
                (sensor, minute, f"hot: {value:.1f}"),
            )
        db.commit()


def weekly(db):
    return db.execute(
        """
        SELECT minute / 10080 AS week, kind, count(*), avg(value), min(value), max(value)
        FROM reading GROUP BY week, kind ORDER BY week, kind
        """
    ).fetchall()


def swings(db):
    """Largest change between neighbouring readings of a sensor, and its spread."""
    return db.execute(
        """
        WITH step AS (
            SELECT sensor, minute,
                   value - lag(value) OVER (PARTITION BY sensor ORDER BY minute, value) AS jump,
                   avg(value) OVER (PARTITION BY sensor ORDER BY minute, value
                                    ROWS BETWEEN 60 PRECEDING AND CURRENT ROW) AS mean
            FROM reading
        )
        SELECT sensor, max(abs(jump)), avg(mean), max(mean) - min(mean)
        FROM step GROUP BY sensor ORDER BY 2 DESC LIMIT 5
        """
    ).fetchall()


def ranks(db):
    return db.execute(
        """
        SELECT hour, sensor, v FROM (
            SELECT minute / 60 % 24 AS hour, sensor, avg(value) AS v,
                   rank() OVER (PARTITION BY minute / 60 % 24 ORDER BY avg(value) DESC) AS r
            FROM reading GROUP BY hour, sensor)
        WHERE r = 1 ORDER BY hour
        """
    ).fetchall()


def main():
    rng = np.random.default_rng(19)
    handle, path = tempfile.mkstemp(suffix=".db", dir=os.environ.get("TMPDIR", "."))
    os.close(handle)
    try:
        db = sqlite3.connect(path)
        db.executescript(SCHEMA)
        db.executemany("INSERT INTO reading VALUES (?, ?, ?, ?)", past_weeks(rng))
        db.commit()
        replay(db, rng)
        print("readings", db.execute("SELECT count(*) FROM reading").fetchone()[0])
        print("alarms", db.execute("SELECT count(*) FROM alarm").fetchone()[0])
        print("weeks", len(weekly(db)) // 3)
        for sensor, jump, mean, spread in swings(db):
            print(f"sensor {sensor:3d}  jump {jump:.2f}  mean {mean:.3f}  spread {spread:.3f}")
        print("warmest sensor by hour:", " ".join(str(row[1]) for row in ranks(db)))
        db.close()
    finally:
        os.remove(path)


if __name__ == "__main__":
    main()
