# Default risk with XGBoost; stop when the held-out score no longer improves.
import numpy as np
import xgboost as xgb

LOANS = 210_000
COLUMNS = 42


def loans(seed=53):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((LOANS, COLUMNS), dtype=np.float32)
    x[:, 30:] = np.round(np.abs(x[:, 30:]) * 3.0)
    risk = 0.6 * x[:, 0] - 0.5 * x[:, 1] * (x[:, 2] > 0) + 0.3 * np.abs(x[:, 3])
    risk += 0.25 * np.sin(3.0 * x[:, 4]) + 0.15 * (x[:, 31] > 4) * x[:, 5]
    risk += 0.2 * x[:, 6] * x[:, 7] - 0.1 * x[:, 8] ** 2
    default = rng.random(LOANS) < 1.0 / (1.0 + np.exp(2.2 - 1.4 * risk))
    return x, default.astype(np.float32)


class Progress(xgb.callback.TrainingCallback):
    """A line for every fiftieth round."""

    def after_iteration(self, model, epoch, evals_log):
        if epoch % 50 == 0:
            score = evals_log["held"]["auc"][-1]
            print(f"round {epoch:4d}  auc {score:.4f}")
        return False


def main():
    x, default = loans()
    cut = int(0.92 * LOANS)
    train = xgb.QuantileDMatrix(x[:cut], label=default[:cut], max_bin=256)
    held = xgb.QuantileDMatrix(x[cut:], label=default[cut:], ref=train)

    settings = {
        "objective": "binary:logistic",
        "eval_metric": "auc",
        "tree_method": "hist",
        "max_depth": 7,
        "eta": 0.035,
        "subsample": 0.8,
        "colsample_bytree": 0.7,
        "min_child_weight": 20,
        "nthread": 2,
        "seed": 6,
    }
    booster = xgb.train(
        settings,
        train,
        num_boost_round=300,
        evals=[(held, "held")],
        early_stopping_rounds=60,
        callbacks=[Progress()],
        verbose_eval=False,
    )
    print(f"kept {booster.best_iteration + 1} rounds, auc {booster.best_score:.4f}")

    chance = booster.predict(held, iteration_range=(0, booster.best_iteration + 1))
    order = np.argsort(-chance)
    worst = default[cut:][order[: len(order) // 10]]
    print(f"defaults in the riskiest tenth: {worst.mean():.3f}, overall {default.mean():.3f}")


if __name__ == "__main__":
    main()
