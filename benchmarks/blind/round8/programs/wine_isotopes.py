"""Regions of wines from isotope and element concentrations.

Bootstrap of the Mahalanobis distances to a reference region, then a
dendrogram of the whole collection.
"""
import numpy as np
import pandas as pd
from scipy.cluster import hierarchy
from scipy.spatial import distance

WINES = 9000
ELEMENTS = ["d18O", "d13C", "Sr87", "Rb", "Ba", "Mg", "Mn", "Li", "B", "Cs", "Al", "Zn"]
REGIONS = ["Mosel", "Wachau", "Priorat", "Jura", "Etna", "Tokaj"]
BOOTSTRAPS = 120


def collection():
    rng = np.random.default_rng(1811)
    region = rng.integers(0, len(REGIONS), WINES)
    centres = rng.normal(0, 1.2, (len(REGIONS), len(ELEMENTS)))
    mixing = rng.normal(0, 0.4, (len(ELEMENTS), len(ELEMENTS))) + np.eye(len(ELEMENTS))
    values = centres[region] + rng.normal(size=(WINES, len(ELEMENTS))) @ mixing
    table = pd.DataFrame(values, columns=ELEMENTS)
    table.insert(0, "region", [REGIONS[i] for i in region])
    return table


def distances(values, sample):
    centre = sample.mean(axis=0)
    spread = sample - centre
    covariance = spread.T @ spread / (len(sample) - 1)
    inverse = np.linalg.inv(np.array(covariance, dtype=float))
    deviation = values - centre
    return ((deviation @ inverse) * deviation).sum(axis=1)


def bootstrap(table, reference):
    rng = np.random.default_rng(3)
    values = table.values[:, 1:]
    own = np.flatnonzero(table["region"].to_numpy() == reference)
    limits, shares = [], []
    for _ in range(BOOTSTRAPS):
        chosen = rng.choice(own, size=len(own))
        found = distances(values, values[chosen]).astype(float)
        limit = np.quantile(found[own], 0.95)
        limits.append(limit)
        shares.append((np.delete(found, own) < limit).mean())
    return np.array(limits), np.array(shares)


def dendrogram_groups(table):
    values = table[ELEMENTS].to_numpy()
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    pairs = distance.pdist(values)
    groups = {}
    for method in ("average", "ward"):
        tree = hierarchy.linkage(pairs, method=method)
        labels = hierarchy.fcluster(tree, len(REGIONS), criterion="maxclust")
        groups[method] = np.bincount(labels)[1:]
    return groups


def main():
    table = collection()
    limits, shares = bootstrap(table, "Jura")
    print(f"95 % limit {limits.mean():.3f} +- {limits.std():.3f}")
    print(f"foreign wines inside the limit {100 * shares.mean():.2f} %")
    for method, sizes in dendrogram_groups(table).items():
        print(f"{method}: groups of {sorted(sizes.tolist(), reverse=True)}")


if __name__ == "__main__":
    main()
