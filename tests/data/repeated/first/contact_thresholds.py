"""
verdict: set
stack:
  sweep(Path("pdb"), cutoffs=np.arange(4.0, 14.0, 0.5))
  ca_coordinates(name)
  line[30:54]
call: ca_coordinates(name)
loop: for cutoff in cutoffs
why: for each cutoff all structure files are parsed again
"""
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist


def ca_coordinates(path):
    xyz = []
    with open(path) as handle:
        for line in handle:
            if line.startswith("ATOM") and line[12:16].strip() == "CA":
                part = line[30:54]
                xyz.append([float(part[k : k + 8]) for k in (0, 8, 16)])
    return np.array(xyz)


def relative_order(xyz, limit):
    n = len(xyz)
    i, j = np.triu_indices(n, k=1)
    near = (pdist(xyz) < limit) & (j - i > 3)
    return float((j - i)[near].mean() / n) if near.any() else 0.0


def sweep(folder, cutoffs):
    names = sorted(folder.glob("*.pdb"))
    rates = np.loadtxt(folder / "rates.txt")
    result = []
    for cutoff in cutoffs:
        orders = []
        for name in names:
            xyz = ca_coordinates(name)
            orders.append(relative_order(xyz, cutoff))
        result.append((cutoff, np.corrcoef(orders, rates)[0, 1]))
    return result


if __name__ == "__main__":
    for c, r in sweep(Path("pdb"), cutoffs=np.arange(4.0, 14.0, 0.5)):
        print(f"{c:5.1f} {r:+.3f}")
