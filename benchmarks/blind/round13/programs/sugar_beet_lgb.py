"""Rank sugar beet plots within each trial by their sugar yield."""
import lightgbm as lgb
import numpy as np

PLOTS = 20
FEATURES = 40
ROUNDS = 220


def make_trials(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count * PLOTS, FEATURES)).astype(np.float32)
    weights = np.linspace(1.0, 0.0, FEATURES)
    trial = np.repeat(rng.normal(0, 2, count), PLOTS)
    y = x @ weights * 0.4 + np.sin(2 * x[:, 0]) * x[:, 1] + trial + rng.normal(0, 0.6, len(x))
    return x, y


def rank_agreement(preds, data):
    """Mean Spearman correlation within the trials."""
    truth = data.get_label()
    scores = []
    for start in range(0, len(preds), PLOTS):
        p = preds[start:start + PLOTS]
        t = truth[start:start + PLOTS]
        rank_p = p.argsort().argsort()
        rank_t = t.argsort().argsort()
        scores.append(np.corrcoef(rank_p, rank_t)[0, 1])
    return "agreement", float(np.mean(scores)), True


def main():
    x, y = make_trials(1000, 1)
    x_val, y_val = make_trials(300, 2)
    train = lgb.Dataset(x, y)
    valid = lgb.Dataset(x_val, y_val, reference=train)
    params = {
        "objective": "regression",
        "learning_rate": 0.05,
        "num_leaves": 63,
        "num_threads": 2,
        "metric": "None",
        "verbosity": -1,
        "seed": 3,
        "deterministic": True,
    }
    history = {}
    booster = lgb.train(
        params,
        train,
        ROUNDS,
        valid_sets=[train, valid],
        valid_names=["train", "valid"],
        feval=rank_agreement,
        callbacks=[lgb.record_evaluation(history)],
    )
    curve = history["valid"]["agreement"]
    for step in range(0, ROUNDS, 55):
        print(f"round {step}: agreement {curve[step]:.4f}")
    best = int(np.argmax(curve))
    print(f"best round {best} agreement {curve[best]:.4f} trees {booster.num_trees()}")


if __name__ == "__main__":
    main()
