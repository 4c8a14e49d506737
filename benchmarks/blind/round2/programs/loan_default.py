"""Scores loan applications with boosted trees; early stopping on the Kolmogorov-Smirnov distance."""
import os
import tempfile

import numpy as np
import pandas as pd
import xgboost as xgb

ROWS, COLS = 60_000, 24


def write_applications(path):
    rng = np.random.default_rng(808)
    x = rng.normal(0, 1, (ROWS, COLS)).astype(np.float32)
    x[:, 5] = np.abs(x[:, 5]) ** 1.5
    risk = 0.8 * x[:, 0] - 0.6 * x[:, 5] + 0.7 * x[:, 1] * x[:, 2] + 0.3 * np.sin(3 * x[:, 8]) + rng.logistic(0, 1.2, ROWS)
    d = pd.DataFrame(x.round(3), columns=[f"v{i}" for i in range(COLS)])
    d["default"] = (risk > 1.2).astype(np.int8)
    d.to_csv(path, index=False)


def ks_distance(pred, dmat):
    truth = dmat.get_label()
    bad_total = sum(1 for t in truth if t > 0.5)
    good_total = len(truth) - bad_total
    pairs = sorted(zip(pred, truth), key=lambda p: p[0])
    bad = good = 0
    best = 0.0
    last = None
    for score, t in pairs:
        if last is not None and score != last:
            best = max(best, abs(bad / bad_total - good / good_total))
        if t > 0.5:
            bad += 1
        else:
            good += 1
        last = score
    return "ks", best


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "applications.csv")
        write_applications(path)
        d = pd.read_csv(path, dtype={f"v{i}": np.float32 for i in range(COLS)})
    y = d.pop("default").to_numpy()
    cut = int(0.6 * ROWS)
    dtrain = xgb.DMatrix(d[:cut], y[:cut])
    dvalid = xgb.DMatrix(d[cut:], y[cut:])
    params = dict(objective="binary:logistic", max_depth=8, eta=0.04, subsample=0.8, colsample_bytree=0.8,
                  min_child_weight=5, nthread=2, seed=3, disable_default_eval_metric=1, max_bin=128)
    result = {}
    booster = xgb.train(params, dtrain, 280, evals=[(dvalid, "valid")], custom_metric=ks_distance,
                        maximize=True, early_stopping_rounds=280, evals_result=result, verbose_eval=False)
    curve = np.array(result["valid"]["ks"])
    print(f"best round {booster.best_iteration}, KS {curve.max():.4f}, KS at the end {curve[-1]:.4f}")


if __name__ == "__main__":
    main()
