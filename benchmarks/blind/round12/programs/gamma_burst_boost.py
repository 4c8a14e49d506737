"""Separate short and long gamma-ray bursts with gradient boosting."""
import lightgbm as lgb
import numpy as np

BURSTS = 140000
FEATURES = 40
ROUNDS = 300


def catalogue(count, rng):
    x = rng.normal(size=(count, FEATURES)).astype(np.float32)
    hard = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + 0.6 * np.abs(x[:, 3] + x[:, 4]) - 0.3 * x[:, 5]
    return x, (hard + rng.normal(0, 0.8, count) > 0.5).astype(np.int32)


def main():
    rng = np.random.default_rng(41)
    x, y = catalogue(BURSTS, rng)
    vx, vy = catalogue(20000, rng)
    train = lgb.Dataset(x, label=y)
    valid = lgb.Dataset(vx, label=vy, reference=train)
    params = {
        "objective": "binary",
        "metric": "auc",
        "learning_rate": 0.05,
        "num_leaves": 127,
        "feature_fraction": 0.8,
        "num_threads": 2,
        "force_col_wise": True,
        "deterministic": True,
        "seed": 3,
        "verbosity": -1,
    }
    seen = {}
    model = lgb.train(params, train, num_boost_round=ROUNDS, valid_sets=[valid],
                      valid_names=["held"], callbacks=[lgb.record_evaluation(seen)])
    auc = seen["held"]["auc"]
    for r in range(94, ROUNDS, 95):
        print(f"round {r + 1} auc {auc[r]:.4f}")
    gain = model.feature_importance("gain")
    print("strongest features", np.argsort(gain)[::-1][:6].tolist())


if __name__ == "__main__":
    main()
