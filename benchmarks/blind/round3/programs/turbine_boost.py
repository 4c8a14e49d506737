"""Power curve of a wind turbine from its nacelle sensors (LightGBM)."""
import argparse

import lightgbm as lgb
import numpy as np

SETTINGS = dict(
    objective="regression",
    metric="rmse",
    learning_rate=0.03,
    num_leaves=31,
    min_data_in_leaf=20,
    feature_fraction=0.8,
    bagging_fraction=0.8,
    bagging_freq=1,
    num_threads=16,
    deterministic=True,
    force_col_wise=True,
    seed=12,
    verbosity=-1,
)


def nacelle_log(n, seed):
    """Ten-minute means: wind, turbulence, pitch, yaw error, air density, ..."""
    rng = np.random.default_rng(seed)
    wind = rng.weibull(2.0, n) * 8.0
    turbulence = rng.gamma(2.0, 0.05, n)
    yaw = rng.normal(0.0, 6.0, n)
    density = rng.normal(1.22, 0.03, n)
    pitch = np.clip((wind - 11.0) * 2.0, 0.0, None) + rng.normal(0, 0.3, n)
    swept = 0.5 * density * wind**3 * np.cos(np.radians(yaw)) ** 3
    power = 2000.0 * np.tanh(swept / 900.0) * (1.0 - 0.4 * turbulence)
    power[wind > 22.0] = 0.0
    other = rng.standard_normal((n, 27))
    table = np.column_stack([wind, turbulence, yaw, density, pitch, other])
    return table, power + rng.normal(0.0, 25.0, n)


def train_site(site, rounds):
    x, y = nacelle_log(9_000, seed=site)
    xt, yt = nacelle_log(4_000, seed=site + 500)
    data = lgb.Dataset(x, label=y, params={"max_bin": 127, "verbosity": -1})
    model = lgb.train(SETTINGS, data, num_boost_round=rounds)
    error = model.predict(xt) - yt
    return model, float(np.sqrt(np.mean(error**2)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=500)
    args = parser.parse_args()

    errors = []
    for site in range(args.sites):
        model, rmse = train_site(site, args.rounds)
        errors.append(rmse)
        gain = model.feature_importance("gain")
        print(f"site {site}: rmse {rmse:6.1f} kW, first feature {int(np.argmax(gain))}")
    print(f"mean rmse {np.mean(errors):.0f} kW")


if __name__ == "__main__":
    main()
