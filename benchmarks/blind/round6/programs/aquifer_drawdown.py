"""Drawdown around three pumping wells in a confined aquifer, implicit in time."""
import os
import shutil
import tempfile

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

N = 180
STEPS = 42
DT, STORAGE, SPACING = 0.5, 2e-3, 25.0


def transmissivity(rng):
    field = rng.standard_normal((N, N))
    for _ in range(12):
        field = (field + np.roll(field, 1, 0) + np.roll(field, 1, 1) + np.roll(field, -1, 0)) / 4
    return np.exp(2.0 * field / field.std() * 0.4) * 8e-3


def system(t):
    index = np.arange(N * N).reshape(N, N)
    rows, cols, vals = [], [], []
    for a, b, ta, tb in ((index[:, :-1], index[:, 1:], t[:, :-1], t[:, 1:]),
                         (index[:-1], index[1:], t[:-1], t[1:])):
        link = (2 * ta * tb / (ta + tb) / SPACING ** 2).ravel()
        a, b = a.ravel(), b.ravel()
        rows += [a, b, a, b]
        cols += [b, a, a, b]
        vals += [-link, -link, link, link]
    flow = sp.csc_matrix((np.concatenate(vals), (np.concatenate(rows), np.concatenate(cols))),
                         shape=(N * N, N * N))
    border = np.zeros((N, N))
    border[0] = border[-1] = border[:, 0] = border[:, -1] = 1e-4
    return (flow + sp.diags(STORAGE / DT * np.ones(N * N) + border.ravel())).tocsc()


def fluxes(head, t):
    grad_y, grad_x = np.gradient(head, SPACING)
    return -t * grad_x, -t * grad_y


def simulate(folder):
    t = transmissivity(np.random.default_rng(17))
    matrix = system(t)
    y, x = np.indices((N, N)) * SPACING
    head = np.zeros((N, N))
    files = []
    for step in range(STEPS):
        rate = np.zeros((N, N))
        for well, (i, j) in enumerate(((50, 60), (90, 120), (130, 40))):
            rate[i, j] = -1e-2 * (1 + 0.5 * np.sin(0.3 * step + well))
        rhs = STORAGE / DT * head + rate
        head = spsolve(matrix, rhs.ravel()).reshape(N, N)
        qx, qy = fluxes(head, t)
        table = np.column_stack([x.ravel(), y.ravel(), head.ravel(), qx.ravel(), qy.ravel()])
        path = os.path.join(folder, f"heads_{step:03d}.dat")
        np.savetxt(path, table, fmt="%.10e")
        files.append(path)
    return files


def summarise(files):
    deepest, speed = [], []
    for path in files:
        table = np.loadtxt(path)
        deepest.append(table[:, 2].min())
        speed.append(np.hypot(table[:, 3], table[:, 4]).mean())
    return deepest, speed


def main():
    folder = tempfile.mkdtemp(prefix="aquifer_")
    try:
        deepest, speed = summarise(simulate(folder))
        print("steps", len(deepest))
        print("deepest head %.5f at step %d" % (min(deepest), int(np.argmin(deepest))))
        print("final mean flux %.5e" % speed[-1])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
