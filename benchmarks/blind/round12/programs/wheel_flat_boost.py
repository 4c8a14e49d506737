"""Detect flats on train wheels from axle-box records with boosted trees."""
import numpy as np
import xgboost as xgb

AXLES = 40000
BANDS = 30
ROUNDS = 200


def axle_boxes(rng, count):
    x = rng.gamma(2.0, 1.0, size=(count, BANDS)).astype(np.float32)
    hit = 0.6 * x[:, 3] * (x[:, 7] > 2.5) + 0.4 * np.abs(x[:, 11] - x[:, 12]) - 0.2 * x[:, 20]
    y = (hit + rng.normal(0, 0.5, count) > 1.4).astype(np.float32)
    return x, y


def main():
    rng = np.random.default_rng(19)
    x, y = axle_boxes(rng, AXLES)
    vx, vy = axle_boxes(rng, 12000)
    dtrain = xgb.DMatrix(x, label=y)
    dvalid = xgb.DMatrix(vx, label=vy)
    params = {
        "objective": "binary:logistic",
        "eval_metric": "logloss",
        "tree_method": "hist",
        "max_depth": 6,
        "eta": 0.06,
        "nthread": 2,
        "seed": 4,
    }
    booster = None
    history = []
    for r in range(ROUNDS):
        seen = {}
        booster = xgb.train(params, dtrain, num_boost_round=1, xgb_model=booster,
                            evals=[(dvalid, "valid")], evals_result=seen, verbose_eval=False)
        history.append(seen["valid"]["logloss"][-1])
        if r % 65 == 64:
            print(f"round {r + 1} logloss {history[-1]:.4f}")
    best = int(np.argmin(history))
    flat = booster.predict(dvalid) > 0.5
    print(f"best round {best + 1} logloss {history[best]:.4f}")
    print(f"flats found {np.mean(flat[vy == 1]):.3f}, false alarms {np.mean(flat[vy == 0]):.3f}")


if __name__ == "__main__":
    main()
