"""Search for boosting settings that predict the sugar of grape must."""
import itertools

import lightgbm as lgb
import numpy as np

ROWS = 48000
FEATURES = 240
ROUNDS = 18


def make_must(seed=8):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((ROWS, FEATURES))
    x[:, 40:80] = np.exp(0.4 * x[:, 40:80])
    sugar = (2 * x[:, 0] + x[:, 1] * x[:, 41] + np.abs(x[:, 2])
             + 0.7 * np.sin(2 * x[:, 3]) + 0.5 * rng.standard_normal(ROWS))
    return x, sugar


def settings():
    leaves = (15, 31)
    rates = (0.15, 0.3)
    ridge = (0.0, 5.0)
    fractions = (0.6, 1.0)
    for leaf, rate, l2, part in itertools.product(leaves, rates, ridge, fractions):
        yield {
            "objective": "regression",
            "num_leaves": leaf,
            "learning_rate": rate,
            "lambda_l2": l2,
            "feature_fraction": part,
            "num_threads": 2,
            "force_col_wise": True,
            "deterministic": True,
            "verbosity": -1,
            "seed": 1,
        }


def main():
    x, sugar = make_must()
    cut = int(0.8 * ROWS)
    x_train, y_train = x[:cut], sugar[:cut]
    x_valid, y_valid = x[cut:], sugar[cut:]
    results = []
    for params in settings():
        train = lgb.Dataset(x_train, y_train)
        booster = lgb.train(params, train, num_boost_round=ROUNDS)
        error = booster.predict(x_valid) - y_valid
        rmse = float(np.sqrt(np.mean(error ** 2)))
        results.append((rmse, params["num_leaves"], params["learning_rate"],
                        params["lambda_l2"], params["feature_fraction"]))
    results.sort()
    print("rmse    leaves rate  l2   fraction")
    for rmse, leaf, rate, l2, part in results[:5]:
        print(f"{rmse:.4f} {leaf:6d} {rate:5.2f} {l2:4.1f} {part:5.2f}")
    print(f"worst {results[-1][0]:.4f} of {len(results)} settings")


if __name__ == "__main__":
    main()
