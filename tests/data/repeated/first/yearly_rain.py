"""
verdict: set
stack:
  main(range(1980, 2021), "stations.txt")
  read_station(code)
  pd.read_fwf(path, widths=[8, 6, 6, 7], names=COLUMNS, parse_dates=["date"])
call: read_station(code)
loop: for year in years
why: the whole file of each station is read again for each year
"""
import os

import numpy as np
import pandas as pd

COLUMNS = ["date", "tmax", "tmin", "rain"]
ROOT = os.environ.get("RAIN_ROOT", "/data/rain")


def read_station(station):
    path = os.path.join(ROOT, f"{station}.dat")
    frame = pd.read_fwf(path, widths=[8, 6, 6, 7], names=COLUMNS, parse_dates=["date"])
    return frame.replace(-999.0, np.nan).set_index("date")


def longest_dry_spell(rain):
    best = run = 0
    for amount in rain:
        run = run + 1 if amount < 1.0 else 0
        best = max(best, run)
    return best


def main(years, listing):
    with open(listing) as handle:
        codes = [line.split()[0] for line in handle]
    spells = pd.DataFrame(index=list(years), columns=codes, dtype=float)
    for year in years:
        for code in codes:
            data = read_station(code)
            own = data.loc[str(year), "rain"].fillna(0)
            spells.loc[year, code] = longest_dry_spell(own)
        print(year, spells.loc[year].median())
    spells.to_csv("spells.csv")


if __name__ == "__main__":
    main(range(1980, 2021), "stations.txt")
