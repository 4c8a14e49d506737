"""Bootstrap support for clusters of bacterial isolates from gene presence tables."""
import random

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

ISOLATES, GENES, REPLICATES = 420, 1500, 110


def isolates():
    rnd = random.Random(99)
    profile = [[rnd.random() for _ in range(GENES)] for _ in range(6)]
    rows = {}
    for i in range(ISOLATES):
        p = profile[i % 6]
        rows[f"iso{i:04d}"] = [1.0 if rnd.random() < 0.5 + 0.22 * (q - 0.5) else rnd.random() * 0.01 for q in p]
    return rows


def cluster(table, seed):
    rng = np.random.default_rng(seed)
    cols = rng.integers(0, table.shape[1], table.shape[1])
    x = PCA(12, svd_solver="randomized", random_state=0).fit_transform(table[:, cols])
    return KMeans(6, n_init=12, random_state=0).fit_predict(x)


def replicate(rows, reference, seed):
    table = np.array([rows[k] for k in sorted(rows)])
    return adjusted_rand_score(reference, cluster(table, seed))


def main():
    rows = isolates()
    table = np.array([rows[k] for k in sorted(rows)])
    whole = PCA(12, svd_solver="randomized", random_state=0).fit_transform(table)
    reference = KMeans(6, n_init=10, random_state=0).fit_predict(whole)
    with Parallel(n_jobs=2) as pool:
        support = pool(delayed(replicate)(rows, reference, seed) for seed in range(REPLICATES))
    support = np.array(support)
    print(f"{REPLICATES} replicates, mean agreement {support.mean():.4f}, lowest {support.min():.4f}")


if __name__ == "__main__":
    main()
