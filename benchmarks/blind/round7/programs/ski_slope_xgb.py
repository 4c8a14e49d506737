"""Boosted model of avalanche-control closures of ski slopes, with a cost-based stop rule."""
import numpy as np
import xgboost as xgb

DAYS, SIGNALS, ROUNDS = 60000, 50, 75
PARAMS = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 6,
          "eta": 0.08, "subsample": 0.9, "nthread": 2, "seed": 3, "verbosity": 0}


def slope_days(n, rng):
    """Snow, wind and temperature signals of the last days before a decision."""
    x = rng.normal(0, 1, (n, SIGNALS))
    for lag in range(1, SIGNALS):
        x[:, lag] = 0.5 * x[:, lag - 1] + 0.87 * x[:, lag]
    load = np.maximum(x[:, 3], 0) * np.maximum(x[:, 9], 0) + 0.6 * x[:, 20] - 0.4 * x[:, 33]
    closed = load + rng.normal(0, 0.7, n) > 0.8
    return x, closed.astype(int)


def closure_cost(probability, closed):
    """A missed closure is twenty times as dear as a needless one."""
    best = np.inf
    for threshold in np.linspace(0.02, 0.5, 25):
        shut = probability > threshold
        cost = 20.0 * np.sum(closed & ~shut) + np.sum(~closed & shut)
        best = min(best, cost / len(closed))
    return best


def main():
    rng = np.random.default_rng(31)
    x, y = slope_days(DAYS, rng)
    val_x, val_y = slope_days(6000, rng)
    dval = xgb.DMatrix(val_x, label=val_y)
    booster = None
    best_cost, best_round = np.inf, 0
    for boosting_round in range(1, ROUNDS + 1):
        dtrain = xgb.DMatrix(x, label=y)
        booster = xgb.train(PARAMS, dtrain, num_boost_round=1, xgb_model=booster)
        cost = closure_cost(booster.predict(dval), val_y.astype(bool))
        if cost < best_cost - 1e-5:
            best_cost, best_round = cost, boosting_round
        if boosting_round % 15 == 0:
            print(f"round {boosting_round}: cost {cost:.4f} (best {best_cost:.4f} at {best_round})")
        if boosting_round - best_round > 60:
            break
    print(f"{booster.num_boosted_rounds()} trees, cost {best_cost:.4f}")


if __name__ == "__main__":
    main()
