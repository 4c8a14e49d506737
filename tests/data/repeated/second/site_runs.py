"""
verdict: none
stack:
  campaign(Path("sites"))
  read_forcing("forcing.csv")
  pd.read_csv(name, parse_dates=["time"], index_col="time")
why: os.chdir changes the folder in each iteration, so the same relative name is another file
"""
import os
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd


@contextmanager
def inside(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def read_forcing(name):
    table = pd.read_csv(name, parse_dates=["time"], index_col="time")
    return table.resample("1D").agg({"rain": "sum", "temp": "mean"}).interpolate()


def snow_bucket(forcing, melt=3.2, threshold=0.5):
    store = 0.0
    runoff = np.zeros(len(forcing))
    for day, (rain, temp) in enumerate(forcing[["rain", "temp"]].to_numpy()):
        if temp < threshold:
            store += rain
        else:
            melted = min(store, melt * (temp - threshold))
            store -= melted
            runoff[day] = rain + melted
    return pd.Series(runoff, index=forcing.index)


def campaign(root):
    totals = {}
    for site in sorted(p for p in root.iterdir() if p.is_dir()):
        with inside(site):
            forcing = read_forcing("forcing.csv")
            runoff = snow_bucket(forcing)
            runoff.to_csv("runoff.csv")
        totals[site.name] = runoff.sum()
    return totals


if __name__ == "__main__":
    print(campaign(Path("sites")))
