"""
verdict: set
stack:
  support("families", replicates=500)
  consensus(families, weights)
  pair_distances(alignment)
  np.mean(rows[i] != rows[j])
call: pair_distances(alignment)
loop: for b in range(replicates)
why: the random weights only weigh the families, the distances in each family are the same in each replicate
"""
import os

import numpy as np


def read_alignment(path):
    with open(path) as handle:
        return np.array([list(line.strip()) for line in handle])


def pair_distances(rows):
    n = len(rows)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            d[i, j] = d[j, i] = np.mean(rows[i] != rows[j])
    return -0.75 * np.log(np.maximum(1 - 4 * d / 3, 1e-3))


def consensus(alignments, weights):
    total = 0.0
    for alignment, weight in zip(alignments, weights):
        if weight > 0:
            total = total + weight * pair_distances(alignment)
    return total / weights.sum()


def closest(d):
    d = d + np.diag(np.full(len(d), np.inf))
    i, j = divmod(int(d.argmin()), len(d))
    return min(i, j), max(i, j)


def support(folder, replicates):
    families = [read_alignment(os.path.join(folder, f)) for f in sorted(os.listdir(folder))]
    rng = np.random.default_rng(11)
    votes = {}
    for b in range(replicates):
        weights = rng.multinomial(len(families), np.full(len(families), 1 / len(families)))
        pair = closest(consensus(families, weights))
        votes[pair] = votes.get(pair, 0) + 1
    return votes


if __name__ == "__main__":
    print(support("families", replicates=500))
