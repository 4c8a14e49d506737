"""Passenger kilometres of the ferry network by season, with Polars."""
import math
import os
import tempfile

import numpy as np
import polars as pl

MONTHS = 8
TRIPS = 450_000
PIERS = 180


def pier_table(rng):
    """Every season's timetable lists all piers again."""
    codes = [f"P{k:03d}" for k in range(PIERS)]
    lat = rng.uniform(59.0, 60.5, PIERS)
    lon = rng.uniform(18.0, 20.5, PIERS)
    zone = rng.integers(1, 6, PIERS)
    one = pl.DataFrame({"pier": codes, "lat": lat, "lon": lon, "zone": zone})
    return pl.concat([one] * 6)


def write_month(folder, month, rng):
    origin = rng.integers(0, PIERS, TRIPS)
    hop = 1 + rng.integers(0, PIERS - 1, TRIPS)
    trips = pl.DataFrame(
        {
            "trip": np.arange(TRIPS) + month * TRIPS,
            "pier": pl.Series(origin).cast(pl.String).str.zfill(3),
            "lat_to": 59.0 + 1.5 * rng.random(TRIPS),
            "lon_to": 18.0 + 2.5 * rng.random(TRIPS),
            "hop": hop,
            "minute": rng.integers(0, 43_200, TRIPS),
            "people": rng.poisson(22.0, TRIPS),
        }
    ).with_columns(pl.concat_str(pl.lit("P"), "pier").alias("pier"))
    path = os.path.join(folder, f"trips_{month:02d}.parquet")
    trips.write_parquet(path, compression="lz4")
    return path


def distance(row):
    a, b = math.radians(row["lat"]), math.radians(row["lat_to"])
    dx = math.radians(row["lon_to"] - row["lon"]) * math.cos(0.5 * (a + b))
    return 6371.0 * math.sqrt(dx * dx + (b - a) ** 2)


def month_table(path, piers):
    trips = pl.read_parquet(path)
    located = trips.join(piers, on="pier", how="inner").unique()
    located = located.with_columns(
        pl.struct("lat", "lon", "lat_to", "lon_to")
        .map_elements(distance, return_dtype=pl.Float64)
        .alias("km")
    )
    return located.with_columns((pl.col("km") * pl.col("people")).alias("pkm"))


def crowding(month):
    """How full were the boats of a pier, seen over the last 400 departures."""
    ordered = month.sort("pier", "minute", "trip")
    return ordered.with_columns(
        pl.col("people").cast(pl.Float64)
        .rolling_quantile(0.9, window_size=400, min_samples=1)
        .over("pier").alias("full90"),
        pl.col("pkm").rolling_median(window_size=400, min_samples=1)
        .over("pier").alias("pkm_mid"),
    )


def main():
    rng = np.random.default_rng(61)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        paths = [write_month(tmp, m, rng) for m in range(MONTHS)]
        piers = pier_table(rng)
        parts = []
        for m, path in enumerate(paths):
            month = crowding(month_table(path, piers))
            parts.append(
                month.group_by("zone")
                .agg(pl.len().alias("trips"), pl.col("pkm").sum(),
                     pl.col("full90").mean(), pl.col("pkm_mid").mean())
                .with_columns(pl.lit(m).alias("month"))
            )
    seasons = pl.concat(parts)
    result = seasons.group_by("zone").agg(
        pl.col("trips").sum(), pl.col("pkm").sum() / 1e6,
        pl.col("full90").mean(), pl.col("pkm_mid").mean(),
    ).sort("zone")
    for row in result.iter_rows():
        print("zone %d  trips %8d  Mpkm %9.3f  full %.2f  mid %.2f" % row)


if __name__ == "__main__":
    main()
