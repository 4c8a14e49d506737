"""Seasonal report on the coastal buoys: one line of statistics per buoy."""
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

BUOYS = 900
MONTHS = 6
ROWS_PER_MONTH = 130_000


def export_months(folder, seed=17):
    """What the harbour office sends: one text file a month, '; ' between fields."""
    rng = np.random.default_rng(seed)
    ids = [f"{chr(65 + k % 26)}{k:04d}" for k in range(BUOYS)]
    paths = []
    for month in range(MONTHS):
        who = rng.integers(0, BUOYS, ROWS_PER_MONTH)
        minute = np.sort(rng.integers(0, 43_200, ROWS_PER_MONTH))
        height = rng.gamma(2.5, 0.6, ROWS_PER_MONTH) * (1 + 0.2 * np.cos(month))
        period = 4.0 + 1.6 * height + rng.normal(0, 0.6, ROWS_PER_MONTH)
        temp = 12.0 + 6.0 * np.sin(month / 2.0) + rng.normal(0, 0.8, ROWS_PER_MONTH)
        path = folder / f"month_{month + 1:02d}.txt"
        with open(path, "w") as out:
            out.write("buoy; minute; height; period; temp\n")
            out.writelines(
                f"{ids[w]}; {m}; {h:.2f}; {p:.2f}; {t:.1f}\n"
                for w, m, h, p, t in zip(
                    who.tolist(), minute.tolist(), height.tolist(),
                    period.tolist(), temp.tolist(),
                )
            )
        paths.append(path)
    return paths


def read_month(path, month):
    frame = pd.read_csv(path, sep=r";\s*", engine="python")
    frame["day"] = month * 30.0 + frame["minute"] / 1440.0
    return frame


def return_height(heights, rng, draws=400):
    """Bootstrap of the height that is exceeded once in a thousand readings."""
    n = len(heights)
    picks = heights[rng.integers(0, n, (draws, n))]
    return np.quantile(picks, 0.999, axis=1).mean()


def describe(rows, rng):
    height = rows["height"].to_numpy()
    period = rows["period"].to_numpy()
    day = rows["day"].to_numpy()
    phase = 2 * np.pi * day / 180.0
    design = np.column_stack([np.ones_like(day), day, np.sin(phase), np.cos(phase)])
    trend = np.linalg.lstsq(design, rows["temp"].to_numpy(), rcond=None)[0]
    slope = np.polyfit(height, period, 1)[0]
    return {
        "n": len(rows),
        "h_mean": height.mean(),
        "h_rare": return_height(height, rng),
        "slope": slope,
        "warming": trend[1] * 30.0,
    }


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        paths = export_months(Path(tmp))
        obs = pd.concat(
            [read_month(p, k) for k, p in enumerate(paths)], ignore_index=True
        )
    print(f"{len(obs)} readings of {obs['buoy'].nunique()} buoys")

    rng = np.random.default_rng(0)
    lines = {}
    for buoy in sorted(obs["buoy"].unique()):
        rows = obs[obs["buoy"] == buoy]
        lines[buoy] = describe(rows, rng)
    report = pd.DataFrame.from_dict(lines, orient="index")

    print(report.describe().loc[["mean", "min", "max"]].round(3).to_string())
    print("highest rare wave:", report["h_rare"].idxmax())


if __name__ == "__main__":
    main()
