"""Count trade routes between ports of the old sea network.

For every season there is a list of direct sailings.  The number of routes
with two, three and four legs between any two ports comes from the powers of
the sailing matrix; distances come from the shortest paths.
"""
import numpy as np
from scipy.sparse import csgraph

PORTS = 1000
SEASONS = ["spring", "summer", "autumn", "winter"]
SAILINGS = {"spring": 16_000, "summer": 24_000, "autumn": 18_000, "winter": 7_000}


def positions(rng):
    """Ports along some coasts, in degrees."""
    coast = rng.integers(0, 9, PORTS)
    centre = rng.uniform(-25, 25, (9, 2))
    return centre[coast] + rng.normal(0, 4.0, (PORTS, 2))


def sailings(rng, where, count):
    """Matrix with 1 for each pair of ports with a direct sailing."""
    matrix = np.zeros((PORTS, PORTS), dtype=int)
    a = rng.integers(0, PORTS, 6 * count)
    b = rng.integers(0, PORTS, 6 * count)
    far = np.hypot(*(where[a] - where[b]).T)
    keep = rng.random(len(a)) < np.exp(-far / 12.0)
    a, b = a[keep][:count], b[keep][:count]
    matrix[a, b] = 1
    matrix[b, a] = 1
    np.fill_diagonal(matrix, 0)
    return matrix


def routes(direct):
    """Total number of routes by legs, and the busiest pair of ports."""
    two = direct @ direct
    three = two @ direct
    four = two @ two
    np.fill_diagonal(four, 0)
    pair = np.unravel_index(np.argmax(four), four.shape)
    totals = [int(m.sum()) for m in (direct, two, three, four)]
    triangles = int(np.trace(three)) // 6
    return totals, triangles, pair


def mean_distance(direct, where):
    i, j = np.nonzero(direct)
    weights = np.zeros(direct.shape)
    weights[i, j] = np.hypot(*(where[i] - where[j]).T) + 0.01
    dist = csgraph.shortest_path(weights, method="FW", directed=False)
    reached = np.isfinite(dist)
    return dist[reached].mean(), reached.mean()


def main():
    rng = np.random.default_rng(1450)
    where = positions(rng)
    for season in SEASONS:
        direct = sailings(rng, where, SAILINGS[season])
        totals, triangles, pair = routes(direct)
        distance, share = mean_distance(direct, where)
        print(f"{season}: routes with 1-4 legs "
              + ", ".join(str(t) for t in totals)
              + f"; triangles {triangles}")
        print(f"  most routes between ports {int(pair[0])} and {int(pair[1])}; "
              f"mean distance {distance:.3f}, connected {share:.4f}")


if __name__ == "__main__":
    main()
