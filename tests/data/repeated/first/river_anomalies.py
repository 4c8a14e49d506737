"""
verdict: same
stack:
  main(Path("gauges.parquet"))
  anomalies(flow, station)
  climatology(data)
  data_in.groupby(["station", "day"])["flow"].quantile(0.5)
call: climatology(data)
loop: for station in flow["station"].unique()
why: the medians of all stations are computed from the unchanged table for each station, of which one is picked
"""
from pathlib import Path

import pandas as pd


def climatology(data_in):
    return data_in.groupby(["station", "day"])["flow"].quantile(0.5)


def anomalies(data, name):
    normal = climatology(data)
    own = data[data["station"] == name].set_index("day")
    expected = normal.loc[name].reindex(own.index)
    return (own["flow"] - expected) / expected.clip(lower=0.1)


def main(path):
    flow = pd.read_parquet(path)
    flow["day"] = flow["date"].dt.dayofyear
    rows = {}
    for station in flow["station"].unique():
        relative = anomalies(flow, station)
        rows[station] = {
            "dry_days": int((relative < -0.5).sum()),
            "wet_days": int((relative > 1.0).sum()),
        }
    pd.DataFrame.from_dict(rows, orient="index").to_csv("extremes.csv")


if __name__ == "__main__":
    main(Path("gauges.parquet"))
