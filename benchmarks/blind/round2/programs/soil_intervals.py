"""Bootstrap intervals for soil carbon predicted by extra trees, several forests at a time."""
import os
import tempfile

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.ensemble import ExtraTreesRegressor

SITES = 1800
BANDS = 24
ROUNDS = 24


def write_survey(path):
    rng = np.random.default_rng(555)
    refl = rng.normal(0, 1, (SITES, BANDS)).cumsum(1)
    depth = rng.uniform(0, 100, SITES)
    carbon = 3 + np.tanh(refl[:, 3] - refl[:, 10]) + 0.1 * refl[:, 20] - 0.015 * depth + rng.normal(0, 0.3, SITES)
    d = pd.DataFrame(refl.round(5), columns=[f"b{i:02d}" for i in range(BANDS)])
    d["depth"], d["carbon"] = depth.round(2), carbon.round(4)
    d.to_csv(path, index=False)


def one_round(x, y, grid, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(x), len(x))
    forest = ExtraTreesRegressor(220, min_samples_leaf=2, n_jobs=1, random_state=seed)
    forest.fit(x[rows], y[rows])
    return forest.predict(grid)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "survey.csv")
        write_survey(path)
        d = pd.read_csv(path)
    y = d.pop("carbon").to_numpy()
    x = d.to_numpy(np.float32)
    grid = x[-200:]
    tasks = (delayed(one_round)(x[:-200], y[:-200], grid, seed) for seed in range(ROUNDS))
    draws = np.stack(Parallel(n_jobs=2, pre_dispatch="2*n_jobs")(tasks))
    lo, hi = np.quantile(draws, [0.05, 0.95], axis=0)
    inside = np.mean((y[-200:] > lo) & (y[-200:] < hi))
    print(f"mean width {np.mean(hi - lo):.3f}, share inside {inside:.2f}, "
          f"rmse {np.sqrt(np.mean((draws.mean(0) - y[-200:]) ** 2)):.3f}")


if __name__ == "__main__":
    main()
