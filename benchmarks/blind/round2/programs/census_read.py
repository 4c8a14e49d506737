"""Weighted income tables by district from the parts of a census extract."""
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

PARTS = 110
ROWS = 180_000
KEEP = {"district": "int16", "age": "int8", "weight": "float32", "income": "float64", "members": "int8"}


def write_part(path, blocks, part):
    with open(path, "w") as f:
        f.write("person,district,age,sex,weight,income,members,code\n")
        for k in range(len(blocks)):
            f.write(blocks[(k + part) % len(blocks)])


def text_blocks():
    rng = np.random.default_rng(2011)
    blocks = []
    n = 10_000
    for b in range(ROWS // n):
        cols = zip(range(b * n, (b + 1) * n), rng.integers(0, 300, n), rng.integers(0, 95, n), rng.choice(["f", "m"], n),
                   rng.uniform(0.5, 3, n).round(3), rng.lognormal(10, 0.7, n).round(2), rng.integers(1, 8, n),
                   rng.integers(1000, 9999, n))
        blocks.append("".join("%d,%d,%d,%s,%g,%.2f,%d,C%d\n" % c for c in cols))
    return blocks


def tally(frame):
    frame = frame[frame["age"] >= 18]
    per_head = frame["income"] / np.sqrt(frame["members"])
    w = frame["weight"].astype("float64")
    g = pd.DataFrame({"district": frame["district"], "w": w, "wi": w * per_head, "low": w * (per_head < 9000)})
    return g.groupby("district").sum()


def main():
    total = None
    with tempfile.TemporaryDirectory() as tmp:
        blocks = text_blocks()
        for number in range(PARTS):
            write_part(Path(tmp) / f"part{number:02d}.csv", blocks, number)
        for path in sorted(Path(tmp).glob("part*.csv")):
            part = pd.read_csv(path, usecols=list(KEEP), dtype=KEEP)
            t = tally(part)
            total = t if total is None else total.add(t, fill_value=0)
    mean = total["wi"] / total["w"]
    low = total["low"] / total["w"]
    print(f"{len(total)} districts, mean income {mean.mean():.2f}, spread {mean.std():.2f}, low income {low.mean():.4f}")


if __name__ == "__main__":
    main()
