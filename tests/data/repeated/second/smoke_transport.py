"""
verdict: set
stack:
  run(winds, Sites.from_csv("stacks.csv"))
  deposit(field, site, strength[hour])
  footprint(source)
  GEOD.inv(np.full(LON.shape, where.lon), np.full(LAT.shape, where.lat), LON, LAT)
call: footprint(source)
loop: for hour in range(len(wind))
why: the distances from a stack to the fixed grid are computed again in each hour for the same stacks
"""
import csv
from dataclasses import dataclass

import numpy as np
from pyproj import Geod

GEOD = Geod(ellps="WGS84")
LON, LAT = np.meshgrid(np.linspace(5, 15, 400), np.linspace(45, 55, 400))


@dataclass(frozen=True)
class Stack:
    lon: float
    lat: float
    height: float


class Sites(tuple):
    @classmethod
    def from_csv(cls, path):
        with open(path) as f:
            return cls(Stack(float(r["lon"]), float(r["lat"]), float(r["height"])) for r in csv.DictReader(f))


def footprint(where):
    azimuth, _, metres = GEOD.inv(np.full(LON.shape, where.lon), np.full(LAT.shape, where.lat), LON, LAT)
    return np.deg2rad(azimuth), metres / 1000.0


def deposit(total, source, wind_now):
    direction, km = footprint(source)
    speed, bearing = wind_now
    along = np.cos(direction - bearing) * km
    across = np.sin(direction - bearing) * km
    spread = 0.1 * np.maximum(along, 1.0)
    total += np.where(along > 0, np.exp(-((across / spread) ** 2)) / (speed * spread), 0.0)


def run(wind, sites):
    strength = wind[:, :2]
    mean = np.zeros(LON.shape)
    for hour in range(len(wind)):
        field = np.zeros(LON.shape)
        for site in sites:
            deposit(field, site, strength[hour])
        mean += field / len(wind)
    return mean


if __name__ == "__main__":
    winds = np.load("winds.npy")
    np.save("mean_smoke.npy", run(winds, Sites.from_csv("stacks.csv")))
