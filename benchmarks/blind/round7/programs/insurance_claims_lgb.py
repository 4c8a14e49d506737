"""One long gradient-boosted fit of the yearly claim cost of insurance contracts."""
import lightgbm as lgb
import numpy as np

CONTRACTS, COLUMNS, TREES = 160000, 48, 320


def portfolio(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (n, COLUMNS)).astype(np.float32)
    x[:, 40:] = np.round(np.exp(x[:, 40:]))
    log_rate = (0.3 * x[:, 0] + 0.4 * np.maximum(x[:, 1], 0) - 0.3 * x[:, 2] * x[:, 3]
                + 0.2 * np.sin(2 * x[:, 4]) + 0.05 * x[:, 41])
    claims = rng.poisson(np.exp(log_rate - 1.0))
    cost = claims * rng.gamma(2.0, 0.5, n)
    return x, cost


def tweedie_deviance(cost, predicted, power=1.4):
    a = np.power(cost, 2 - power) / ((1 - power) * (2 - power))
    b = cost * np.power(predicted, 1 - power) / (1 - power)
    c = np.power(predicted, 2 - power) / (2 - power)
    return 2 * np.mean(a - b + c)


def main():
    x, cost = portfolio(CONTRACTS, 1)
    test_x, test_cost = portfolio(20000, 2)
    train = lgb.Dataset(x, label=cost, free_raw_data=True)
    params = {
        "objective": "tweedie", "tweedie_variance_power": 1.4, "num_leaves": 63,
        "learning_rate": 0.04, "min_data_in_leaf": 80, "feature_fraction": 0.8,
        "num_threads": 2, "verbosity": -1, "seed": 5}
    booster = lgb.train(params, train, num_boost_round=TREES)
    predicted = booster.predict(test_x, num_threads=2)
    flat = np.full(len(test_cost), cost.mean())
    print(f"deviance {tweedie_deviance(test_cost, predicted):.4f} "
          f"(flat rate {tweedie_deviance(test_cost, flat):.4f})")
    order = np.argsort(predicted)
    for tenth, rows in enumerate(np.array_split(order, 10)):
        if tenth % 3 == 0:
            print(f"decile {tenth}: predicted {predicted[rows].mean():.3f} "
                  f"paid {test_cost[rows].mean():.3f}")


if __name__ == "__main__":
    main()
