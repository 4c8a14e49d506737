"""
verdict: same
stack:
  main(sys.argv[1], sys.argv[2])
  table.apply(geocode, axis=1)
  lib:pandas/core/frame.py:DataFrame.apply
  lib:pandas/core/apply.py:FrameApply.apply_series_generator
  load_gazetteer(GAZETTEER)
  json.load(handle)
call: load_gazetteer(GAZETTEER)
loop: def geocode(row)
why: the place names are parsed from the same constant file for each row of the table
"""
import json
import sys
import unicodedata

import pandas as pd

GAZETTEER = "geonames_places.json"


def load_gazetteer(path):
    with open(path, encoding="utf-8") as handle:
        places = json.load(handle)
    return {normalise(p["name"]): (p["lat"], p["lon"]) for p in places}


def normalise(name):
    text = unicodedata.normalize("NFKD", name)
    return "".join(c for c in text if not unicodedata.combining(c)).lower().strip()


def geocode(row):
    places = load_gazetteer(GAZETTEER)
    lat, lon = places.get(normalise(row["town"]), (float("nan"), float("nan")))
    return pd.Series({"lat": lat, "lon": lon})


def main(source, target):
    table = pd.read_csv(source)
    located = table.join(table.apply(geocode, axis=1))
    missing = located["lat"].isna().sum()
    print(f"{missing} of {len(located)} not found")
    located.to_csv(target, index=False)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
