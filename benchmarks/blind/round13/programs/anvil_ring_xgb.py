"""Judge the hardness of anvils from the overtones of their ring with gradient boosting."""
import numpy as np
import xgboost as xgb

ANVILS = 220_000
TONES = 40
ROUNDS = 260


def make_anvils(count, seed):
    rng = np.random.default_rng(seed)
    tones = rng.gamma(2.0, 1.0, (count, TONES)).astype(np.float32)
    hard = 50 + 4 * np.log(tones[:, 0]) - 3 * np.sqrt(tones[:, 1] * tones[:, 2])
    hard += 2 * np.sin(tones[:, 3:8]).sum(1) + rng.normal(0, 1.0, count)
    return tones, hard.astype(np.float32)


def main():
    tones, hard = make_anvils(ANVILS, 1)
    tones_val, hard_val = make_anvils(20_000, 2)
    train = xgb.QuantileDMatrix(tones, hard, nthread=2)
    valid = xgb.QuantileDMatrix(tones_val, hard_val, ref=train, nthread=2)
    params = {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "max_depth": 8,
        "eta": 0.08,
        "nthread": 2,
        "seed": 3,
    }
    history = {}
    booster = xgb.train(
        params, train, num_boost_round=ROUNDS, evals=[(valid, "valid")],
        evals_result=history, verbose_eval=False,
    )
    curve = history["valid"]["rmse"]
    for step in range(0, ROUNDS, 65):
        print(f"round {step}: error {curve[step]:.4f}")
    print(f"last error {curve[-1]:.4f}, rounds {booster.num_boosted_rounds()}")


if __name__ == "__main__":
    main()
