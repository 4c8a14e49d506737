"""Robust trends of bee hive weight, temperature and humidity."""
import os
import tempfile

import numpy as np
import pandas as pd

HIVES = 1800
PER_HIVE = 400
COLUMNS = ["hive", "day", "weight", "temp", "humidity"]


def write_log(path, rng):
    n = HIVES * PER_HIVE
    hive = rng.permutation(np.repeat(np.arange(HIVES), PER_HIVE))
    day = rng.integers(0, 700, n)
    weight = (38 + 0.01 * day + rng.normal(0, 2, n)).round(2)
    temp = (33 + rng.normal(0, 1.5, n)).round(1)
    hum = (60 - 0.004 * day + rng.normal(0, 6, n)).round(1)
    with open(path, "w") as f:
        f.write("; ".join(COLUMNS) + "\n")
        f.writelines(f"H{h:04d}; {d}; {w}; {t}; {u}\n" for h, d, w, t, u in
                     zip(hive.tolist(), day.tolist(), weight.tolist(),
                         temp.tolist(), hum.tolist()))


def theil_sen(x, y, upper):
    dx = np.subtract.outer(x, x)[upper]
    dy = np.subtract.outer(y, y)[upper]
    ok = dx != 0
    return float(np.median(dy[ok] / dx[ok]))


def main():
    rng = np.random.default_rng(9)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        path = os.path.join(tmp, "scales.txt")
        write_log(path, rng)
        log = pd.read_csv(path, sep=r";\s*", engine="python")

    upper = np.triu_indices(PER_HIVE, 1)
    trends = []
    for hive in log["hive"].unique():
        part = log[log["hive"] == hive]
        day = part["day"].to_numpy(dtype=float)
        trends.append({
            "hive": hive,
            "weight": theil_sen(day, part["weight"].to_numpy(dtype=float), upper),
            "temp": theil_sen(day, part["temp"].to_numpy(dtype=float), upper),
            "humidity": theil_sen(day, part["humidity"].to_numpy(dtype=float), upper),
        })
    table = pd.DataFrame(trends).set_index("hive").sort_index()
    print("rows", len(log), "hives", len(table))
    print("mean trends", ", ".join(f"{c} {table[c].mean():.7f}" for c in table))
    print("spread", ", ".join(f"{c} {table[c].std():.7f}" for c in table))


if __name__ == "__main__":
    main()
