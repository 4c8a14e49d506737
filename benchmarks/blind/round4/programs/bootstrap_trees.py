"""Bootstrap support of a neighbour joining tree (two worker processes)."""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor

import numpy as np

TAXA = 200
SITES = 3000
TASKS = 40
PER_TASK = 14


def alignment(seed):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, 4, SITES)]
    for _ in range(TAXA - 1):
        child = rows[rng.integers(len(rows))].copy()
        hit = rng.random(SITES) < 0.06
        child[hit] = rng.integers(0, 4, int(hit.sum()))
        rows.append(child)
    return np.array(rows)


def distances(columns):
    same = np.zeros((TAXA, TAXA), dtype=np.float32)
    for base in range(4):
        one = (columns == base).astype(np.float32)
        same += one @ one.T
    p = np.clip(1.0 - same.astype(float) / columns.shape[1], 0.0, 0.74)
    return -0.75 * np.log(1.0 - 4.0 * p / 3.0)


def cherries(d):
    """Pairs of leaves joined directly by neighbour joining."""
    n = len(d)
    label = list(range(n))
    alive = np.arange(n)
    pairs = set()
    while len(alive) > 3:
        sub = d[np.ix_(alive, alive)]
        r = sub.sum(axis=1)
        q = (len(alive) - 2) * sub - r[:, None] - r[None, :]
        np.fill_diagonal(q, np.inf)
        i, j = divmod(int(q.argmin()), len(alive))
        a, b = alive[i], alive[j]
        if label[a] < TAXA and label[b] < TAXA and label[a] >= 0 and label[b] >= 0:
            pairs.add((min(label[a], label[b]), max(label[a], label[b])))
        d[a, :] = 0.5 * (d[a, :] + d[b, :] - d[a, b])
        d[:, a] = d[a, :]
        d[a, a] = 0.0
        label[a] = -1
        alive = np.delete(alive, j)
    return pairs


def batch(task):
    rng = np.random.default_rng(9000 + task)
    data = alignment(3)
    seen = {}
    for _ in range(PER_TASK):
        columns = data[:, rng.integers(0, SITES, SITES)]
        for pair in cherries(distances(columns)):
            seen[pair] = seen.get(pair, 0) + 1
    return seen


def main():
    support = {}
    with ProcessPoolExecutor(max_workers=2) as pool:
        for seen in pool.map(batch, range(TASKS)):
            for pair, n in seen.items():
                support[pair] = support.get(pair, 0) + n
    total = TASKS * PER_TASK
    strong = [p for p, n in support.items() if n > 0.9 * total]
    print("replicates", total, "pairs", len(support), "well supported", len(strong))
    top = sorted(support, key=lambda p: (-support[p], p))[:3]
    print(", ".join(f"{a}-{b}:{support[a, b]}" for a, b in top))


if __name__ == "__main__":
    main()
