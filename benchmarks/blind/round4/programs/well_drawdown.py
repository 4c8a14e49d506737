"""Drawdown around a well whose pump switches with the water level."""
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

NX = NY = 220
STEPS = 1100
DT = 0.05


def flow_matrix(rng):
    logk = rng.normal(0, 0.6, (NY, NX))
    for _ in range(3):
        logk = 0.25 * (np.roll(logk, 1, 0) + np.roll(logk, -1, 0)
                       + np.roll(logk, 1, 1) + np.roll(logk, -1, 1))
    k = np.exp(logk)
    cell = np.arange(NX * NY).reshape(NY, NX)
    parts = []
    for a, b, ka, kb in ((cell[:, :-1], cell[:, 1:], k[:, :-1], k[:, 1:]),
                         (cell[:-1], cell[1:], k[:-1], k[1:])):
        t = (2 * ka * kb / (ka + kb)).ravel()
        a, b = a.ravel(), b.ravel()
        parts.append((np.concatenate([a, b, a, b]), np.concatenate([b, a, a, b]),
                      np.concatenate([-t, -t, t, t])))
    i, j, v = (np.concatenate(x) for x in zip(*parts))
    lap = sparse.csc_matrix((v, (i, j)), shape=(NX * NY, NX * NY))
    return (sparse.identity(NX * NY, format="csc") + DT * 40.0 * lap).tocsc()


def main():
    rng = np.random.default_rng(1935)
    lu = splu(flow_matrix(rng))
    head = np.full(NX * NY, 20.0)
    well = (NY // 2) * NX + NX // 2
    recharge = rng.gamma(0.6, 0.002, STEPS)
    pumping = True
    on = 0
    low = []
    for s in range(STEPS):
        rhs = head + DT * recharge[s]
        if pumping:
            rhs[well] -= DT * 900.0
            on += 1
        head = lu.solve(rhs)
        if head[well] < 8.0:
            pumping = False
        elif head[well] > 15.0:
            pumping = True
        low.append(head[well])
    print(f"pump on in {on} of {STEPS} steps")
    print(f"well level {low[-1]:.4f}  lowest {min(low):.4f}  mean head {head.mean():.5f}")


if __name__ == "__main__":
    main()
