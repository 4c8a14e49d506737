"""Default risk of loans with gradient-boosted trees."""
import os

import lightgbm as lgb
import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

N_LOANS = 360_000
N_NUMBERS = 36
N_BRANCHES = 60
ROUNDS = 260


def make_loans(rng):
    x = rng.normal(size=(N_LOANS, N_NUMBERS)).astype(np.float32)
    branch = rng.integers(0, N_BRANCHES, N_LOANS).astype(np.float32)
    effect = rng.normal(0, 0.5, N_BRANCHES)[branch.astype(int)]
    income, debt, age = x[:, 0], x[:, 1], x[:, 2]
    score = -2.0 + effect + 0.8 * debt - 0.7 * income + 0.5 * debt * (income < 0)
    score += 0.3 * np.sin(2.0 * age) + 0.2 * x[:, 3] * x[:, 4] - 0.3 * np.abs(x[:, 5])
    default = rng.random(N_LOANS) < 1.0 / (1.0 + np.exp(-score))
    x[rng.random(x.shape) < 0.03] = np.nan
    return np.column_stack([x, branch]), default.astype(np.int8)


def main():
    rng = np.random.default_rng(2024)
    x, y = make_loans(rng)
    cut = int(0.8 * N_LOANS)
    names = [f"number_{i}" for i in range(N_NUMBERS)] + ["branch"]
    train = lgb.Dataset(
        x[:cut], y[:cut], feature_name=names, categorical_feature=["branch"], free_raw_data=True
    )
    held = lgb.Dataset(x[cut:], y[cut:], reference=train)
    settings = {
        "objective": "binary",
        "metric": "binary_logloss",
        "num_leaves": 95,
        "learning_rate": 0.05,
        "min_data_in_leaf": 100,
        "feature_fraction": 0.8,
        "num_threads": len(os.sched_getaffinity(0)),
        "force_row_wise": True,
        "deterministic": True,
        "seed": 1,
        "verbose": -1,
    }
    booster = lgb.train(
        settings,
        train,
        num_boost_round=ROUNDS,
        valid_sets=[held],
        valid_names=["held"],
        callbacks=[lgb.log_evaluation(period=65)],
    )
    probability = booster.predict(x[cut:])
    print(f"{N_LOANS} loans, {100 * y.mean():.1f} % default")
    print(f"held-out AUC {roc_auc_score(y[cut:], probability):.4f}")
    print(f"held-out log loss {log_loss(y[cut:], probability):.4f}")
    gain = booster.feature_importance("gain")
    top = np.argsort(gain)[::-1][:4]
    print("most gain:", ", ".join(names[i] for i in top))


if __name__ == "__main__":
    main()
