"""Delay of flights: read the needed columns of a Parquet table once and boost on them."""
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xgboost as xgb

N_FLIGHTS = 400_000
ROUNDS = 240
USED = ["hour", "weekday", "distance", "wind", "visibility", "turnaround", "load", "age",
        "queue_in", "queue_out", "rain", "temperature"]


def write_table(path, rng):
    n = N_FLIGHTS
    columns = {
        "hour": rng.integers(5, 24, n).astype(np.float32),
        "weekday": rng.integers(0, 7, n).astype(np.float32),
        "distance": rng.gamma(3.0, 400.0, n).astype(np.float32),
    }
    for name in USED[3:]:
        columns[name] = rng.normal(size=n).astype(np.float32)
    for number in range(20):
        columns[f"code_{number:02d}"] = rng.integers(0, 10_000, n).astype(np.int32)
    delay = (
        2.0 * np.maximum(columns["hour"] - 15, 0)
        + 6.0 * np.maximum(columns["wind"], 0) ** 2
        + 5.0 * np.maximum(columns["queue_out"] + columns["rain"], 0)
        - 4.0 * np.minimum(columns["turnaround"], 1.0)
        + 3.0 * columns["queue_in"] * (columns["visibility"] < 0)
        + rng.exponential(6.0, n)
    )
    columns["delay"] = delay.astype(np.float32)
    pq.write_table(pa.table(columns), path, row_group_size=50_000)


def read_table(path):
    table = pq.read_table(path, columns=USED + ["delay"])
    x = np.column_stack([table[name].to_numpy() for name in USED])
    return x, table["delay"].to_numpy()


def main():
    rng = np.random.default_rng(99)
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "flights.parquet"
        write_table(path, rng)
        print(f"table of {path.stat().st_size / 1e6:.0f} MB written", flush=True)
        x, y = read_table(path)

    cut = int(0.85 * len(x))
    train = xgb.QuantileDMatrix(x[:cut], y[:cut], feature_names=USED)
    held = xgb.QuantileDMatrix(x[cut:], y[cut:], feature_names=USED, ref=train)
    settings = {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "max_depth": 9,
        "eta": 0.06,
        "subsample": 0.9,
        "min_child_weight": 10,
        "seed": 5,
    }
    scores = {}
    booster = xgb.train(
        settings, train, ROUNDS, evals=[(held, "held")], evals_result=scores, verbose_eval=60
    )
    error = booster.predict(held) - y[cut:]
    print(f"held-out rmse {scores['held']['rmse'][-1]:.3f}, mean absolute {np.abs(error).mean():.3f}")
    gain = booster.get_score(importance_type="gain")
    print("most gain:", ", ".join(sorted(gain, key=gain.get, reverse=True)[:4]))


if __name__ == "__main__":
    main()
