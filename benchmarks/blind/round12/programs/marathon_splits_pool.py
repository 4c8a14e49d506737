"""Pace collapse in a marathon: bootstrap of split times by age class on two worker processes."""
import multiprocessing as mp
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

RUNNERS = 24_000
SPLITS = 8
ROUNDS = 6000
CHUNK = 60

_splits = None
_age = None


def start_lists():
    rng = np.random.default_rng(42195)
    age = rng.integers(0, 9, RUNNERS)
    base = rng.gamma(18.0, 0.012, RUNNERS) + 0.16 + 0.006 * age
    fade = np.maximum(rng.normal(0.0, 0.012, RUNNERS) + 0.002 * age, -0.01)
    wall = (rng.random(RUNNERS) < 0.18) * rng.exponential(0.05, RUNNERS)
    km = np.arange(1, SPLITS + 1)
    pace = base[:, None] + fade[:, None] * km / SPLITS + wall[:, None] * (km > 5)
    return pace + rng.normal(0.0, 0.003, (RUNNERS, SPLITS)), age


def prepare():
    global _splits, _age
    _splits, _age = start_lists()


def slope_and_knee(splits):
    km = np.arange(1, SPLITS + 1, dtype=float)
    centred = km - km.mean()
    slope = splits @ centred / (centred @ centred)
    early = splits[:, :5].mean(axis=1)
    late = splits[:, 5:].mean(axis=1)
    return slope, late / early


def resample(first):
    out = np.empty((CHUNK, 9, 3))
    for k in range(CHUNK):
        rng = np.random.default_rng([7, first + k])
        pick = rng.integers(0, RUNNERS, RUNNERS)
        age = _age[pick]
        slope, knee = slope_and_knee(_splits[pick])
        order = np.lexsort((knee, age))
        edges = np.searchsorted(age[order], np.arange(10))
        count = np.maximum(np.diff(edges), 1)
        out[k, :, 0] = np.bincount(age, slope, 9) / count
        out[k, :, 1] = knee[order][(edges[:-1] + edges[1:]) // 2]
        out[k, :, 2] = np.bincount(age, knee > 1.15, 9) / count
    return out


def main():
    with mp.get_context("fork").Pool(2, initializer=prepare) as pool:
        parts = pool.map(resample, range(0, ROUNDS, CHUNK), chunksize=1)
    draws = np.concatenate(parts)
    low, mid, high = np.percentile(draws, [2.5, 50.0, 97.5], axis=0)
    for a in range(0, 9, 2):
        print(f"age class {a}: slope {mid[a, 0]:.5f} ({low[a, 0]:.5f} to {high[a, 0]:.5f}), "
              f"median ratio {mid[a, 1]:.4f}, hit the wall {100 * mid[a, 2]:.2f} %")
    print(f"{len(draws)} resamples of {RUNNERS} runners")


if __name__ == "__main__":
    main()
