"""Spread of a borrowed word through a contact network of villages (asynchronous voter model)."""
import gc

import numpy as np
from scipy import sparse

VILLAGES = 20000
SWEEPS = 10
BATCH = 1000


def contacts(rng):
    """Symmetric matrix of contact strengths, about 12 partners per village."""
    place = rng.random((VILLAGES, 2))
    order = np.argsort(place[:, 0] + 0.01 * place[:, 1])
    near = np.empty(VILLAGES, dtype=int)
    near[order] = np.arange(VILLAGES)
    left = np.repeat(np.arange(VILLAGES), 6)
    right = order[(near[left] + rng.geometric(0.02, left.size)) % VILLAGES]
    weight = rng.gamma(2.0, 0.5, left.size)
    half = sparse.csr_matrix((weight, (left, right)), shape=(VILLAGES, VILLAGES))
    return (half + half.T).tocsr()


def speakers(rng):
    """Questionnaires: per village ten informants with age and their answers."""
    ages = rng.integers(15, 90, (VILLAGES, 10)).tolist()
    answers = rng.integers(0, 4, (VILLAGES, 10, 4)).tolist()
    return [[{"age": a, "answers": w} for a, w in zip(ages[v], answers[v])] for v in range(VILLAGES)]


def stubbornness(people):
    old = [sum(p["age"] > 60 for p in village) / len(village) for village in people]
    sure = [sum(max(p["answers"]) for p in village) / 30.0 for village in people]
    return 0.5 * np.array(old) + 0.3 * np.clip(sure, 0, 1)


def sweep(matrix, word, stubborn, rng):
    changed = 0
    for count, village in enumerate(rng.permutation(VILLAGES)):
        row = matrix[village]
        partners, strength = row.indices, row.data
        support = strength @ word[partners] / strength.sum()
        new = float(support + 0.05 * (support > 0.4) > stubborn[village] * rng.random())
        changed += new != word[village]
        word[village] = new
        if count % BATCH == 0:
            gc.collect()
    return changed


def main():
    rng = np.random.default_rng(27)
    matrix = contacts(rng)
    people = speakers(rng)
    stubborn = stubbornness(people)
    word = (rng.random(VILLAGES) < 0.05).astype(float)
    for number in range(SWEEPS):
        changed = sweep(matrix, word, stubborn, rng)
        print("sweep %d: share %.4f, changed %d" % (number + 1, word.mean(), changed))
    old = [p["age"] for v in np.flatnonzero(word == 0) for p in people[v]]
    print("informants in villages without the word:", len(old))
    print("links: %d" % (matrix.nnz // 2))


if __name__ == "__main__":
    main()
