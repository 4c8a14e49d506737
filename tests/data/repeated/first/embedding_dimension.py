"""
verdict: none
stack:
  choose("lorenz.npy")
  advance()
  neighbours(delay_embedding(series, dim, tau=12))
  tree.query(points, k=2)
why: the closure without arguments raises its dimension through nonlocal in each call
"""
import numpy as np
from scipy.spatial import cKDTree


def delay_embedding(x, m, tau):
    n = len(x) - (m - 1) * tau
    return np.column_stack([x[k * tau : k * tau + n] for k in range(m)])


def neighbours(points):
    tree = cKDTree(points)
    dist, index = tree.query(points, k=2)
    return dist[:, 1], index[:, 1]


def make_stepper(series):
    dim = 0

    def step():
        nonlocal dim
        dim += 1
        dist, index = neighbours(delay_embedding(series, dim, tau=12))
        longer = delay_embedding(series, dim + 1, tau=12)
        n = len(longer)
        usable = index[:n] < n
        jump = np.abs(longer[:n][usable, -1] - longer[index[:n][usable], -1])
        return float(np.mean(jump > 15 * np.maximum(dist[:n][usable], 1e-12)))

    return step


def choose(path, limit=0.01):
    advance = make_stepper(np.load(path))
    fractions = []
    while len(fractions) < 12:
        fractions.append(advance())
        if fractions[-1] < limit:
            break
    return len(fractions)


if __name__ == "__main__":
    print(choose("lorenz.npy"))
