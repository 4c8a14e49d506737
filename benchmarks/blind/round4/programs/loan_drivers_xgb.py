"""Which applicant fields drive a loan model, overall and by region (XGBoost)."""
import numpy as np
import xgboost as xgb

FIELDS = ["income", "debt", "age", "tenure", "card_use", "late_30", "late_90", "inquiries", "mortgage", "savings", "dependants", "rent"]
REGIONS = ["north", "coast", "inland", "south"]
PARAMS = {
    "objective": "binary:logistic",
    "max_depth": 5,
    "eta": 0.12,
    "subsample": 0.9,
    "min_child_weight": 5,
    "tree_method": "hist",
    "eval_metric": "auc",
    "nthread": 2,
    "seed": 3,
}


def applicants(count=40_000):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((count, len(FIELDS))).astype(np.float32)
    x[:, 5] = rng.poisson(0.6, count)
    x[:, 6] = rng.poisson(0.15, count)
    x[:, 7] = rng.poisson(1.2, count)
    score = -0.8 * x[:, 0] + 0.7 * x[:, 1] * (x[:, 9] < 0) + 0.5 * x[:, 5] + 1.1 * x[:, 6]
    score += 0.4 * x[:, 4] * x[:, 7] - 0.3 * x[:, 3] + 0.2 * x[:, 2] ** 2 - 1.8
    default = rng.random(count) < 1 / (1 + np.exp(-score))
    return x, default.astype(np.float32), rng.integers(0, len(REGIONS), count)


def choose_rounds(train):
    history = xgb.cv(PARAMS, train, num_boost_round=150, nfold=5, seed=1, early_stopping_rounds=40, as_pandas=False)
    best = int(np.argmax(history["test-auc-mean"]))
    print(f"cross-validated AUC {history['test-auc-mean'][best]:.3f}")
    return min(best + 1, 80)


def field_effects(booster, rows):
    """Mean absolute effect of each field on the log-odds of every applicant in rows."""
    matrix = xgb.DMatrix(rows, feature_names=FIELDS)
    pairwise = booster.predict(matrix, pred_interactions=True)
    per_field = pairwise[:, :-1, :].sum(axis=2)
    return np.abs(per_field).mean(axis=0)


def main():
    x, default, region = applicants()
    train = xgb.DMatrix(x[:32_000], default[:32_000], feature_names=FIELDS)
    booster = xgb.train(PARAMS, train, num_boost_round=choose_rounds(train))
    print("field       " + " ".join(f"{name:>7s}" for name in REGIONS))
    table = []
    for code in range(len(REGIONS)):
        rows = x[32_000:][region[32_000:] == code][:1000]
        table.append(field_effects(booster, rows))
    table = np.array(table).T
    for k in np.argsort(-table.mean(axis=1))[:6]:
        print(f"{FIELDS[k]:11s} " + " ".join(f"{v:7.2f}" for v in table[k]))


if __name__ == "__main__":
    main()
