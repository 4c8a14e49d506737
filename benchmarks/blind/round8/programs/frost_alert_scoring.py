"""Score a season of vineyard readings for frost in the next three hours."""
import lightgbm as lgb
import numpy as np
import pandas as pd

READINGS = 32000
SEASON = 5000
WINDOW = 24
TARGETS = ["air", "soil", "dew"]


def make_station(seed=19):
    rng = np.random.default_rng(seed)
    hour = np.arange(READINGS) / 4.0
    daily = 6 * np.sin(2 * np.pi * (hour - 9) / 24)
    drift = np.cumsum(0.15 * rng.standard_normal(READINGS))
    drift -= pd.Series(drift).rolling(3000, min_periods=1).mean().to_numpy()
    air = 4 + daily + drift + 0.4 * rng.standard_normal(READINGS)
    soil = pd.Series(air).ewm(halflife=40).mean().to_numpy() + 2
    dew = air - np.abs(3 + rng.standard_normal(READINGS))
    wind = np.abs(2 + rng.standard_normal(READINGS))
    return pd.DataFrame({"air": air, "soil": soil, "dew": dew, "wind": wind})


def trend(values):
    return np.polyfit(np.arange(len(values)), values, 1)[0]


def make_features(frame):
    table = frame.copy()
    for name in TARGETS:
        rolled = frame[name].rolling(WINDOW)
        table[f"{name}_mean"] = rolled.mean()
        table[f"{name}_low"] = rolled.min()
        table[f"{name}_trend"] = rolled.apply(trend, raw=True)
    coming = frame["air"][::-1].rolling(12).min()[::-1].shift(-1)
    frost = (coming < 0).astype(int)
    return table.iloc[WINDOW:-12], frost.iloc[WINDOW:-12]


def main():
    features, frost = make_features(make_station())
    past, season = features.iloc[:-SEASON], features.iloc[-SEASON:]
    model = lgb.LGBMClassifier(n_estimators=250, num_leaves=31, learning_rate=0.05,
                               n_jobs=2, random_state=0, verbosity=-1)
    model.fit(past, frost.iloc[:-SEASON])
    alerts = []
    for number in range(len(season)):
        reading = season.iloc[[number]]
        chance = model.predict_proba(reading)[0, 1]
        alerts.append(chance)
    alerts = np.array(alerts)
    truth = frost.iloc[-SEASON:].to_numpy()
    for limit in (0.2, 0.5, 0.8):
        warned = alerts > limit
        caught = (warned & (truth == 1)).sum() / max(truth.sum(), 1)
        false = (warned & (truth == 0)).sum()
        print(f"limit {limit}: caught {caught:.3f} false alarms {false}")
    print(f"brier score {np.mean((alerts - truth) ** 2):.4f} frosts {truth.sum()}")


if __name__ == "__main__":
    main()
