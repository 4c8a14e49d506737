"""Random search of an XGBoost model for orchard yield, scored by cross-validation."""
import numpy as np
import xgboost as xgb

TREES, FIELDS = 16_000, 26
TRIALS = 12


def orchard():
    rng = np.random.default_rng(82)
    x = rng.standard_normal((TREES, FIELDS)).astype(np.float32)
    x[rng.random(x.shape) < 0.03] = np.nan
    z = np.nan_to_num(x)
    yield_kg = 25 + 4 * np.tanh(z[:, 0]) + 3 * z[:, 1] * (z[:, 2] > 0) - 2 * np.abs(z[:, 3]) + z[:, 4:10].sum(1) * 0.5
    return x, (yield_kg + 1.5 * rng.standard_normal(TREES)).astype(np.float32)


def draw(rng):
    return {
        "max_depth": int(rng.integers(3, 8)),
        "eta": float(np.exp(rng.uniform(np.log(0.05), np.log(0.25)))),
        "subsample": float(rng.uniform(0.6, 1.0)),
        "colsample_bytree": float(rng.uniform(0.5, 1.0)),
        "reg_lambda": float(np.exp(rng.uniform(-2, 3))),
    }


def score(matrix, params):
    history = xgb.cv(
        dict(params, objective="reg:squarederror", tree_method="hist", nthread=2, seed=1),
        matrix,
        num_boost_round=130,
        nfold=3,
        metrics="rmse",
        early_stopping_rounds=12,
        seed=1,
        as_pandas=False,
    )
    curve = history["test-rmse-mean"]
    return min(curve), len(curve)


def main():
    x, yield_kg = orchard()
    cut = int(0.85 * TREES)
    matrix = xgb.DMatrix(x[:cut], yield_kg[:cut])
    rng = np.random.default_rng(83)
    tried = []
    for number in range(TRIALS):
        params = draw(rng)
        rmse, rounds = score(matrix, params)
        tried.append((rmse, rounds, params))
        print(f"trial {number:2d}: depth {params['max_depth']}, eta {params['eta']:.2f}, {rounds} rounds, rmse {rmse:.2f} kg", flush=True)
    rmse, rounds, params = min(tried, key=lambda t: t[0])
    final = xgb.train(dict(params, objective="reg:squarederror", tree_method="hist", nthread=2, seed=1), matrix, rounds)
    gap = final.predict(xgb.DMatrix(x[cut:])) - yield_kg[cut:]
    print(f"best {rmse:.2f} kg in cross-validation, {np.sqrt(np.mean(gap ** 2)):.2f} kg on the last orchard rows")


if __name__ == "__main__":
    main()
