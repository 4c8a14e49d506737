"""Random search for a LightGBM model of bee-hive weight; each trial runs in its own process."""
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

WORK = Path("hive_trials")
TRIALS = 6


def make_hives(count=24_000):
    rng = np.random.default_rng(15)
    x = rng.standard_normal((count, 30)).astype(np.float32)
    weight = 40 + 3 * np.sin(2 * x[:, 0]) + 2 * x[:, 1] * x[:, 2] + np.abs(x[:, 3]) - x[:, 4]
    weight += 0.7 * rng.standard_normal(count)
    np.savez(WORK / "hives.npz", x=x, weight=weight.astype(np.float32))


def run_trial(number):
    import lightgbm as lgb

    job = json.loads((WORK / f"trial{number}.json").read_text())
    with np.load(WORK / "hives.npz") as f:
        x, weight = f["x"], f["weight"]
    cut = int(0.8 * len(x))
    train = lgb.Dataset(x[:cut], weight[:cut])
    params = dict(job["params"], objective="regression", verbosity=-1, num_threads=2, seed=4, deterministic=True)
    booster = lgb.train(params, train, num_boost_round=job["rounds"])
    error = float(np.sqrt(np.mean((booster.predict(x[cut:]) - weight[cut:]) ** 2)))
    (WORK / f"result{number}.json").write_text(json.dumps({"rmse": error}))


def sample_jobs():
    rng = np.random.default_rng(33)
    for number in range(TRIALS):
        params = {
            "num_leaves": int(rng.choice([15, 31, 47, 63])),
            "learning_rate": float(np.round(rng.uniform(0.03, 0.2), 3)),
            "min_data_in_leaf": int(rng.integers(10, 60)),
            "feature_fraction": float(np.round(rng.uniform(0.6, 1.0), 2)),
        }
        yield number, params, int(rng.integers(12, 40)) * 10


def search():
    WORK.mkdir(exist_ok=True)
    make_hives()
    best = None
    for number, params, rounds in sample_jobs():
        (WORK / f"trial{number}.json").write_text(json.dumps({"params": params, "rounds": rounds}))
        proc = subprocess.Popen([sys.executable, __file__, "--trial", str(number)])
        while proc.poll() is None:
            time.sleep(3)
        if proc.returncode != 0:
            print(f"trial {number} failed")
            continue
        rmse = json.loads((WORK / f"result{number}.json").read_text())["rmse"]
        print(f"trial {number}: {rounds} rounds, {params['num_leaves']} leaves, rmse {rmse:.3f} kg", flush=True)
        if best is None or rmse < best[0]:
            best = (rmse, params)
    print(f"best rmse {best[0]:.3f} kg with {best[1]}")


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--trial":
        run_trial(int(sys.argv[2]))
    else:
        search()
