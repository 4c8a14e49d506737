"""
verdict: same
stack:
  attach(farms, stations)
  nearest(gauges[["x", "y"]].to_numpy(), (farm.x, farm.y))
  cKDTree(points, leafsize=4, balanced_tree=True)
call: cKDTree(points, leafsize=4, balanced_tree=True)
loop: for farm in fields.itertuples()
why: the tree over the same station coordinates is built again for each farm
"""
import pandas as pd
from pyproj import Transformer
from scipy.spatial import cKDTree

TO_UTM = Transformer.from_crs("EPSG:4326", "EPSG:32633", always_xy=True)


def project(frame):
    frame = frame.copy()
    frame["x"], frame["y"] = TO_UTM.transform(frame["lon"].to_numpy(), frame["lat"].to_numpy())
    return frame


def nearest(points, where, k=3):
    tree = cKDTree(points, leafsize=4, balanced_tree=True)
    distance, index = tree.query(where, k=k)
    weights = 1.0 / (distance + 1.0)
    return index, weights / weights.sum()


def attach(fields, gauges):
    rain = []
    for farm in fields.itertuples():
        index, weights = nearest(gauges[["x", "y"]].to_numpy(), (farm.x, farm.y))
        rain.append(float((gauges["rain_mm"].to_numpy()[index] * weights).sum()))
    return fields.assign(rain_mm=rain)


def main():
    stations = project(pd.read_csv("stations.csv"))
    farms = project(pd.read_csv("farms.csv"))
    attach(farms, stations).to_csv("farms_rain.csv", index=False)


if __name__ == "__main__":
    main()
