"""River gauge: smoothed levels and flood marks from a logger's CSV export."""
import os
import tempfile

import numpy as np
import pandas as pd

READINGS = 45_000
WINDOWS = ["3h", "12h", "48h", "7D", "14D"]
MARKS = np.linspace(0.3, 0.98, 14).round(3)


def export_log(path, seed=23):
    rng = np.random.default_rng(seed)
    gaps = rng.integers(40, 200, READINGS)
    when = pd.Timestamp("2021-10-01") + pd.to_timedelta(np.cumsum(gaps), unit="s")
    t = np.cumsum(gaps) / 86_400.0
    storm = np.zeros(READINGS)
    for start in rng.uniform(0, t[-1], 20):
        rise = np.clip(t - start, 0, None)
        storm += rng.gamma(2.0, 0.35) * rise * np.exp(-rise / 0.6)
    log = pd.DataFrame({"stamp": when.strftime("%d-%b-%Y %H:%M:%S")})
    for name, gain in (("upper", 1.0), ("weir", 0.8), ("mill", 1.3), ("mouth", 0.6)):
        noise = rng.normal(0, 0.02, READINGS)
        log[name] = (1.2 + gain * storm + 0.1 * np.sin(2 * np.pi * t) + noise).round(3)
    log.to_csv(path, index=False)


def load_log(path):
    log = pd.read_csv(path)
    log["stamp"] = pd.to_datetime(log["stamp"], format="mixed", dayfirst=True)
    return log.set_index("stamp")


def flood_marks(levels):
    rows = []
    for place in levels.columns:
        series = levels[place]
        for window in WINDOWS:
            rolling = series.rolling(window)
            for q in MARKS:
                mark = rolling.quantile(q)
                over = series > mark + 0.15
                starts = over & ~over.shift(fill_value=False)
                rows.append((place, window, q, mark.max(), int(starts.sum())))
    return pd.DataFrame(rows, columns=["place", "window", "q", "highest", "alarms"])


def recession(levels):
    """How fast the level falls after a peak: median ratio over six hours."""
    hourly = levels.resample("1h").median().interpolate()
    ratio = (hourly.shift(-6) - 1.1) / (hourly - 1.1)
    peaks = hourly > hourly.rolling(49, center=True, min_periods=1).quantile(0.97)
    return ratio.where(peaks).median()


def main():
    handle, path = tempfile.mkstemp(suffix=".csv", dir=os.environ.get("TMPDIR", "."))
    os.close(handle)
    try:
        export_log(path)
        levels = load_log(path)
    finally:
        os.remove(path)
    print(f"{len(levels)} readings, {levels.index[0]} to {levels.index[-1]}")

    marks = flood_marks(levels)
    table = marks.pivot_table(index="place", columns="window", values="alarms", aggfunc="sum")
    print(table.to_string())
    print(marks.groupby("q")["highest"].max().round(3).to_string())
    print("recession:", recession(levels).round(3).to_dict())


if __name__ == "__main__":
    main()
