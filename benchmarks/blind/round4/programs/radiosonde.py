"""Humidity modes in a year of radiosonde ascents, one Parquet file a month."""
import math
import os
import tempfile

import numpy as np
import polars as pl

ASCENTS = 600
LEVELS = 1000


def write_month(path, month, rng):
    n = ASCENTS * LEVELS
    height = np.tile(np.linspace(0, 12_000, LEVELS), ASCENTS)
    base = np.repeat(rng.normal(12 + 8 * math.sin(month / 2), 5, ASCENTS), LEVELS)
    temp = base - 0.0065 * height + rng.normal(0, 0.8, n)
    rh = np.clip(75 * np.exp(-height / 6000) + rng.normal(0, 9, n), 1, 100)
    frame = pl.DataFrame({"ascent": np.repeat(np.arange(ASCENTS), LEVELS),
                          "height": height, "temp": temp, "rh": rh})
    frame.write_parquet(path, compression="lz4")


def saturation(t):
    if t >= 0.0:
        return 6.112 * math.exp(17.62 * t / (243.12 + t))
    return 6.112 * math.exp(22.46 * t / (272.62 + t))


def vapour(path):
    frame = pl.read_parquet(path)
    es = pl.col("temp").map_elements(saturation, return_dtype=pl.Float64)
    frame = frame.with_columns(es.alias("es"))
    frame = frame.with_columns((pl.col("rh") / 100.0 * pl.col("es")).alias("e"))
    by_level = frame.group_by("height").agg(pl.col("e").mean()).sort("height")
    return frame["e"].to_numpy().reshape(ASCENTS, LEVELS), by_level["e"].to_numpy()


def modes(field, rng):
    dev = field - field.mean(axis=0)
    _, s, vt = np.linalg.svd(dev, full_matrices=False)
    share = s[:5] ** 2 / (s ** 2).sum()
    jitter = []
    for _ in range(2):
        pick = rng.integers(0, ASCENTS, ASCENTS)
        r = np.linalg.svd(dev[pick], compute_uv=False)
        jitter.append(r[:5] ** 2 / (r ** 2).sum())
    return share, np.abs(np.array(jitter) - share).mean(axis=0), abs(vt[0]).sum()


def main():
    rng = np.random.default_rng(1979)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        paths = [os.path.join(tmp, f"sonde_{m:02d}.parquet") for m in range(1, 13)]
        for m, path in enumerate(paths, 1):
            write_month(path, m, rng)
        shares, errors, columns = [], [], []
        for path in paths:
            field, profile = vapour(path)
            share, err, _ = modes(field, rng)
            shares.append(share)
            errors.append(err)
            columns.append(profile.mean())
    print("mean vapour pressure %.6f" % np.mean(columns))
    print("mode shares", np.round(np.mean(shares, axis=0), 6))
    print("sampling error", np.round(np.mean(errors, axis=0), 6))


if __name__ == "__main__":
    main()
