"""Discharge of the plate of a lead battery (finite volumes).

The potential in the plate obeys a linear diffusion equation with fixed
conductivities; the current at the lug follows a driving cycle.
"""
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

ROWS = 360
COLS = 360
STEPS = 700
DT = 0.5


def conductivity():
    rng = np.random.default_rng(12)
    field = 1.0 + 0.2 * rng.random((ROWS, COLS))
    field[::20, :] *= 12.0
    field[:, ::26] *= 12.0
    return field


def system(field):
    index = np.arange(ROWS * COLS).reshape(ROWS, COLS)
    rows, cols, values = [], [], []
    for a, b, ka, kb in ((index[:, :-1], index[:, 1:], field[:, :-1], field[:, 1:]),
                         (index[:-1], index[1:], field[:-1], field[1:])):
        link = (2.0 * ka * kb / (ka + kb)).ravel()
        a, b = a.ravel(), b.ravel()
        rows += [a, b, a, b]
        cols += [b, a, a, b]
        values += [-link, -link, link, link]
    matrix = sparse.coo_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))))
    identity = sparse.identity(ROWS * COLS, format="csc")
    return (identity + DT * matrix.tocsc()).tocsc(), index


def driving_cycle():
    t = np.arange(STEPS) * DT
    current = 40.0 + 35.0 * np.sin(2 * np.pi * t / 60.0) + 20.0 * (np.sin(2 * np.pi * t / 13.0) > 0.6)
    return np.where(t % 100.0 < 15.0, -25.0, current)


def main():
    matrix, index = system(conductivity())
    factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
                   options={"SymmetricMode": True})
    lug = index[:6, 40:70].ravel()
    potential = np.full(ROWS * COLS, 2.1)
    charge = np.full(ROWS * COLS, 1.0)
    low = []
    for number, current in enumerate(driving_cycle()):
        source = 0.004 * (charge - 0.5) * (2.1 - potential)
        right = potential + DT * source
        right[lug] -= DT * current / lug.size * 0.02
        potential = factors.solve(right)
        charge -= 2e-4 * DT * np.clip(2.1 - potential, 0, None)
        low.append(potential.min())
        if number % 175 == 174:
            print(f"{(number + 1) * DT:6.1f} s: mean {potential.mean():.5f} V, "
                  f"lowest {potential.min():.5f} V")
    print(f"lowest potential {min(low):.5f} V, charge left {charge.mean():.6f}")


if __name__ == "__main__":
    main()
