# Boosted trees for the literature search engine: learn clicks, report P@5.
import numpy as np
import xgboost as xgb

QUERIES = 10_000
HELD_OUT = 4_000
FEATURES = 36
ROUNDS = 150


def synth_log(seed=101):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(8, 20, QUERIES)
    total = int(sizes.sum())
    feats = rng.standard_normal((total, FEATURES)).astype(np.float32)
    taste = rng.standard_normal(FEATURES) * (rng.random(FEATURES) < 0.5)
    appeal = feats @ taste / 3.0
    appeal += 0.8 * np.tanh(feats[:, 0] * feats[:, 3]) + 0.5 * np.abs(feats[:, 5])
    clicks = (rng.logistic(size=total) + appeal > 1.2).astype(np.float32)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return feats, clicks, bounds


def precision_at_five(pred, clicks, bounds):
    hits = 0.0
    for begin, end in zip(bounds[:-1], bounds[1:]):
        top = np.argsort(-pred[begin:end], kind="stable")[:5]
        hits += clicks[begin:end][top].mean()
    return hits / (len(bounds) - 1)


def main():
    feats, clicks, bounds = synth_log()
    cut = bounds[QUERIES - HELD_OUT]
    test_bounds = bounds[QUERIES - HELD_OUT :] - cut

    dtrain = xgb.QuantileDMatrix(feats[:cut], label=clicks[:cut])
    dtest = xgb.QuantileDMatrix(feats[cut:], label=clicks[cut:], ref=dtrain)
    print(f"{dtrain.num_row()} rows to learn from, {dtest.num_row()} held out")

    def p_at_5(pred, dmat):
        return "p@5", precision_at_five(pred, dmat.get_label(), test_bounds)

    params = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": 8,
        "eta": 0.08,
        "nthread": 2,
        "seed": 4,
    }
    log = {}
    booster = xgb.train(
        params,
        dtrain,
        num_boost_round=ROUNDS,
        evals=[(dtest, "test")],
        custom_metric=p_at_5,
        evals_result=log,
        verbose_eval=False,
    )

    final = log["test"]["p@5"][-1]
    print(f"log loss after {booster.num_boosted_rounds()} rounds: {log['test']['logloss'][-1]:.4f}")
    print(f"P@5 {final:.4f}")
    gain = booster.get_score(importance_type="gain")
    best = sorted(gain, key=gain.get, reverse=True)[:5]
    print("most useful:", ", ".join(best))


if __name__ == "__main__":
    main()
