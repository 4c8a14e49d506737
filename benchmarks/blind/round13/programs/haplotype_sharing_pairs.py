"""Identity by state between all pairs of haplotypes, in two worker processes."""
import multiprocessing as mp
import os
import tempfile

import numpy as np

HAPLOTYPES = 1500
SITES = 20000
WORKERS = 2


def make_panel(path):
    """Haplotypes are mosaics of 40 founders with a few new mutations."""
    rng = np.random.default_rng(23)
    founders = (rng.random((40, SITES)) < rng.beta(0.5, 1.5, SITES)).astype(np.int8)
    panel = np.empty((HAPLOTYPES, SITES), np.int8)
    edges = np.arange(0, SITES + 1, 1000)
    for i in range(HAPLOTYPES):
        for left, right in zip(edges[:-1], edges[1:]):
            panel[i, left:right] = founders[rng.integers(40), left:right]
    flips = rng.integers(0, SITES, (HAPLOTYPES, 60))
    panel[np.arange(HAPLOTYPES)[:, None], flips] ^= 1
    np.save(path, panel)


def compare_rows(job):
    """Compare each haplotype of `rows` with all the later ones."""
    path, rows = job
    panel = np.load(path, mmap_mode="r")
    histogram = np.zeros(101, np.int64)
    best = (-1.0, -1, -1)
    for i in rows:
        later = panel[i + 1:]
        if len(later) == 0:
            continue
        same = (later == panel[i]).sum(axis=1) / SITES
        histogram += np.bincount((same * 100).astype(int), minlength=101)
        k = int(same.argmax())
        best = max(best, (float(same[k]), int(i), int(i + 1 + k)))
    return histogram, best


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "panel.npy")
        make_panel(path)
        parts = np.array_split(np.arange(HAPLOTYPES), WORKERS)
        with mp.Pool(WORKERS) as pool:
            results = pool.map(compare_rows, [(path, part) for part in parts], chunksize=1)
    histogram = sum(result[0] for result in results)
    best = max(result[1] for result in results)
    pairs = HAPLOTYPES * (HAPLOTYPES - 1) // 2
    assert histogram.sum() == pairs
    mean = (histogram * (np.arange(101) + 0.5)).sum() / pairs
    print("pairs compared:", pairs)
    print("mean identity by state: %.1f %%" % mean)
    print("closest pair: %d and %d (%.2f %% identical)" % (best[1], best[2], 100 * best[0]))


if __name__ == "__main__":
    main()
