"""Predict the arrival of glass eels at weirs with boosted trees."""
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score

NIGHTS = 300_000
FEATURES = 30


def make_nights(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, FEATURES)).astype(np.float32)
    moon = rng.uniform(0, 2 * np.pi, count)
    x[:, 0] = np.cos(moon)
    x[:, 1] = np.sin(moon)
    score = 1.2 * x[:, 0] - x[:, 2] * x[:, 3] + np.sin(2 * x[:, 4]) + 0.5 * x[:, 5:10].sum(1)
    chance = 1 / (1 + np.exp(-score))
    return x, (rng.random(count) < chance).astype(int)


def main():
    x, y = make_nights(NIGHTS, 1)
    x_test, y_test = make_nights(30_000, 2)
    model = HistGradientBoostingClassifier(
        max_iter=260, learning_rate=0.06, max_leaf_nodes=63,
        early_stopping=False, random_state=0,
    )
    model.fit(x, y)
    chance = model.predict_proba(x_test)[:, 1]
    print(f"nights {len(y)} share with eels {y.mean():.3f}")
    print(f"log loss {log_loss(y_test, chance):.4f}")
    print(f"area under the curve {roc_auc_score(y_test, chance):.4f}")
    print(f"iterations {model.n_iter_}")


if __name__ == "__main__":
    main()
