"""Day-by-day summary of a bird ringing season.

Captures are kept in a SQLite file.  For every day of the year the report
lists captures per site and a bootstrap interval of the mean body mass.
"""
import datetime as dt
import os
import sqlite3
import tempfile

import numpy as np

CAPTURES = 200_000
YEAR = 2022
SITES = ["reedbed", "dune", "orchard", "salt marsh", "quarry"]
WING = {"reedbed": 66, "dune": 71, "orchard": 78, "salt marsh": 69, "quarry": 83}


def build(path, rng):
    con = sqlite3.connect(path)
    con.execute("CREATE TABLE captures (ring TEXT, taken_at TEXT, site TEXT,"
                " wing REAL, mass REAL)")
    start = dt.datetime(YEAR, 1, 1)
    minutes = rng.integers(0, 365 * 24 * 60, CAPTURES)
    sites = rng.integers(0, len(SITES), CAPTURES)
    mass = rng.normal(14.0, 1.6, CAPTURES)
    rows = []
    for i in range(CAPTURES):
        site = SITES[sites[i]]
        when = start + dt.timedelta(minutes=int(minutes[i]))
        rows.append((f"AV{i % 90000:05d}", when.strftime("%Y-%m-%d %H:%M:%S"),
                     site, WING[site] + float(mass[i]) / 7.0, float(mass[i])))
    with con:
        con.executemany("INSERT INTO captures VALUES (?, ?, ?, ?, ?)", rows)
        con.execute("CREATE INDEX captures_taken ON captures (taken_at)")
    return con


def captures_of(con, day):
    """Site and mass of all captures on one day."""
    sql = ("SELECT site, mass FROM captures"
           " WHERE substr(taken_at, 1, 10) = ? ORDER BY taken_at, rowid")
    return con.execute(sql, (day.isoformat(),)).fetchall()


def mass_interval(mass, rng):
    """95 % bootstrap interval of the mean mass."""
    pick = rng.integers(0, len(mass), (4000, len(mass)))
    means = mass[pick].mean(axis=1)
    return np.percentile(means, [2.5, 97.5])


def main():
    rng = np.random.default_rng(77)
    boot = np.random.default_rng(78)
    with tempfile.TemporaryDirectory() as work:
        con = build(os.path.join(work, "ringing.db"), rng)
        day = dt.date(YEAR, 1, 1)
        per_site = dict.fromkeys(SITES, 0)
        widths, busiest = [], (0, None)
        while day.year == YEAR:
            rows = captures_of(con, day)
            mass = np.array([m for _, m in rows])
            low, high = mass_interval(mass, boot)
            widths.append(high - low)
            for site, _ in rows:
                per_site[site] += 1
            busiest = max(busiest, (len(rows), day.isoformat()))
            day += dt.timedelta(days=1)
        con.close()
    print("captures per site:", per_site)
    print(f"busiest day: {busiest[1]} with {busiest[0]} captures")
    print(f"mean width of the mass interval: {np.mean(widths):.4f} g")


if __name__ == "__main__":
    main()
