"""Boosted trees that predict the tannin score of wine from infrared bands."""
import numpy as np
import xgboost as xgb

ROWS = 75000
BANDS = 36
ROUNDS = 170


def make_wines(seed=5):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((ROWS, BANDS)).astype(np.float32)
    x[:, 10:20] += 0.5 * x[:, :10]
    score = (np.sin(x[:, 0] * 1.5) + x[:, 1] * x[:, 2] + 0.5 * np.abs(x[:, 12])
             + np.where(x[:, 5] > 0.3, x[:, 7], -x[:, 8]))
    return x, (score + 0.3 * rng.standard_normal(ROWS)).astype(np.float32)


def rmse(booster, matrix):
    error = booster.predict(matrix) - matrix.get_label()
    return float(np.sqrt(np.mean(error ** 2)))


def fit(train, valid, params):
    history = []
    booster = None
    for number in range(ROUNDS):
        booster = xgb.train(params, train, num_boost_round=1, xgb_model=booster)
        if (number + 1) % 10 == 0:
            history.append(rmse(booster, valid))
    return booster, history


def main():
    x, y = make_wines()
    cut = int(0.85 * ROWS)
    train = xgb.DMatrix(x[:cut], label=y[:cut])
    valid = xgb.DMatrix(x[cut:], label=y[cut:])
    params = {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "max_depth": 7,
        "eta": 0.08,
        "subsample": 0.8,
        "colsample_bytree": 0.7,
        "nthread": 2,
        "seed": 3,
    }
    booster, history = fit(train, valid, params)
    for place, value in enumerate(history):
        if place % 4 == 0:
            print(f"round {10 * (place + 1):4d} rmse {value:.4f}")
    gain = booster.get_score(importance_type="gain")
    top = sorted(gain, key=gain.get, reverse=True)[:5]
    print("strongest bands", top)
    print(f"final rmse {rmse(booster, valid):.4f}")


if __name__ == "__main__":
    main()
