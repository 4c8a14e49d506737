"""Herbarium loans: latest determination of each lent sheet and a check of its coordinates."""
import difflib
import json
import os
import random
import shutil
import sqlite3
import tempfile

import numpy as np

SHEETS, DETERMINATIONS, LOANS = 60_000, 150_000, 1_100
REGIONS, VERTICES = 12, 16_000
GENERA = ["Carex", "Salix", "Draba", "Rubus", "Hieracium", "Saxifraga", "Silene", "Viola"]
EPITHETS = ["alpina", "montana", "borealis", "rigida", "tenuis", "glauca", "hirta"]
ACCEPTED = [f"{g} {e}" for g in GENERA for e in EPITHETS]


def build(path):
    rnd = random.Random(4)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE sheets (barcode TEXT PRIMARY KEY, region INTEGER, lon REAL, lat REAL)")
    db.execute("CREATE TABLE determinations (id INTEGER PRIMARY KEY, barcode TEXT, name TEXT, year INTEGER)")
    db.execute("CREATE TABLE regions (code INTEGER PRIMARY KEY, outline TEXT)")
    codes = [f"HBG-{i:07d}" for i in range(SHEETS)]
    db.executemany("INSERT INTO sheets VALUES (?,?,?,?)",
                   ((c, rnd.randrange(REGIONS), rnd.uniform(-3, 3), rnd.uniform(-3, 3)) for c in codes))
    db.executemany("INSERT INTO determinations (barcode, name, year) VALUES (?,?,?)",
                   ((rnd.choice(codes), rnd.choice(ACCEPTED).replace("n", "nn", 1), rnd.randrange(1880, 2024))
                    for _ in range(DETERMINATIONS)))
    angle = np.linspace(0, 2 * np.pi, VERTICES, endpoint=False)
    for code in range(REGIONS):
        radius = 2 + 0.4 * np.sin((code + 2) * angle) + 0.1 * np.cos(40 * angle)
        ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        db.execute("INSERT INTO regions VALUES (?,?)", (code, json.dumps(ring.tolist())))
    db.commit()
    db.close()
    return rnd.sample(codes, LOANS)


def outline(db, code):
    text, = db.execute("SELECT outline FROM regions WHERE code = ?", (code,)).fetchone()
    return np.array(json.loads(text))


def inside(ring, x, y):
    x0, y0 = ring[:, 0], ring[:, 1]
    x1, y1 = np.roll(x0, -1), np.roll(y0, -1)
    straddles = (y0 > y) != (y1 > y)
    cut = x0[straddles] + (y - y0[straddles]) * (x1 - x0)[straddles] / (y1 - y0)[straddles]
    return bool((cut > x).sum() % 2)


def review(path, loans):
    db = sqlite3.connect(path)
    named, misplaced = {}, 0
    for barcode in loans:
        region, lon, lat = db.execute(
            "SELECT region, lon, lat FROM sheets WHERE barcode = ?", (barcode,)).fetchone()
        row = db.execute("SELECT name FROM determinations WHERE barcode = ? "
                         "ORDER BY year DESC, id DESC LIMIT 1", (barcode,)).fetchone()
        if row is not None:
            match = difflib.get_close_matches(row[0], ACCEPTED, n=1)
            name = match[0] if match else "indet."
            named[name] = named.get(name, 0) + 1
        misplaced += not inside(outline(db, region), lon, lat)
    db.close()
    return named, misplaced


def main():
    folder = tempfile.mkdtemp(prefix="herbarium_")
    try:
        path = os.path.join(folder, "collection.db")
        loans = build(path)
        named, misplaced = review(path, loans)
        print("sheets on loan", len(loans), "with a name", sum(named.values()))
        print("outside their region", misplaced)
        print(sorted(named.items(), key=lambda kv: (-kv[1], kv[0]))[:5])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
