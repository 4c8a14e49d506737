"""
verdict: same
stack:
  report(load_trades("trades.csv"))
  sum(in_euro(t.value, t.currency, t.year) for t in trades.itertuples())
  in_euro(t.value, t.currency, t.year)
  rates()
  pd.read_csv(path, parse_dates=["date"])
call: rates()
loop: for t in trades.itertuples()
why: the exchange rates are read from the same default file and averaged for each trade
"""
import pandas as pd


def load_trades(source):
    table = pd.read_csv(source)
    return table[table["value"] > 0]


def rates(path="ecb_daily.csv", *, base="EUR"):
    daily = pd.read_csv(path, parse_dates=["date"])
    daily["year"] = daily["date"].dt.year
    yearly = daily.groupby(["year", "currency"])["rate"].mean()
    for year in daily["year"].unique():
        yearly[(year, base)] = 1.0
    return yearly


def in_euro(value, currency, year):
    table = rates()
    return value / table[(year, currency)]


def report(trades):
    print("trades:", len(trades))
    total = sum(in_euro(t.value, t.currency, t.year) for t in trades.itertuples())
    print(f"total: {total / 1e9:.2f} bn EUR")


if __name__ == "__main__":
    report(load_trades("trades.csv"))
