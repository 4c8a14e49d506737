"""Methane fluxes of peat hollows from automatic chambers.

Each chamber gives a concentration every two seconds. The local slope is
followed with a moving regression, and each closure is fitted with a
saturating exponential.
"""
import numpy as np
import pandas as pd
from scipy.optimize import curve_fit

CHAMBERS = 6
CLOSURES = 400
POINTS = 120
WINDOW = 31


def record(chamber):
    rng = np.random.default_rng(40 + chamber)
    t = np.arange(POINTS) * 2.0
    pieces = []
    for _ in range(CLOSURES):
        limit = rng.uniform(8.0, 30.0)
        rate = rng.uniform(0.004, 0.02)
        pieces.append(1.9 + limit * (1.0 - np.exp(-rate * t)) + rng.normal(0, 0.05, POINTS))
    return pd.Series(np.concatenate(pieces), name=f"chamber_{chamber}")


def slope_weights():
    offsets = np.arange(WINDOW) - (WINDOW - 1) / 2
    return offsets / (offsets ** 2).sum() / 2.0


def local_slopes(series, weights):
    return series.rolling(WINDOW, center=True).apply(lambda w: np.dot(weights, w))


def saturating(t, base, limit, rate):
    return base + limit * (1.0 - np.exp(-rate * t))


def closure_fits(series):
    t = np.arange(POINTS) * 2.0
    fluxes = []
    for start in range(0, len(series), POINTS):
        part = series.to_numpy()[start:start + POINTS]
        guess = (part[0], part[-1] - part[0] + 1.0, 0.01)
        best, _ = curve_fit(saturating, t, part, p0=guess, maxfev=4000)
        fluxes.append(best[1] * best[2])
    return np.array(fluxes)


def main():
    weights = slope_weights()
    summary = []
    for chamber in range(CHAMBERS):
        series = record(chamber)
        slopes = local_slopes(series, weights)
        slopes = slopes.to_numpy().reshape(CLOSURES, POINTS)
        early = np.nanmax(slopes[:, :60], axis=1)
        fluxes = closure_fits(series)
        agreement = np.corrcoef(early, fluxes)[0, 1]
        summary.append((chamber, np.median(fluxes), np.median(early), agreement))
    for chamber, fitted, moving, agreement in summary:
        print(f"chamber {chamber}: fitted {fitted:.4f}, moving {moving:.4f} ppm/s, "
              f"r = {agreement:.3f}")


if __name__ == "__main__":
    main()
