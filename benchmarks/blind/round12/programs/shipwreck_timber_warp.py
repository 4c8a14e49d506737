"""Alignment of growth curves of ship timbers by dynamic time warping, antidiagonal by antidiagonal."""
import multiprocessing as mp

import numpy as np

LENGTH = 44_000
PAIRS = 6


def timber(seed):
    rng = np.random.default_rng(seed)
    pace = 1.0 + 0.25 * np.sin(np.arange(LENGTH) / (700.0 + 40 * seed))
    place = np.cumsum(pace)
    climate = np.sin(place / 37.0) + 0.6 * np.sin(place / 11.3 + 0.4) + 0.4 * np.sin(place / 211.0)
    return climate + 0.25 * rng.standard_normal(LENGTH)


def warp_distance(a, b):
    n, m = len(a), len(b)
    mirrored = b[::-1].copy()
    before = np.full(n + 1, np.inf)
    last = np.full(n + 1, np.inf)
    here = np.full(n + 1, np.inf)
    cost = np.empty(n)
    before[0] = 0.0
    for d in range(2, n + m + 1):
        lo, hi = max(1, d - m), min(n, d - 1)
        size = hi - lo + 1
        step = cost[:size]
        np.subtract(a[lo - 1:hi], mirrored[m - d + lo: m - d + hi + 1], out=step)
        np.abs(step, out=step)
        best = here[lo:hi + 1]
        np.minimum(last[lo - 1:hi], last[lo:hi + 1], out=best)
        np.minimum(best, before[lo - 1:hi], out=best)
        best += step
        here[lo - 1] = np.inf
        if hi < n:
            here[hi + 1] = np.inf
        before, last, here = last, here, before
    return float(last[n])


def compare(pair):
    first, second = pair
    return first, second, warp_distance(timber(first), timber(second)) / LENGTH


def main():
    pairs = [(1, 2), (1, 3), (2, 3), (1, 4), (2, 4), (3, 4)][:PAIRS]
    with mp.get_context("fork").Pool(2) as pool:
        results = pool.map(compare, pairs, chunksize=1)
    for first, second, distance in results:
        print(f"timbers {first} and {second}: distance {distance:.5f}")
    first, second, distance = min(results, key=lambda r: r[2])
    print(f"nearest {first} and {second}")


if __name__ == "__main__":
    main()
