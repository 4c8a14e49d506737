"""Asthma attacks from inhaler use: a sweep over boosted trees on the two cores."""
import itertools

import numpy as np
import xgboost as xgb
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

PATIENT_WEEKS, SIGNALS = 36000, 30
ROUNDS = 150


def diary(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(PATIENT_WEEKS, SIGNALS)).astype(np.float32)
    puffs = rng.poisson(3.0, PATIENT_WEEKS)
    pollen = rng.gamma(1.5, 1.0, PATIENT_WEEKS)
    x[:, 0], x[:, 1] = puffs, pollen
    score = 0.25 * puffs + 0.3 * pollen * (x[:, 2] > 0) + 0.5 * np.sin(2 * x[:, 3]) - 2.6
    y = (rng.random(PATIENT_WEEKS) < 1 / (1 + np.exp(-score))).astype(np.float32)
    return x, y


def trial(x, y, depth, eta, child):
    cut = int(0.8 * len(y))
    train = xgb.DMatrix(x[:cut], y[:cut], nthread=1)
    test = xgb.DMatrix(x[cut:], nthread=1)
    params = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": depth,
              "eta": eta, "min_child_weight": child, "subsample": 0.8, "nthread": 1, "seed": 5}
    booster = xgb.train(params, train, num_boost_round=ROUNDS)
    return roc_auc_score(y[cut:], booster.predict(test))


def main():
    x, y = diary(47)
    grid = list(itertools.product([5, 7], [0.05, 0.1, 0.2], [1, 10]))
    grid.sort(key=lambda setting: -setting[0])
    scores = Parallel(n_jobs=2, batch_size=1)(
        delayed(trial)(x, y, depth, eta, child) for depth, eta, child in grid)
    print(f"patient weeks {PATIENT_WEEKS}, attacks {y.mean():.3f}, settings {len(grid)}")
    for setting, score in sorted(zip(grid, scores), key=lambda pair: -pair[1])[:4]:
        print(f"depth {setting[0]}  eta {setting[1]:.2f}  child weight {setting[2]:2d}  "
              f"AUC {score:.4f}")


if __name__ == "__main__":
    main()
