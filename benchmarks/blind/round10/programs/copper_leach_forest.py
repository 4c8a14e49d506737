"""Copper recovery from heap leaching: a random forest and its out-of-bag error."""
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import r2_score

SAMPLES, ASSAYS = 42000, 30
TREES = 160


def heaps(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(SAMPLES, ASSAYS)).astype(np.float32)
    days = rng.uniform(5, 300, SAMPLES)
    acid = rng.gamma(4.0, 2.0, SAMPLES)
    x[:, 0], x[:, 1] = days, acid
    rate = 0.01 * (1 + 0.3 * np.tanh(x[:, 2])) * acid / (4 + acid)
    recovery = 85 * (1 - np.exp(-rate * days)) - 4 * np.maximum(x[:, 3], 0) * x[:, 4]
    recovery += 3 * rng.normal(size=SAMPLES)
    return x, recovery.astype(np.float32)


def main():
    x, y = heaps(52)
    cut = SAMPLES - 6000
    forest = RandomForestRegressor(
        n_estimators=TREES, max_features=0.33, min_samples_leaf=3, oob_score=True, n_jobs=2,
        random_state=7)
    forest.fit(x[:cut], y[:cut])
    print(f"samples {SAMPLES}, mean recovery {y.mean():.2f} %")
    print(f"out-of-bag R2 {forest.oob_score_:.4f}")
    print(f"test R2 {r2_score(y[cut:], forest.predict(x[cut:])):.4f}")
    order = np.argsort(forest.feature_importances_)[::-1][:5]
    for k in order:
        print(f"assay {k:2d}  importance {forest.feature_importances_[k]:.3f}")
    depth = np.mean([tree.get_depth() for tree in forest.estimators_])
    print(f"mean depth {depth:.1f}")


if __name__ == "__main__":
    main()
