"""Link cells between consecutive frames of a growing culture by optimal assignment."""
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

CELLS = 2_600
FRAMES = 130
GATE = 40.0


def frame(number):
    rng = np.random.default_rng(1000)
    position = rng.random((CELLS, 2)) * 1500
    velocity = rng.normal(0, 6.0, (CELLS, 2))
    wobble = np.random.default_rng(2000 + number).normal(0, 5.0, (CELLS, 2))
    size = 40 + 10 * rng.random(CELLS) + 0.2 * number
    seen = position + velocity * number + wobble
    order = np.random.default_rng(3000 + number).permutation(CELLS)
    return seen[order], size[order], order


def link(number):
    before, size_before, truth_before = frame(number)
    after, size_after, truth_after = frame(number + 1)
    cost = cdist(before, after)
    cost += 0.5 * np.abs(size_before[:, None] - size_after[None, :])
    np.minimum(cost, 4 * GATE, out=cost)
    rows, cols = linear_sum_assignment(cost)
    moved = np.hypot(*(after[cols] - before[rows]).T)
    kept = moved < GATE
    right = (truth_before[rows] == truth_after[cols]) & kept
    return number, int(kept.sum()), float(right.sum() / max(kept.sum(), 1)), float(moved[kept].mean())


def main():
    with ProcessPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(link, range(FRAMES)))
    kept = np.array([r[1] for r in results])
    right = np.array([r[2] for r in results])
    moved = np.array([r[3] for r in results])
    print("frame pairs", len(results), "links", int(kept.sum()))
    print("correct links %.4f" % np.average(right, weights=kept))
    print("mean displacement %.3f" % np.average(moved, weights=kept))
    print("fewest links in one pair", int(kept.min()))


if __name__ == "__main__":
    main()
