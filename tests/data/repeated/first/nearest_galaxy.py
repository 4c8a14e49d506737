"""
verdict: same
stack:
  crossmatch(read_catalogue("radio.csv"), read_catalogue("optical.csv"))
  match_one(source, optical, radius=RADIUS)
  cKDTree(unit_vectors(catalogue["ra"], catalogue["dec"]))
call: cKDTree(unit_vectors(catalogue["ra"], catalogue["dec"]))
loop: for source in radio.itertuples()
why: the tree of the same optical catalogue is built again for each radio source
"""
import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

RADIUS = 2.0 / 3600


def read_catalogue(path):
    frame = pd.read_csv(path, comment="#")
    return frame.dropna(subset=["ra", "dec"]).reset_index(drop=True)


def unit_vectors(ra, dec):
    a, d = np.radians(np.atleast_1d(ra)), np.radians(np.atleast_1d(dec))
    return np.column_stack([np.cos(d) * np.cos(a), np.cos(d) * np.sin(a), np.sin(d)])


def match_one(src, catalogue, radius):
    tree = cKDTree(unit_vectors(catalogue["ra"], catalogue["dec"]))
    chord = 2 * np.sin(np.radians(radius) / 2)
    dist, idx = tree.query(unit_vectors(src.ra, src.dec)[0], distance_upper_bound=chord)
    return (int(idx), float(dist)) if np.isfinite(dist) else (None, np.inf)


def crossmatch(radio, optical):
    pairs = []
    for source in radio.itertuples():
        index, dist = match_one(source, optical, radius=RADIUS)
        if index is not None:
            pairs.append((source.Index, index, dist))
    return pd.DataFrame(pairs, columns=["radio", "optical", "chord"])


if __name__ == "__main__":
    crossmatch(read_catalogue("radio.csv"), read_catalogue("optical.csv")).to_csv("pairs.csv")
