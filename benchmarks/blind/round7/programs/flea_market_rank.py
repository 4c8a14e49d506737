"""Rank the stalls of a flea market for each visitor, judged by reciprocal rank."""
import lightgbm as lgb
import numpy as np

VISITORS, STALLS, TRAITS, TREES = 3200, 15, 30, 240


def visits(n, seed):
    """Each visitor passes fifteen stalls and buys at one of them, rarely at more."""
    rng = np.random.default_rng(seed)
    taste = np.random.default_rng(0).normal(0, 1, TRAITS)
    x = rng.normal(0, 1, (n * STALLS, TRAITS))
    pull = x @ taste * 0.4 + np.abs(x[:, 0] * x[:, 1]) + rng.gumbel(0, 1, n * STALLS)
    pull = pull.reshape(n, STALLS)
    bought = (pull >= np.sort(pull, axis=1)[:, -1:] - 0.2).astype(int)
    return x, bought.ravel(), np.full(n, STALLS)


def reciprocal_rank(score, data):
    """Mean reciprocal rank of the first purchase of each visitor."""
    label = data.get_label()
    group = data.get_group().astype(int)
    total, start = 0.0, 0
    for size in group:
        order = np.argsort(-score[start:start + size], kind="stable")
        relevance = label[start:start + size][order]
        for position, hit in enumerate(relevance):
            if hit > 0:
                total += 1.0 / (position + 1)
                break
        start += size
    return "mrr", total / len(group), True


def main():
    x, y, group = visits(VISITORS, 1)
    val_x, val_y, val_group = visits(1500, 2)
    train = lgb.Dataset(x, label=y, group=group)
    valid = lgb.Dataset(val_x, label=val_y, group=val_group, reference=train)
    curves = {}
    params = {"objective": "lambdarank", "metric": "None", "num_leaves": 31,
              "learning_rate": 0.05, "num_threads": 2, "verbosity": -1, "seed": 9,
              "deterministic": True, "force_row_wise": True}
    booster = lgb.train(
        params, train, num_boost_round=TREES,
        valid_sets=[train, valid], valid_names=["seen", "new"],
        feval=reciprocal_rank,
        callbacks=[lgb.record_evaluation(curves)])
    for tree in range(39, TREES, 40):
        print(f"tree {tree + 1}: seen {curves['seen']['mrr'][tree]:.4f} "
              f"new {curves['new']['mrr'][tree]:.4f}")
    top = np.argsort(booster.feature_importance("gain"))[::-1][:5]
    print("leading traits:", top.tolist())


if __name__ == "__main__":
    main()
