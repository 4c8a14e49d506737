"""Forecast the hourly demand of a bakery, day by day, and keep a table of the forecasts."""
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

HOURS = 24 * 365 * 15
TRAIN_DAYS = 365
COLUMNS = ["hour", "weekday", "season", "yesterday", "last_week", "level", "swing", "push"]


def till():
    rng = np.random.default_rng(88)
    time = pd.date_range("2009-01-01", periods=HOURS, freq="h")
    hour, weekday = time.hour.to_numpy(), time.dayofweek.to_numpy()
    shape = 30 * np.exp(-((hour - 8) / 2.5) ** 2) + 12 * np.exp(-((hour - 16) / 2.0) ** 2)
    week = np.array([0.9, 0.9, 1.0, 1.0, 1.2, 1.5, 0.6])[weekday]
    drift = np.cumsum(rng.normal(0, 0.01, HOURS))
    sold = rng.poisson(np.clip(shape * week * (1 + 0.1 * np.tanh(drift)), 0.05, None))
    return pd.DataFrame({"time": time, "sold": sold.astype(float)})


def spread(window):
    return window.max() - window.min()


def features(log):
    sold = log["sold"]
    out = pd.DataFrame({
        "hour": log["time"].dt.hour,
        "weekday": log["time"].dt.dayofweek,
        "season": np.sin(log["time"].dt.dayofyear / 365 * 2 * np.pi),
        "yesterday": sold.shift(24),
        "last_week": sold.shift(168),
    })
    past = sold.shift(24)
    out["level"] = past.rolling(168).mean()
    out["swing"] = past.rolling(48).apply(spread)
    out["push"] = past.rolling(24).sum() / past.rolling(168).sum()
    return out


def main():
    log = till()
    table = features(log)
    start = TRAIN_DAYS * 24
    fit = table.iloc[240:start]
    model = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=15, random_state=0)
    model.fit(fit[COLUMNS].to_numpy(), log["sold"].iloc[240:start].to_numpy())
    print(f"{len(log)} hours, model fitted on {len(fit)}")

    inputs = table[COLUMNS].to_numpy()
    days = (HOURS - start) // 24
    book, bias = None, 0.0
    for number in range(days):
        first = start + 24 * number
        rows = slice(first, first + 24)
        guess = np.clip(model.predict(inputs[rows]) + bias, 0, None)
        today = pd.DataFrame({"time": log["time"].iloc[rows], "sold": log["sold"].iloc[rows],
                              "forecast": guess, "level": table["level"].iloc[rows],
                              "swing": table["swing"].iloc[rows], "busy": bias >= 1})
        book = today if book is None else pd.concat([book, today], ignore_index=True)
        bias += 0.02 * float(np.mean(today["sold"].to_numpy() - guess))

    error = (book["sold"] - book["forecast"]).abs()
    print(f"{days} days forecast, mean error {error.mean():.2f} loaves an hour")
    by_day = error.groupby(book["time"].dt.dayofweek).mean()
    print("by weekday:", by_day.round(2).tolist())
    print("last bias:", round(bias, 2), "busy hours:", int(book["busy"].sum()))


if __name__ == "__main__":
    main()
