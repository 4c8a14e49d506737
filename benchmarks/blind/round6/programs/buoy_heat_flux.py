"""Latent heat flux statistics for each buoy of a moored array."""
import math
import os
import shutil
import tempfile

import numpy as np
import polars as pl

BUOYS, ROWS = 30, 2_400_000


def archive(path):
    rng = np.random.default_rng(19)
    pl.DataFrame({
        "buoy": rng.integers(0, BUOYS, ROWS).astype(np.int32),
        "minute": np.arange(ROWS),
        "air": (24 + 4 * rng.standard_normal(ROWS)).round(3),
        "sea": (26 + 2 * rng.standard_normal(ROWS)).round(3),
        "humidity": rng.uniform(50, 100, ROWS).round(2),
        "wind": rng.weibull(2.0, ROWS).round(3) * 8,
        "pressure": (1010 + 6 * rng.standard_normal(ROWS)).round(2),
        "salinity": (35 + 0.4 * rng.standard_normal(ROWS)).round(3),
    }).write_csv(path)


def latent_heat(row):
    e_air = 6.112 * math.exp(17.62 * row["air"] / (243.12 + row["air"])) * row["humidity"] / 100
    e_sea = 0.98 * 6.112 * math.exp(17.62 * row["sea"] / (243.12 + row["sea"]))
    q_air = 0.622 * e_air / (row["pressure"] - 0.378 * e_air)
    q_sea = 0.622 * e_sea / (row["pressure"] - 0.378 * e_sea)
    return 1.2 * 2.45e6 * 1.3e-3 * row["wind"] * (q_sea - q_air)


def flux_expression():
    columns = pl.struct(["air", "sea", "humidity", "pressure", "wind"])
    return columns.map_elements(latent_heat, return_dtype=pl.Float64).alias("flux")


def statistics(path):
    records = pl.scan_csv(path)
    out = []
    for buoy in range(BUOYS):
        one = records.filter(pl.col("buoy") == buoy).with_columns(flux_expression()).collect()
        daily = one.group_by(pl.col("minute") // 1440).agg(pl.col("flux").mean()).sort("minute")
        out.append((buoy, one.height, one["flux"].mean(), one["flux"].quantile(0.95), daily["flux"].std()))
    return out


def main():
    folder = tempfile.mkdtemp(prefix="buoys_")
    try:
        path = os.path.join(folder, "array.csv")
        archive(path)
        rows = statistics(path)
    finally:
        shutil.rmtree(folder)
    print("records", sum(r[1] for r in rows), "buoys", len(rows))
    print("mean latent heat flux %.3f W/m2" % (sum(r[1] * r[2] for r in rows) / ROWS))
    worst = max(rows, key=lambda r: r[3])
    print("largest 95th percentile: buoy %d  %.2f" % (worst[0], worst[3]))


if __name__ == "__main__":
    main()
