"""Cooling of a casting in a sand mould: implicit heat equation with maps for the foundry."""
import os
import tempfile

import numpy as np
import scipy.sparse as sp
from scipy.ndimage import zoom
from scipy.sparse.linalg import spsolve

SIDE = 150
STEPS = 34
DT = 20.0
CELL = 0.004


def conductivities():
    """Iron in the middle, sand around, a chill plate on one side."""
    k = np.full((SIDE, SIDE), 0.9)
    k[45:105, 30:120] = 35.0
    k[60:90, 120:130] = 120.0
    return k


def assemble(k):
    """Backward Euler matrix with harmonic means between the cells."""
    number = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    capacity = np.where(k > 10, 4.2e6, 1.6e6)
    rows, cols, values = [], [], []
    diagonal = np.ones(SIDE * SIDE)
    for a, b in ((np.s_[:-1, :], np.s_[1:, :]), (np.s_[:, :-1], np.s_[:, 1:])):
        flow = DT * 2 * k[a] * k[b] / (k[a] + k[b]) / CELL ** 2
        for here, there in ((a, b), (b, a)):
            weight = (flow / capacity[here]).ravel()
            rows.append(number[here].ravel())
            cols.append(number[there].ravel())
            values.append(-weight)
            np.add.at(diagonal, number[here].ravel(), weight)
    rows.append(number.ravel())
    cols.append(number.ravel())
    values.append(diagonal)
    shape = (SIDE * SIDE, SIDE * SIDE)
    return sp.csc_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape)


def main():
    k = conductivities()
    matrix = assemble(k)
    iron = k == 35.0
    temperature = np.where(iron, 1350.0, 20.0)
    solidus = np.full((SIDE, SIDE), np.nan)
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, STEPS + 1):
            temperature = spsolve(matrix, temperature.ravel()).reshape(SIDE, SIDE)
            frozen = iron & (temperature < 1150.0) & np.isnan(solidus)
            solidus[frozen] = step * DT
            drawing = zoom(temperature, 7, order=3)
            name = os.path.join(folder, "map_%03d.npz" % step)
            np.savez_compressed(name, temperature=drawing, minutes=step * DT / 60)
        last = np.load(os.path.join(folder, "map_%03d.npz" % STEPS))
        print("maps:", len(os.listdir(folder)), "of", last["temperature"].shape)
        print("time of the last map: %.1f min" % float(last["minutes"]))
    print("hottest iron: %.1f C, hottest sand: %.1f C" % (temperature[iron].max(), temperature[k == 0.9].max()))
    print("frozen iron: %.3f" % np.mean(np.isfinite(solidus[iron])))
    print("mean freezing time: %.0f s" % np.nanmean(solidus))


if __name__ == "__main__":
    main()
