"""Checks the sums of knotted cords in a catalogue of quipus kept in SQLite."""
import os
import random
import sqlite3
import tempfile

import numpy as np

QUIPUS = 420
CORDS = 760
COLOURS = ["white", "brown", "camel", "blue", "green", "red"]


def cord_rows(rng):
    for quipu in range(QUIPUS):
        for cord in range(CORDS):
            code = f"AS{quipu:05d}-{cord:04d}"
            value = rng.randrange(1000) if cord % 12 else 0
            yield code, rng.choice(COLOURS), value, cord % 12, rng.random()


def build(path):
    con = sqlite3.connect(path)
    con.execute("CREATE TABLE cord (code TEXT, colour TEXT, value INTEGER,"
                " place INTEGER, twist REAL)")
    con.executemany("INSERT INTO cord VALUES (?,?,?,?,?)", cord_rows(random.Random(1532)))
    con.execute("CREATE INDEX cord_code ON cord (code)")
    con.commit()
    con.close()


def cords_of(con, quipu):
    return con.execute(
        "SELECT code, colour, value, place, twist FROM cord"
        " WHERE substr(code, 1, 7) = ? ORDER BY code", (quipu,)).fetchall()


def band_sums(rows):
    sums = []
    for _, _, value, place, _ in rows:
        if place == 0:
            sums.append(0)
        else:
            sums[-1] += value
    return np.array(sums)


def resemblance(values, twist, shifts=36):
    scores = np.zeros(shifts)
    weight = np.abs(np.subtract.outer(twist, twist))
    for shift in range(shifts):
        moved = np.roll(values, shift)
        gap = np.abs(values - moved)
        scores[shift] = (gap * weight[:, shift]).sum()
    return scores


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "quipu.db")
        build(path)
        con = sqlite3.connect(path)
        all_sums, best = [], []
        colours = dict.fromkeys(COLOURS, 0)
        for number in range(QUIPUS):
            rows = cords_of(con, f"AS{number:05d}")
            values = np.array([row[2] for row in rows], dtype=float)
            twist = np.array([row[4] for row in rows])
            all_sums.append(band_sums(rows))
            best.append(int(resemblance(values, twist)[1:].argmin()) + 1)
            for row in rows:
                colours[row[1]] += 1
        con.close()
    sums = np.concatenate(all_sums)
    print(f"{QUIPUS} quipus, {len(sums)} bands, mean sum {sums.mean():.2f}")
    print("commonest shift", int(np.bincount(best).argmax()))
    print("white cords", colours["white"])


if __name__ == "__main__":
    main()
