"""Waiting times of ambulance calls on a city grid, one Parquet file for each day."""
import os
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.ndimage import gaussian_filter

DAYS = 32
CALLS = 60_000
CITY_KM = 24.0
CELLS = 480


def write_days(folder):
    for day in range(DAYS):
        rng = np.random.default_rng(1000 + day)
        east = np.mod(rng.normal(11.0, 5.0, CALLS), CITY_KM)
        north = np.mod(rng.normal(13.0, 4.0, CALLS), CITY_KM)
        second = np.sort(rng.integers(0, 86_400, CALLS))
        wait = 180.0 + 22.0 * np.hypot(east - 12.0, north - 12.0) + rng.exponential(90.0, CALLS)
        table = pa.table({"second": second, "east": east, "north": north, "wait": wait,
                          "grade": rng.integers(1, 5, CALLS)})
        pq.write_table(table, os.path.join(folder, f"calls_{day:02d}.parquet"))


def cell_sums(path):
    count = np.zeros((CELLS, CELLS))
    waited = np.zeros((CELLS, CELLS))
    late = np.zeros(24)
    scale = CELLS / CITY_KM
    for call in pq.read_table(path).to_pylist():
        i = min(int(call["north"] * scale), CELLS - 1)
        j = min(int(call["east"] * scale), CELLS - 1)
        count[i, j] += 1
        waited[i, j] += call["wait"]
        if call["grade"] <= 2 and call["wait"] > 420.0:
            late[call["second"] // 3600] += 1
    return count, waited, late


def surface(count, waited):
    best = None
    for width in (2.0, 4.0, 8.0, 16.0):
        calls = gaussian_filter(count, width)
        total = gaussian_filter(waited, width)
        mean = total / (calls + 1e-9)
        best = mean if best is None else np.where(calls * width * width > 3.0, best, mean)
    return best


def main():
    late = np.zeros(24)
    mean = np.zeros((CELLS, CELLS))
    count_all = np.zeros((CELLS, CELLS))
    with tempfile.TemporaryDirectory() as folder:
        write_days(folder)
        for day in range(DAYS):
            count, waited, late_day = cell_sums(os.path.join(folder, f"calls_{day:02d}.parquet"))
            mean += surface(count, waited) / DAYS
            count_all += count
            late += late_day
    busy = np.unravel_index(np.argmax(gaussian_filter(count_all, 4.0)), count_all.shape)
    print(f"{int(count_all.sum())} calls, busiest cell {busy[0]},{busy[1]}")
    print(f"mean wait at the centre {mean[CELLS // 2, CELLS // 2]:.2f} s, at the busiest cell {mean[busy]:.2f} s")
    print("late urgent calls by hour", late.astype(int)[::4].tolist())


if __name__ == "__main__":
    main()
