"""Predict the sugar of apples at harvest with LightGBM; the rounds are chosen by early stopping."""
import lightgbm as lgb
import numpy as np

TREES, COLUMNS = 300_000, 28
NAMES = ([f"temp_{k}" for k in range(8)] + [f"rain_{k}" for k in range(8)]
         + [f"soil_{k}" for k in range(6)] + [f"tree_{k}" for k in range(5)] + ["sort"])


def orchard():
    rng = np.random.default_rng(6)
    x = rng.normal(0, 1, (TREES, COLUMNS)).astype(np.float32)
    sort = rng.integers(0, 24, TREES)
    x[:, -1] = sort
    of_sort = rng.normal(0, 1, 24)
    warm = x[:, :8] @ np.linspace(0.1, 0.9, 8)
    wet = x[:, 8:16] @ np.linspace(0.8, 0.1, 8)
    sugar = (11 + 0.6 * of_sort[sort] + 0.8 * np.tanh(warm) - 0.5 * np.tanh(wet)
             + 0.4 * x[:, 16] * x[:, 17] - 0.3 * np.abs(x[:, 22]) + 0.2 * warm * (sort % 3)
             + rng.normal(0, 0.5, TREES))
    return x, sugar


def main():
    x, sugar = orchard()
    cut = int(0.85 * TREES)
    train = lgb.Dataset(x[:cut], label=sugar[:cut], feature_name=NAMES,
                        categorical_feature=["sort"])
    valid = lgb.Dataset(x[cut:], label=sugar[cut:], reference=train)
    settings = {"objective": "regression", "metric": "rmse", "learning_rate": 0.06,
                "num_leaves": 95, "min_data_in_leaf": 40, "feature_fraction": 0.9,
                "num_threads": 2, "verbose": -1, "seed": 2}
    history = {}
    model = lgb.train(settings, train, num_boost_round=300, valid_sets=[valid],
                      valid_names=["valid"],
                      callbacks=[lgb.early_stopping(30, verbose=False),
                                 lgb.record_evaluation(history)])
    curve = history["valid"]["rmse"]
    for number in range(0, len(curve), 60):
        print(f"round {number:3d}: error {curve[number]:.4f}")
    print(f"best round {model.best_iteration}: error {min(curve):.4f}")

    guess = model.predict(x[cut:], num_iteration=model.best_iteration)
    truth = sugar[cut:]
    edges = np.quantile(truth, [0.25, 0.5, 0.75])
    for quarter in range(4):
        inside = np.digitize(truth, edges) == quarter
        bias = float(np.mean(guess[inside] - truth[inside]))
        print(f"quarter {quarter + 1}: {inside.sum()} trees, bias {bias:+.2f}")
    gain = dict(zip(NAMES, model.feature_importance("gain")))
    print("by gain:", ", ".join(sorted(gain, key=gain.get, reverse=True)[:5]))


if __name__ == "__main__":
    main()
