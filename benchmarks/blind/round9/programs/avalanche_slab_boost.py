"""Slab avalanche release from snow profiles, with a learning curve over the trees."""
import numpy as np
import xgboost as xgb
from sklearn.metrics import log_loss, roc_auc_score

PROFILES, LAYERS = 40000, 24
TREES = 160


def snow_profiles(rng):
    hardness = rng.gamma(2.0, 1.5, (PROFILES, LAYERS)).astype(np.float32)
    slope = rng.uniform(25, 45, PROFILES)
    weak = hardness[:, 4:10].min(axis=1)
    slab = hardness[:, 12:].mean(axis=1)
    risk = 0.15 * (slope - 35) - 2.2 * weak + 0.4 * slab + 0.3 * np.sin(hardness[:, 0])
    release = rng.random(PROFILES) < 1 / (1 + np.exp(-(risk - np.median(risk))))
    return np.column_stack([hardness, slope]).astype(np.float32), release.astype(int)


def main():
    rng = np.random.default_rng(4)
    features, release = snow_profiles(rng)
    cut = int(0.8 * PROFILES)
    winter = xgb.DMatrix(features[:cut], release[:cut])
    spring = xgb.DMatrix(features[cut:], release[cut:])
    settings = {
        "objective": "binary:logistic",
        "eval_metric": "logloss",
        "max_depth": 6,
        "eta": 0.08,
        "tree_method": "hist",
        "nthread": 2,
        "seed": 4,
    }
    booster, curve = None, []
    for tree in range(TREES):
        booster = xgb.train(settings, winter, num_boost_round=1, xgb_model=booster)
        curve.append(log_loss(release[cut:], booster.predict(spring)))
        curve_train = log_loss(release[:cut], booster.predict(winter))
    for tree in range(19, TREES, 35):
        print(f"{tree + 1} trees: loss {curve[tree]:.4f}")
    print(f"loss on winter {curve_train:.4f}")
    print(f"AUC in spring {roc_auc_score(release[cut:], booster.predict(spring)):.3f}")


if __name__ == "__main__":
    main()
