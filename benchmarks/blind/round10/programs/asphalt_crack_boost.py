"""Boosted trees that flag cracked asphalt sections from falling-weight and laser data."""
import lightgbm as lgb
import numpy as np

SECTIONS, N_FEATURES = 100000, 28
ROUNDS = 300


def survey(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(SECTIONS, N_FEATURES)).astype(np.float32)
    x[:, 5] = rng.integers(1, 40, SECTIONS)          # age of the layer, years
    x[:, 6] = rng.gamma(2.0, 3.0, SECTIONS)          # heavy axles per hour
    load = 0.05 * x[:, 5] + 0.08 * x[:, 6] + 0.6 * x[:, 0] * (x[:, 1] > 0)
    load += 0.4 * np.sin(2.0 * x[:, 2]) - 3.4
    p = 1.0 / (1.0 + np.exp(-1.6 * load))
    y = (rng.random(SECTIONS) < p).astype(np.int32)
    return x, y


def crack_precision(preds, data):
    """Average precision of the ranked sections."""
    labels = data.get_label()
    ranked = sorted(range(len(preds)), key=lambda i: -preds[i])
    hits = 0
    total = 0.0
    for place, i in enumerate(ranked, start=1):
        if labels[i] > 0:
            hits += 1
            total += hits / place
    return "avg_precision", total / max(hits, 1), True


def main():
    x, y = survey(5)
    cut = 60000
    train = lgb.Dataset(x[:cut], y[:cut])
    valid = lgb.Dataset(x[cut:], y[cut:], reference=train)
    params = {
        "objective": "binary",
        "metric": "None",
        "learning_rate": 0.05,
        "num_leaves": 31,
        "min_data_in_leaf": 40,
        "num_threads": 2,
        "seed": 9,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
    history = {}
    booster = lgb.train(
        params,
        train,
        num_boost_round=ROUNDS,
        valid_sets=[valid],
        valid_names=["kept_back"],
        feval=crack_precision,
        callbacks=[lgb.record_evaluation(history)],
    )
    curve = history["kept_back"]["avg_precision"]
    best = int(np.argmax(curve))
    print(f"sections {SECTIONS}, cracked {y.mean():.3f}")
    print(f"average precision: first {curve[0]:.4f}, best {curve[best]:.4f} at round {best + 1}")
    gain = booster.feature_importance("gain")
    print("strongest features:", np.argsort(gain)[::-1][:5].tolist())


if __name__ == "__main__":
    main()
