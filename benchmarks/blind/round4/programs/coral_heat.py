"""Degree heating weeks and their uncertainty at coral reef sites."""
import os
import tempfile

import h5py
import numpy as np

DAYS, NLAT, NLON = 1460, 160, 160
REEFS = 38
BLOCK = 60


def write_product(path, rng):
    day = np.arange(DAYS)
    season = 2600 + 240 * np.sin(2 * np.pi * day / 365.25) + 0.03 * day
    place = rng.normal(0, 60, (NLAT, NLON))
    cube = (season[:, None, None] + place[None]).astype(np.int16)
    cube += rng.integers(-40, 40, size=cube.shape, dtype=np.int16)
    with h5py.File(path, "w") as f:
        d = f.create_dataset("sst", data=cube, chunks=(1, NLAT, NLON),
                             compression="gzip", compression_opts=1, shuffle=True)
        d.attrs["scale_factor"] = 0.01


def heating_weeks(temp):
    climatology = np.sort(temp)[int(0.92 * len(temp)):].mean() - 1.0
    hot = np.where(temp - climatology > 0.0, temp - climatology, 0.0)
    total = np.concatenate(([0.0], np.cumsum(hot)))
    dhw = np.zeros_like(temp)
    dhw[84:] = (total[84:-1] - total[:-85]) / 7.0
    return dhw


def resample(dhw, rng, rounds=1000):
    n = len(dhw)
    starts = rng.integers(0, n - BLOCK, size=(rounds, n // BLOCK + 1))
    idx = (starts[:, :, None] + np.arange(BLOCK)).reshape(rounds, -1)[:, :n]
    sample = dhw[idx]
    return np.percentile(sample, 90, axis=1), sample.mean(axis=1)


def main():
    rng = np.random.default_rng(77)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        path = os.path.join(tmp, "sst_daily.h5")
        write_product(path, rng)
        sites = [(int(a), int(b)) for a, b in zip(rng.integers(0, NLAT, REEFS),
                                                  rng.integers(0, NLON, REEFS))]
        rows = []
        with h5py.File(path, "r") as f:
            sst = f["sst"]
            scale = sst.attrs["scale_factor"]
            for lat, lon in sites:
                temp = sst[:, lat, lon] * scale
                dhw = heating_weeks(temp)
                p90, mean = [], []
                for _ in range(4):
                    a, b = resample(dhw, rng)
                    p90.append(a)
                    mean.append(b)
                p90 = np.concatenate(p90)
                mean = np.concatenate(mean)
                rows.append((dhw.max(), p90.mean(), np.ptp(p90), mean.std()))
    rows = np.array(rows)
    print("sites", len(rows))
    print("max DHW %.4f  p90 %.4f  spread %.4f  sd %.5f" % tuple(rows.mean(axis=0)))


if __name__ == "__main__":
    main()
