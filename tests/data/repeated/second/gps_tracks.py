"""
verdict: same
stack:
  process(sorted(TRACKS.glob("*.gpx")))
  length_m(fixes)
  to_metric(lon, lat)
  Transformer.from_crs(SOURCE, TARGET, always_xy=True)
call: Transformer.from_crs(SOURCE, TARGET, always_xy=True)
loop: for lon, lat in points | for track in files
why: the transformer between two constant reference systems is created again for each point
"""
import math
from pathlib import Path

import gpxpy
from pyproj import Transformer

TRACKS = Path("tracks")
SOURCE = "EPSG:4326"
TARGET = "EPSG:2056"


def to_metric(east, north):
    transformer = Transformer.from_crs(SOURCE, TARGET, always_xy=True)
    return transformer.transform(east, north)


def length_m(points):
    total = 0.0
    previous = None
    for lon, lat in points:
        here = to_metric(lon, lat)
        if previous is not None:
            total += math.dist(previous, here)
        previous = here
    return total


def read_fixes(path):
    with open(path) as handle:
        gpx = gpxpy.parse(handle)
    return [(p.longitude, p.latitude) for t in gpx.tracks for s in t.segments for p in s.points]


def process(files):
    lengths = {}
    for track in files:
        fixes = read_fixes(track)
        lengths[track.stem] = length_m(fixes)
    return lengths


if __name__ == "__main__":
    for name, metres in process(sorted(TRACKS.glob("*.gpx"))).items():
        print(f"{name:20s} {metres / 1000:8.2f} km")
