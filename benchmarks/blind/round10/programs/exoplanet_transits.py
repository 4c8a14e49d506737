"""Box search for transits in the light curves of many stars."""
import multiprocessing as mp

import numpy as np
import pandas as pd
from scipy import optimize, signal, stats

STARS = 26
POINTS = 18_000
TRIALS = 1_500
PHASE_BINS = 120


def light_curve(star):
    rng = np.random.default_rng(5000 + star)
    time = np.sort(rng.uniform(0.0, 80.0, POINTS))
    flux = 1.0 + 2e-4 * rng.standard_normal(POINTS)
    flux += 5e-4 * np.sin(2 * np.pi * time / rng.uniform(9, 20))
    period = rng.uniform(1.5, 6.0)
    flux[(time % period) / period < 0.02] -= 1.5e-3
    return time, flux, period


def detrend(time, flux):
    grid = np.linspace(time[0], time[-1], 4001)
    smooth = signal.savgol_filter(np.interp(grid, time, flux), 401, 2)
    return flux / np.interp(time, grid, smooth) - 1.0


def box_power(time, flux, period):
    phase = ((time / period) % 1.0 * PHASE_BINS).astype(np.int64)
    count = np.bincount(phase, minlength=PHASE_BINS)
    total = np.bincount(phase, weights=flux, minlength=PHASE_BINS)
    pair_sum = total + np.roll(total, -1)
    pair_count = count + np.roll(count, -1)
    depth = -pair_sum / np.maximum(pair_count, 1)
    return (depth * np.sqrt(np.maximum(pair_count, 1))).max()


def search(star):
    time, flux, period = light_curve(star)
    residual = detrend(time, flux)
    trials = np.geomspace(1.2, 7.0, TRIALS)
    power = np.array([box_power(time, residual, p) for p in trials])
    start = trials[power.argmax()]
    fine = optimize.minimize_scalar(lambda p: -box_power(time, residual, p),
                                    bounds=(start * 0.999, start * 1.001), method="bounded")
    noise = stats.median_abs_deviation(power)
    return star, float(fine.x), float((power.max() - np.median(power)) / noise), period


def main():
    context = mp.get_context("spawn")
    rows = []
    with context.Pool(2, maxtasksperchild=1) as pool:
        for row in pool.imap_unordered(search, range(STARS)):
            rows.append(row)
    table = pd.DataFrame(rows, columns=["star", "found", "snr", "true"]).sort_values("star")
    ratio = table["found"] / table["true"]
    near = (np.abs(ratio - np.round(ratio)) < 0.01) | (np.abs(1 / ratio - np.round(1 / ratio)) < 0.01)
    print(f"{len(table)} stars searched, median snr {table['snr'].median():.1f}")
    print(f"periods recovered (or a multiple): {int(near.sum())}")


if __name__ == "__main__":
    main()
