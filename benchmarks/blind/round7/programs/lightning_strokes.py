"""Group lightning strokes of a storm season into flashes, from the network's database."""
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

N_STROKES = 1_000_000
PAGE = 1_500
GAP_S, RADIUS_KM = 0.5, 10.0


def fill(path):
    rng = np.random.default_rng(5)
    seconds = np.cumsum(rng.exponential(0.4, N_STROKES))
    storm = (np.arange(N_STROKES) // 900) % 60
    east = 40.0 * np.cos(storm) + rng.normal(0, 6.0, N_STROKES)
    north = 40.0 * np.sin(storm) + rng.normal(0, 6.0, N_STROKES)
    current = rng.lognormal(2.7, 0.6, N_STROKES) * np.where(rng.random(N_STROKES) < 0.9, -1, 1)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE stroke (id INTEGER PRIMARY KEY, seconds REAL, east REAL, north REAL, kiloamp REAL)")
    rows = zip(range(N_STROKES), seconds.tolist(), east.tolist(), north.tolist(), current.tolist())
    db.executemany("INSERT INTO stroke VALUES (?, ?, ?, ?, ?)", rows)
    db.commit()
    db.close()


def pages(db):
    """All strokes in order of time, a page at a time (the table does not fit in memory at the institute)."""
    start = 0
    while True:
        rows = db.execute(
            "SELECT id, seconds, east, north, kiloamp FROM stroke "
            "ORDER BY id LIMIT ? OFFSET ?", (PAGE, start)).fetchall()
        if not rows:
            return
        start += len(rows)
        yield np.array(rows)


def flashes_of(page):
    """Flash numbers within a page: a stroke joins the last flash that is near in time and place."""
    number = np.zeros(len(page), dtype=int)
    recent = []
    count = 0
    for i, (second, east, north) in enumerate(page[:, 1:4].tolist()):
        recent = [r for r in recent if second - r[0] < GAP_S]
        for r in recent:
            if (east - r[1]) ** 2 + (north - r[2]) ** 2 < RADIUS_KM ** 2:
                number[i] = r[3]
                r[0] = second
                break
        else:
            number[i] = count
            recent.append([second, east, north, count])
            count += 1
    return number, count


def isolation_of(page):
    """Mean distance to the fifth nearest stroke in place and (scaled) time."""
    points = np.column_stack([page[:, 2:4], 0.05 * page[:, 1]])
    return float(cKDTree(points).query(points, k=6)[0][:, 5].mean())


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "strokes.db"
        fill(path)
        db = sqlite3.connect(path)
        flashes, multiplicity, strongest, isolation = 0, np.zeros(12, dtype=int), 0.0, []
        for page in pages(db):
            number, count = flashes_of(page)
            flashes += count
            per_flash = np.bincount(number, minlength=count)
            multiplicity += np.bincount(np.minimum(per_flash, 11), minlength=12)
            isolation.append(isolation_of(page))
            strongest = max(strongest, float(np.abs(page[:, 4]).max()))
        db.close()
    print("flashes", flashes)
    print("multiplicity", multiplicity.tolist())
    print("strongest %.1f kA, isolation %.3f" % (strongest, np.mean(isolation)))


if __name__ == "__main__":
    main()
