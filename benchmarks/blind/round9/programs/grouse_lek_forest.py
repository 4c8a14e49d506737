"""Habitat of black grouse leks: gradient boosted trees on landscape cells."""
import lightgbm as lgb
import numpy as np
from sklearn.metrics import roc_auc_score

CELLS, LAYERS, TREES = 400000, 28, 420


def landscape(rng):
    layers = rng.normal(0, 1, (CELLS, LAYERS)).astype(np.float32)
    layers[:, :8] = np.round(layers[:, :8] * 3) / 3
    wood, heath, height, path = layers[:, 0], layers[:, 1], layers[:, 8], layers[:, 9]
    suit = 1.2 * heath - 0.7 * wood**2 + np.sin(2 * height) + 0.6 * heath * (path > 0.3)
    lek = rng.random(CELLS) < 1 / (1 + np.exp(2.0 - suit))
    return layers, lek.astype(np.int8)


def main():
    rng = np.random.default_rng(27)
    layers, lek = landscape(rng)
    cut = int(0.85 * CELLS)
    data = lgb.Dataset(layers[:cut], lek[:cut], params={"max_bin": 127, "verbose": -1})
    settings = {
        "objective": "binary",
        "num_leaves": 48,
        "learning_rate": 0.05,
        "feature_fraction": 0.8,
        "max_bin": 127,
        "num_threads": 2,
        "seed": 27,
        "deterministic": True,
        "verbose": -1,
    }
    model = lgb.train(settings, data, num_boost_round=TREES)
    chance = model.predict(layers[cut:], num_threads=2)
    print("AUC", round(roc_auc_score(lek[cut:], chance), 4))
    gain = model.feature_importance("gain")
    for layer in np.argsort(gain)[::-1][:4]:
        print(f"layer {layer}: {gain[layer] / gain.sum():.3f} of the gain")


if __name__ == "__main__":
    main()
