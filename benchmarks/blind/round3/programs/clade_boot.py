"""Bootstrap support of the clades of a neighbour-joining tree."""
import multiprocessing as mp
from collections import Counter

import numpy as np

TAXA = 44
SITES = 9_000
REPLICATES = 420

alignment = None


def evolve(seed=89):
    """Sequences of a random tree, as numbers 0..3."""
    rng = np.random.default_rng(seed)
    lineages = [rng.integers(0, 4, SITES)]
    while len(lineages) < TAXA:
        parent = lineages.pop(int(rng.integers(0, len(lineages))))
        for _ in range(2):
            child = parent.copy()
            change = rng.random(SITES) < rng.uniform(0.02, 0.12)
            child[change] = rng.integers(0, 4, change.sum())
            lineages.append(child)
    return np.array(lineages[:TAXA], dtype=np.int8)


def distances(table):
    n = len(table)
    out = np.zeros((n, n))
    for i in range(n - 1):
        p = (table[i + 1 :] != table[i]).mean(axis=1)
        out[i, i + 1 :] = -0.75 * np.log(np.clip(1.0 - 4.0 * p / 3.0, 1e-6, None))
    return out + out.T


def join_neighbours(d):
    """Clades (as frozen sets of taxa) in the order in which they are joined."""
    names = [frozenset([i]) for i in range(len(d))]
    clades = []
    while len(names) > 3:
        n = len(names)
        r = d.sum(axis=1)
        q = (n - 2) * d - r[:, None] - r[None, :]
        np.fill_diagonal(q, np.inf)
        i, j = divmod(int(np.argmin(q)), n)
        i, j = min(i, j), max(i, j)
        new = 0.5 * (d[i] + d[j] - d[i, j])
        keep = [k for k in range(n) if k not in (i, j)]
        clade = names[i] | names[j]
        clades.append(clade)
        smaller = d[np.ix_(keep, keep)]
        d = np.zeros((n - 1, n - 1))
        d[:-1, :-1] = smaller
        d[-1, :-1] = d[:-1, -1] = new[keep]
        names = [names[k] for k in keep] + [clade]
    return clades


def replicate(seed):
    rng = np.random.default_rng(seed)
    sites = rng.integers(0, SITES, SITES)
    table = np.ascontiguousarray(alignment[:, sites])
    return [tuple(sorted(c)) for c in join_neighbours(distances(table))]


def main():
    global alignment
    alignment = evolve()
    reference = join_neighbours(distances(alignment))
    print(f"{TAXA} taxa, {SITES} sites, {len(reference)} clades")

    support = Counter()
    with mp.get_context("fork").Pool(2) as pool:
        for clades in pool.imap_unordered(replicate, range(REPLICATES)):
            support.update(clades)

    strong = 0
    for clade in sorted(reference, key=len, reverse=True):
        share = support[tuple(sorted(clade))] / REPLICATES
        strong += share >= 0.9
    print(f"clades with at least 90 % support: {strong}")
    common = support.most_common(5)
    print("counts of the five commonest:", [n for _, n in common])


if __name__ == "__main__":
    main()
