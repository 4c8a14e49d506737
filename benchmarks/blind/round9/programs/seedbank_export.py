"""Export the accessions of a seed bank page by page and compute viability curves."""
import os
import sqlite3
import tempfile

import numpy as np

ACCESSIONS = 420000
PAGE = 200


def build(path):
    rng = np.random.default_rng(23)
    year = rng.integers(1950, 2024, ACCESSIONS)
    genus = rng.integers(0, 180, ACCESSIONS)
    moisture = np.round(rng.normal(6.0, 1.1, ACCESSIONS), 2)
    sown = rng.integers(40, 200, ACCESSIONS)
    rate = np.exp(-(2024 - year) * 0.004 * np.clip(moisture, 2, None))
    germinated = rng.binomial(sown, np.clip(rate, 0.01, 0.99))
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE accession (id INTEGER PRIMARY KEY, genus TEXT, year INT, "
               "moisture REAL, sown INT, germinated INT, remark TEXT)")
    rows = ((i + 1, "genus_%03d" % g, y, m, s, k, "shelf %d, box %d, checked by curator" % (i % 97, i % 1301))
            for i, (g, y, m, s, k) in enumerate(zip(
                genus.tolist(), year.tolist(), moisture.tolist(), sown.tolist(), germinated.tolist())))
    db.executemany("INSERT INTO accession VALUES (?,?,?,?,?,?,?)", rows)
    db.commit()
    return db


def pages(db):
    """All accessions in order of their number, in pages of the size that the exchange format asks."""
    offset = 0
    while True:
        page = db.execute("SELECT id, genus, year, moisture, sown, germinated FROM accession "
                          "ORDER BY id LIMIT ? OFFSET ?", (PAGE, offset)).fetchall()
        if not page:
            return
        yield page
        offset += PAGE


def main():
    folder = tempfile.mkdtemp(prefix="seedbank_")
    db = build(os.path.join(folder, "bank.db"))
    ages = np.zeros(80)
    sown_by_age = np.zeros(80)
    best = {}
    for page in pages(db):
        table = np.array([r[2:] for r in page])
        age = (2024 - table[:, 0]).astype(int)
        np.add.at(ages, age, table[:, 3])
        np.add.at(sown_by_age, age, table[:, 2])
        for row in page:
            share = row[5] / row[4]
            if share > best.get(row[1], (0.0, 0))[0]:
                best[row[1]] = (share, row[0])
    viable = ages[1:74] / sown_by_age[1:74]
    slope = np.polyfit(np.arange(1, 74), np.log(viable), 1)[0]
    print("accessions:", int((sown_by_age > 0).sum()), "age classes;", len(best), "genera")
    print("loss of viability per year: %.4f" % -slope)
    print("half life: %.1f years" % (np.log(2) / -slope))


if __name__ == "__main__":
    main()
