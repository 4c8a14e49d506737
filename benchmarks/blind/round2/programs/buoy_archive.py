"""Joins the hourly logs of drifting buoys (one CSV file each day) and sums up wave climate."""
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

DAYS = 900
PER_DAY = 520


def write_logs(folder):
    rng = np.random.default_rng(17)
    start = pd.Timestamp("2019-01-01")
    base = rng.normal(size=(PER_DAY, 6))
    lines = [",".join(f"{v:.3f}" for v in row) for row in np.abs(base) * [2, 6, 180, 12, 15, 1]]
    for d in range(DAYS):
        k = int(rng.integers(PER_DAY))
        text = "\n".join(f"B{(i * 7 + d) % 40:02d},{(start + pd.Timedelta(days=d)).date()},{row}"
                         for i, row in enumerate(lines[k:] + lines[:k]))
        (folder / f"log_{d:04d}.csv").write_text("buoy,date,hs,tp,dir,wind,sst,curr\n" + text + "\n")


def read_all(folder):
    table = pd.DataFrame()
    for f in sorted(folder.glob("log_*.csv")):
        day = pd.read_csv(f)
        day["steep"] = day["hs"] / (1.56 * day["tp"] ** 2 + 0.1)
        table = pd.concat([table, day], ignore_index=True)
    return table


def climate(table):
    out = {}
    for buoy, g in table.groupby("buoy"):
        roll = g["hs"].rolling(240, min_periods=60)
        out[buoy] = {
            "hs90": g["hs"].quantile(0.9),
            "calm": float((roll.max() < 4.5).mean()),
            "rough": float((roll.quantile(0.8) > 2.6).mean()),
            "steep": g["steep"].median(),
        }
    return pd.DataFrame(out).T


def main():
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        write_logs(folder)
        table = read_all(folder)
    c = climate(table)
    print(f"{len(table)} rows, {len(c)} buoys")
    print(c.mean().round(4).to_string())


if __name__ == "__main__":
    main()
