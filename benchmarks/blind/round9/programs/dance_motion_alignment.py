"""Pairwise time warping of recorded dance phrases; which performances are alike."""
import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

PHRASES = 16
FRAMES = 2600
MARKERS = 12


def phrase(rng, style):
    """Marker positions of one performance of a phrase, at its own tempo."""
    base = np.random.default_rng(style)
    tempo = np.cumsum(rng.gamma(20.0, 0.05, FRAMES))
    tempo *= 40.0 / tempo[-1]
    freq = base.uniform(0.2, 1.5, MARKERS * 3)
    phase = base.uniform(0, 6.28, MARKERS * 3)
    motion = np.sin(tempo[:, None] * freq + phase) + 0.4 * np.sin(2.3 * tempo[:, None] * freq)
    return motion + rng.normal(0, 0.05, motion.shape)


def warp_cost(a, b):
    """Dynamic time warping, one anti-diagonal of the table after the other."""
    n, m = len(a), len(b)
    local = a @ b.T
    local *= -2.0
    local += (a * a).sum(axis=1)[:, None]
    local += (b * b).sum(axis=1)
    np.sqrt(np.maximum(local, 0.0, out=local), out=local)
    flipped = local[:, ::-1]
    before = np.full(n + 1, np.inf)
    last = np.full(n + 1, np.inf)
    last[1] = local[0, 0]
    for d in range(1, n + m - 1):
        low, high = max(0, d - m + 1), min(n, d + 1)
        cost = flipped.diagonal(m - 1 - d)
        fresh = np.full(n + 1, np.inf)
        best = np.minimum(last[low + 1:high + 1], last[low:high])
        np.minimum(best, before[low:high], out=best)
        np.add(best, cost, out=fresh[low + 1:high + 1])
        before, last = last, fresh
    return last[n] / (n + m)


def main():
    rng = np.random.default_rng(1913)
    styles = [k % 4 for k in range(PHRASES)]
    phrases = [phrase(rng, 50 + s) for s in styles]
    table = np.zeros((PHRASES, PHRASES))
    for i in range(PHRASES):
        for j in range(i + 1, PHRASES):
            table[i, j] = table[j, i] = warp_cost(phrases[i], phrases[j])
    groups = fcluster(linkage(squareform(table), "average"), 4, "maxclust")
    print("pairs:", PHRASES * (PHRASES - 1) // 2)
    print("mean cost: %.4f, smallest %.4f" % (table[table > 0].mean(), table[table > 0].min()))
    print("groups:", groups.tolist())
    print("pure:", len(set(zip(styles, groups.tolist()))) == 4)


if __name__ == "__main__":
    main()
