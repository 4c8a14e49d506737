"""Quantile forecasts of building energy use with LightGBM (10, 50 and 90 per cent)."""
import os
import tempfile

import lightgbm as lgb
import numpy as np
import pandas as pd

HOURS, BUILDINGS = 3000, 60


def write_meters(path):
    rng = np.random.default_rng(66)
    n = HOURS * BUILDINGS
    hour = np.tile(np.arange(HOURS), BUILDINGS)
    b = np.repeat(np.arange(BUILDINGS), HOURS)
    size = rng.lognormal(3, 0.6, BUILDINGS)[b]
    temp = 12 + 9 * np.sin(hour / 8760 * 2 * np.pi) + 5 * np.sin(hour / 24 * 2 * np.pi) + rng.normal(0, 1.5, n)
    work = ((hour // 24) % 7 < 5) & (hour % 24 > 6) & (hour % 24 < 19)
    use = size * (1 + 0.9 * work) + 0.6 * size ** 0.7 * np.abs(temp - 17) + rng.gamma(2, 0.06 * size)
    f = pd.DataFrame({"hour": hour % 24, "weekday": (hour // 24) % 7, "temp": temp, "size": size, "use": use})
    for k in range(24):
        f[f"lag{k}"] = np.roll(temp, k + 1) + rng.normal(0, 0.5, n)
    f.astype(np.float32).to_parquet(path)


def pinball(q, y, p):
    e = y - p
    return float(np.mean(np.maximum(q * e, (q - 1) * e)))


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "meters.parquet")
        write_meters(path)
        f = pd.read_parquet(path)
    y = f.pop("use").to_numpy()
    rng = np.random.default_rng(0)
    held = rng.random(len(f)) < 0.15
    common = dict(max_bin=255, verbosity=-1, num_threads=2, num_leaves=96, learning_rate=0.08,
                  feature_fraction=0.9, seed=2, deterministic=True, force_row_wise=True, metric="quantile")
    train = lgb.Dataset(f[~held], y[~held], params=dict(max_bin=255, verbosity=-1), free_raw_data=False).construct()
    valid = lgb.Dataset(f[held], y[held], reference=train, free_raw_data=False).construct()
    for q in (0.1, 0.5, 0.9):
        model = lgb.train(dict(common, objective="quantile", alpha=q), train, num_boost_round=120, valid_sets=[valid],
                          callbacks=[lgb.early_stopping(30, verbose=False)])
        p = model.predict(f[held], num_iteration=model.best_iteration)
        print(f"quantile {q}: rounds {model.best_iteration}, pinball {pinball(q, y[held], p):.4f}, "
              f"below {np.mean(y[held] < p):.3f}", flush=True)


if __name__ == "__main__":
    main()
