"""Which parcels will be late? Histogram gradient boosting on depot records."""
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score

PARCELS = 420_000
FIELDS = 28


def make_parcels(seed=31):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((PARCELS, FIELDS), dtype=np.float32)
    x[:, 20:] = np.floor(4 * np.abs(x[:, 20:]))
    missing = rng.random((PARCELS, 5)) < 0.08
    slack = (x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + 0.6 * x[:, 21]
             - 0.5 * x[:, 22] + np.where(x[:, 3] > 0, x[:, 4], -x[:, 5]))
    late = (slack + 1.2 * rng.standard_normal(PARCELS) > 1.0).astype(np.int8)
    x[:, 6:11][missing] = np.nan
    return x, late


def main():
    x, late = make_parcels()
    cut = int(0.8 * PARCELS)
    model = HistGradientBoostingClassifier(
        max_iter=170,
        learning_rate=0.1,
        max_leaf_nodes=63,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    )
    model.fit(x[:cut], late[:cut])
    chance = model.predict_proba(x[cut:])[:, 1]
    print(f"parcels {PARCELS} late {late.mean():.3f}")
    print(f"log loss {log_loss(late[cut:], chance):.4f}")
    print(f"auc {roc_auc_score(late[cut:], chance):.4f}")
    for low in (0.1, 0.5, 0.9):
        flagged = chance > low
        share = late[cut:][flagged].mean() if flagged.any() else 0.0
        print(f"chance above {low}: {flagged.sum()} parcels, late {share:.3f}")


if __name__ == "__main__":
    main()
