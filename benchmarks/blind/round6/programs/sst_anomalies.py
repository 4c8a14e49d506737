"""Sea surface temperature anomalies, their weekly mean and marine heat wave days, for an ensemble."""
import numpy as np

YEARS, DAYS, LAT, LON = 8, 365, 110, 190
MEMBERS = 3
DTYPE = np.float16


def member(seed):
    rng = np.random.default_rng(seed)
    lat = np.linspace(-1, 1, LAT, dtype=np.float32)[:, None]
    mean = 26 - 18 * lat ** 2 + rng.standard_normal((LAT, LON), dtype=np.float32)
    season = np.cos(2 * np.pi * np.arange(DAYS) / DAYS).astype(np.float32)
    cube = np.empty((YEARS, DAYS, LAT, LON), dtype=DTYPE)
    for year in range(YEARS):
        noise = 0.8 * rng.standard_normal((DAYS, LAT, LON), dtype=np.float32)
        noise += mean
        noise += season[:, None, None] * (3 * lat)
        noise += 0.03 * year
        cube[year] = noise
    return cube


def anomalies(cube):
    climatology = cube.mean(axis=0)
    return (cube - climatology).reshape(YEARS * DAYS, LAT, LON)


def weekly(anomaly):
    days = anomaly.shape[0] - 6
    total = anomaly[0:days].copy()
    for lag in range(1, 7):
        total += anomaly[lag:lag + days]
    total /= DTYPE(7)
    return total


def heat_wave_days(smooth):
    spread = smooth.std(axis=0)
    return (smooth > DTYPE(1.28) * spread).sum(axis=0)


def basin_index(smooth):
    box = smooth[:, 40:70, 60:130]
    return box.mean(axis=(1, 2), dtype=np.float32)


def main():
    indices = []
    for seed in range(MEMBERS):
        cube = member(seed)
        smooth = weekly(anomalies(cube))
        days = heat_wave_days(smooth)
        index = basin_index(smooth)
        indices.append(index)
        print("member %d  heat wave days %.2f  index spread %.3f" % (seed, days.mean(), index.std()))
    ensemble = np.mean(indices, axis=0)
    print("ensemble trend %.4f" % (ensemble[-365:].mean() - ensemble[:365].mean()))


if __name__ == "__main__":
    main()
