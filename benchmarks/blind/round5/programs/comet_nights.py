"""Brightness of a comet over a run of nights.

Each night has some frames.  For every frame a profile (coma plus nucleus
plus sky) is fitted, two frames at a time, and the night's light curve goes
into a table.
"""
import concurrent.futures as cf
import multiprocessing as mp

import numpy as np
import pandas as pd
from scipy import optimize, signal

NIGHTS = 18
FRAMES = 12
SIZE = 96
CONTEXT = mp.get_context("spawn")


def frame(night, number):
    """One exposure: coma, nucleus and sky with photon noise."""
    rng = np.random.default_rng(1000 * night + number)
    y, x = np.mgrid[:SIZE, :SIZE] - SIZE / 2.0
    r = np.hypot(x - rng.normal(0, 1), y - rng.normal(0, 1)) + 0.7
    flux = 900 + 45 * night + 20 * np.sin(number / 3.0)
    light = flux / r + 4 * flux * np.exp(-r * r / 5.0) + 180.0
    return rng.poisson(light).astype(float)


def model(p, x, y):
    r2 = (x - p[3]) ** 2 + (y - p[4]) ** 2
    r = np.sqrt(r2 + 0.25)
    return p[0] / r + p[1] * np.exp(-r2 / p[5] ** 2) + p[2]


def measure(task):
    """Fit one frame and return its coma brightness."""
    night, number = task
    image = signal.medfilt2d(frame(night, number), 3)
    y, x = np.mgrid[:SIZE, :SIZE] - SIZE / 2.0
    x, y, data = x.ravel(), y.ravel(), image.ravel()
    start = [800.0, 3000.0, 150.0, 0.0, 0.0, 2.0]
    fit = optimize.least_squares(lambda p: model(p, x, y) - data, start,
                                 loss="soft_l1", f_scale=15.0)
    return night, number, fit.x[0], fit.x[2], fit.cost


def measure_night(night):
    tasks = [(night, k) for k in range(FRAMES)]
    with cf.ProcessPoolExecutor(2, mp_context=CONTEXT) as pool:
        return list(pool.map(measure, tasks))


def main():
    rows = []
    for night in range(NIGHTS):
        rows.extend(measure_night(night))
    table = pd.DataFrame(rows, columns=["night", "frame", "coma", "sky", "cost"])
    nightly = table.groupby("night")[["coma", "sky"]].median()
    slope = np.polyfit(nightly.index, nightly["coma"], 1)[0]
    print(f"frames: {len(table)}")
    print(f"coma rises by {slope:.2f} counts a night")
    print(f"sky level: {nightly['sky'].mean():.2f}")


if __name__ == "__main__":
    main()
