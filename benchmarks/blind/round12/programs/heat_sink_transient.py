"""Warm-up of a finned heat sink: implicit steps on a fixed mesh, with a restart file for long runs."""
import os
import tempfile

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu, spsolve

SIDE = 190
STEPS = 40
DT = 0.5


def conductivity():
    k = np.full((SIDE, SIDE), 0.03)
    k[: SIDE // 4] = 3.0
    for left in range(10, SIDE - 10, 18):
        k[:, left:left + 7] = 3.0
    return k


def assemble(k):
    n = SIDE * SIDE
    number = np.arange(n).reshape(SIDE, SIDE)
    rows, cols, values = [], [], []
    diagonal = np.ones(n)
    for a, b, ka, kb in ((number[:, :-1], number[:, 1:], k[:, :-1], k[:, 1:]),
                         (number[:-1], number[1:], k[:-1], k[1:])):
        g = (DT * 2.0 * ka * kb / (ka + kb)).ravel()
        a, b = a.ravel(), b.ravel()
        rows += [a, b]
        cols += [b, a]
        values += [-g, -g]
        diagonal += np.bincount(a, g, minlength=n) + np.bincount(b, g, minlength=n)
    edge = np.zeros((SIDE, SIDE))
    edge[-1] = edge[:, 0] = edge[:, -1] = 0.02
    diagonal += DT * edge.ravel()
    rows.append(np.arange(n))
    cols.append(np.arange(n))
    values.append(diagonal)
    return sparse.csc_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape=(n, n))


def view_factors(patches=900):
    angle = np.linspace(0.0, 2.0 * np.pi, patches)
    total = 0.0
    for turn in range(200):
        x, y = np.cos(angle + 0.01 * turn), 0.6 * np.sin(angle)
        d2 = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2 + 1e-3
        total += float((np.abs(np.outer(x, y)) / d2).mean())
    return total / 200


def march(matrix, power, folder):
    field = np.zeros(SIDE * SIDE)
    history = []
    for step in range(STEPS):
        field = spsolve(matrix, field + DT * power)
        history.append(field)
        np.savez_compressed(os.path.join(folder, "restart.npz"), step=step, history=np.array(history))
    return np.array(history)


def main():
    k = conductivity()
    matrix = assemble(k)
    power = np.zeros((SIDE, SIDE))
    power[:6, SIDE // 3: 2 * SIDE // 3] = 1.2
    factor = view_factors()
    with tempfile.TemporaryDirectory() as folder:
        history = march(matrix, power.ravel() * (1.0 - 0.01 * factor / (1.0 + factor)), folder)
    hottest = history.max(axis=1)
    settled = int(np.argmax(hottest > 0.9 * hottest[-1]))
    print(f"hottest point {hottest[-1]:.4f} K, 90 % of it after {settled * DT:.1f} s")
    print(f"mean {history[-1].mean():.5f} K, fin tip {history[-1][-SIDE // 2]:.5f} K, view factor {factor:.5f}")


if __name__ == "__main__":
    main()
