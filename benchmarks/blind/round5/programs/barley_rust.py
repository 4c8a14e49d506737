"""Boosted trees for the spread of rust in barley fields, with a learning curve."""
import os

import numpy as np
import xgboost as xgb

WORK = os.path.join(os.environ.get("TMPDIR", "."), "barley_rust")
FIELDS, COLUMNS = 100_000, 30
ROUNDS = 150
SETTINGS = {"objective": "reg:squarederror", "eta": 0.08, "max_depth": 7, "lambda": 2.0,
            "tree_method": "hist", "nthread": 2, "seed": 1}


def fields():
    rng = np.random.default_rng(55)
    x = rng.normal(0, 1, (FIELDS, COLUMNS)).astype(np.float32)
    wet = np.clip(x[:, 0] + 0.4 * x[:, 1], -2, 3)
    warm = np.exp(-((x[:, 2] - 0.4) ** 2))
    near = 1 / (1 + np.exp(-3 * x[:, 3]))
    rust = 10 * near * warm * np.clip(wet, 0, None) + x[:, 4] * x[:, 5] + np.abs(x[:, 6])
    rust += rng.normal(0, 0.8, FIELDS)
    x[rng.random(x.shape) < 0.03] = np.nan
    return x, rust.astype(np.float32)


def rmse(guess, truth):
    return float(np.sqrt(np.mean((guess - truth) ** 2)))


def grow(train, valid):
    """The boosted model and its error on the valid fields after each round."""
    booster, curve = None, []
    truth = valid.get_label()
    for _ in range(ROUNDS):
        booster = xgb.train(SETTINGS, train, num_boost_round=1, xgb_model=booster)
        curve.append(rmse(booster.predict(valid), truth))
    return booster, curve


def plateau(curve, tolerance=0.002):
    """The first round after which ten more rounds bring less than the tolerance."""
    for number in range(len(curve) - 10):
        if curve[number] - curve[number + 10] < tolerance:
            return number
    return len(curve) - 1


def main():
    os.makedirs(WORK, exist_ok=True)
    x, rust = fields()
    cut = int(0.8 * FIELDS)
    train = xgb.DMatrix(x[:cut], label=rust[:cut])
    valid = xgb.DMatrix(x[cut:], label=rust[cut:])
    booster, curve = grow(train, valid)
    for number in range(0, ROUNDS, 25):
        print(f"round {number:3d}: error {curve[number]:.3f}")
    print(f"round {ROUNDS - 1:3d}: error {curve[-1]:.3f}, flat from round {plateau(curve)}")
    gains = booster.get_score(importance_type="gain")
    best = sorted(gains, key=gains.get, reverse=True)[:6]
    print("most useful columns:", ", ".join(best))
    booster.save_model(os.path.join(WORK, "rust.json"))


if __name__ == "__main__":
    main()
