"""Bootstrap the von Bertalanffy growth rate of herring from otolith ages."""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from functools import partial
from multiprocessing import Pool

import numpy as np

FISH = 1_500_000
REPLICATES = 150
K_GRID = np.linspace(0.18, 0.46, 8)


def survey(seed):
    rng = np.random.default_rng(seed)
    age = rng.gamma(3.0, 1.6, FISH)
    length = 31.5 * (1.0 - np.exp(-0.31 * (age + 0.4)))
    length *= np.exp(rng.normal(0.0, 0.07, FISH))
    return np.column_stack([age, length])


def misfit(age, length, k):
    shape = 1.0 - np.exp(-k * (age + 0.4))
    linf = (shape @ length) / (shape @ shape)
    res = length - linf * shape
    return linf, float(res @ res) / len(age)


def replicate(fish, seed):
    rng = np.random.default_rng(seed)
    pick = rng.integers(0, len(fish), len(fish))
    age = fish[pick, 0]
    length = fish[pick, 1]
    scores = np.array([misfit(age, length, k) for k in K_GRID])
    a, b, _ = np.polyfit(K_GRID, scores[:, 1], 2)
    best_k = -b / (2 * a)
    return best_k, float(np.interp(best_k, K_GRID, scores[:, 0]))


def main():
    fish = survey(31)
    seeds = range(1000, 1000 + REPLICATES)
    with Pool(2) as pool:
        results = pool.map(partial(replicate, fish), seeds, chunksize=1)
    res = np.array(results)
    lo, mid, hi = np.percentile(res[:, 0], [2.5, 50, 97.5])
    print(f"replicates {len(res)}")
    print(f"K = {mid:.5f} [{lo:.5f}, {hi:.5f}]  Linf = {res[:, 1].mean():.4f}")


if __name__ == "__main__":
    main()
