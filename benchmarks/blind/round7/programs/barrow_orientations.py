"""Do neighbouring burial mounds point the same way? Permutation test in two processes."""
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from multiprocessing import Pool

import numpy as np

BARROWS = 620
TASKS, PER_TASK = 240, 200
RANGES_KM = (1.0, 3.0, 8.0)
STATE = {}


def survey():
    """Places in a few cemeteries, and axes that follow the valley in most of them."""
    rng = np.random.default_rng(1877)
    centre = rng.uniform(0, 40, (12, 2))
    home = rng.integers(0, 12, BARROWS)
    place = centre[home] + rng.normal(0, 0.9, (BARROWS, 2))
    axis = (0.35 * np.sin(home) + rng.normal(0, 0.8, BARROWS)) % math.pi
    return place, axis


def prepare(place, axis):
    """Pairs of mounds that are near enough to count, once for a process."""
    first, second = np.triu_indices(BARROWS, 1)
    gap = np.hypot(*(place[first] - place[second]).T)
    near = gap < 3 * max(RANGES_KM)
    STATE["first"], STATE["second"] = first[near], second[near]
    weights = np.exp(-gap[near][:, None] / np.array(RANGES_KM))
    STATE["weights"] = weights / weights.sum(axis=0)
    STATE["axis"] = axis


def statistic(axis):
    """Mean angle between the axes of two mounds (not more than 90 degrees), near pairs weighing more."""
    angle = axis[STATE["first"]]
    angle -= axis[STATE["second"]]
    np.abs(angle, out=angle)
    np.minimum(angle, math.pi - angle, out=angle)
    return angle @ STATE["weights"]


def permuted(task):
    rng = np.random.default_rng([1877, task])
    return np.array([statistic(rng.permutation(STATE["axis"])) for _ in range(PER_TASK)])


def main():
    place, axis = survey()
    prepare(place, axis)
    observed = statistic(axis)
    with Pool(2, initializer=prepare, initargs=(place, axis)) as pool:
        parts = list(pool.imap_unordered(permuted, range(TASKS), chunksize=2))
    chance = np.concatenate(parts)
    print("mounds", BARROWS, "pairs", len(STATE["first"]), "permutations", len(chance))
    for k, km in enumerate(RANGES_KM):
        p = (1 + np.sum(chance[:, k] <= observed[k])) / (1 + len(chance))
        print("range %.0f km: angle %.4f, by chance %.4f, p %.5f" % (km, observed[k], chance[:, k].mean(), p))


if __name__ == "__main__":
    main()
