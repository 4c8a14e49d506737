"""Moth counts from automatic light traps.

Every trap writes a small file for each night it was running.  For each trap
and night we look up the file, score all moths in it and append them to the
table of results.
"""
import csv
import glob
import json
import math
import os
import random
import tempfile

TRAPS = 40
NIGHTS = 85
MOTHS = 80
FAMILIES = ["noctuid", "geometrid", "sphinx", "tineid", "pyralid"]


def write_nights(folder, rng):
    """Files named by serial number, trap and night, as the traps make them."""
    serial = 0
    for night in range(NIGHTS):
        for trap in range(TRAPS):
            serial += rng.randint(1, 9)
            if rng.random() < 0.04:
                continue
            moths = [[rng.choice(FAMILIES), round(rng.uniform(8, 60), 1),
                      round(rng.random(), 3)] for _ in range(rng.randint(40, MOTHS))]
            name = f"{serial:07d}_trap{trap:02d}_night{night:03d}.json"
            with open(os.path.join(folder, name), "w") as f:
                json.dump({"lamp": rng.randint(1, 3), "moths": moths}, f)


def find(folder, trap, night):
    """Path of the file of one trap and night, or None."""
    hits = glob.glob(os.path.join(folder, f"*_trap{trap:02d}_night{night:03d}.json"))
    return hits[0] if hits else None


def score(moth, lamp):
    """Likelihood that the identification is right."""
    family, wing, light = moth
    mean = 18.0 + 7.0 * FAMILIES.index(family)
    z = (wing - mean) / 9.0
    return math.exp(-0.5 * z * z) * (0.4 + 0.6 * light) / (1 + 0.1 * lamp)


def add_result(path, row):
    with open(path, "a", newline="") as f:
        csv.writer(f).writerow(row)


def main():
    rng = random.Random(41)
    with tempfile.TemporaryDirectory() as work:
        folder = os.path.join(work, "nights")
        os.mkdir(folder)
        write_nights(folder, rng)
        table = os.path.join(work, "moths.csv")
        missing = 0
        for trap in range(TRAPS):
            for night in range(NIGHTS):
                path = find(folder, trap, night)
                if path is None:
                    missing += 1
                    continue
                with open(path) as f:
                    data = json.load(f)
                for moth in data["moths"]:
                    row = [trap, night, moth[0], moth[1],
                           f"{score(moth, data['lamp']):.5f}"]
                    add_result(table, row)
        counts = dict.fromkeys(FAMILIES, 0)
        sure = 0
        with open(table, newline="") as f:
            for row in csv.reader(f):
                counts[row[2]] += 1
                sure += float(row[4]) > 0.5
        print(f"trap nights: {TRAPS * NIGHTS}, without file: {missing}")
        print("moths:", counts)
        print(f"sure identifications: {sure} of {sum(counts.values())}")


if __name__ == "__main__":
    main()
