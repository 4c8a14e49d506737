"""Homing time of racing pigeons from weather and loft records, boosted one round at a time."""
import numpy as np
import xgboost as xgb

FLIGHTS, N_FEATURES = 63000, 40
ROUNDS = 180
PARAMS = {
    "objective": "reg:squarederror",
    "eta": 0.08,
    "max_depth": 6,
    "tree_method": "hist",
    "nthread": 2,
    "seed": 4,
}


def flights(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(FLIGHTS, N_FEATURES)).astype(np.float32)
    distance = rng.uniform(40, 600, FLIGHTS)
    tail = rng.normal(0, 5, FLIGHTS)
    x[:, 0], x[:, 1] = distance, tail
    speed = 65 + 1.4 * tail + 4 * np.tanh(x[:, 2]) - 3 * (x[:, 3] > 1.0) * x[:, 4]
    speed = np.clip(speed, 20, None)
    hours = distance / speed + 0.3 * rng.gamma(1.5, 1.0, FLIGHTS)
    return x, hours.astype(np.float32)


def boost(dtrain, dtest, truth):
    curve = []
    booster = None
    for _ in range(ROUNDS):
        booster = xgb.train(PARAMS, dtrain, num_boost_round=1, xgb_model=booster)
        guess = booster.predict(dtest)
        curve.append(float(np.sqrt(np.mean((guess - truth) ** 2))))
    return booster, curve


def main():
    x, y = flights(21)
    dtrain = xgb.DMatrix(x[:60000], y[:60000])
    dtest = xgb.DMatrix(x[60000:], y[60000:])
    booster, curve = boost(dtrain, dtest, y[60000:])
    print(f"flights {FLIGHTS}, mean time home {y.mean():.2f} h")
    for r in (1, 20, 60, 120, ROUNDS):
        print(f"round {r:4d}  rmse {curve[r - 1]:.4f} h")
    scores = booster.get_score(importance_type="gain")
    top = sorted(scores, key=scores.get, reverse=True)[:4]
    print("top features", top)


if __name__ == "__main__":
    main()
