"""Carbon flux of eddy towers with Polars: one scan, then a bootstrap over days."""
import os
import tempfile

import numpy as np
import polars as pl

TOWERS = 24
DAYS = 500
PER_DAY = 288
DRAWS = 24


def write_archive(folder, rng):
    for tower in range(TOWERS):
        n = DAYS * PER_DAY
        step = np.arange(n)
        light = np.clip(np.sin(2 * np.pi * step / PER_DAY), 0, None)
        pl.DataFrame(
            {
                "tower": np.full(n, tower, dtype=np.int16),
                "day": (step // PER_DAY).astype(np.int32),
                "slot": (step % PER_DAY).astype(np.int16),
                "ustar": rng.gamma(2.0, 0.15, n).astype(np.float32),
                "flux": (2.0 - 9.0 * light + rng.normal(0, 1.5, n)).astype(np.float32),
                "temp": (11.0 + 8.0 * light + rng.normal(0, 1, n)).astype(np.float32),
            }
        ).write_parquet(os.path.join(folder, f"tower_{tower:02d}.parquet"))


def load(folder):
    """Drop calm air, smooth within a tower, keep what the bootstrap needs."""
    return (
        pl.scan_parquet(os.path.join(folder, "*.parquet"))
        .filter(pl.col("ustar") > 0.1)
        .with_columns(
            pl.col("flux").rolling_median(window_size=13, min_samples=3).over("tower").alias("smooth"),
            pl.col("temp").rolling_quantile(0.8, window_size=25, min_samples=3).over("tower").alias("warm"),
        )
        .with_columns((pl.col("flux") - pl.col("smooth")).abs().alias("rough"))
        .filter(pl.col("rough") < 4.0)
        .select("tower", "day", "slot", "smooth", "warm", "rough")
        .collect()
    )


def one_draw(data, rng):
    chosen = pl.DataFrame({"day": rng.integers(0, DAYS, DAYS).astype(np.int32)})
    weight = chosen.group_by("day").len("weight")
    return (
        data.lazy()
        .join(weight.lazy(), on="day")
        .with_columns((pl.col("smooth") * pl.col("weight")).alias("ws"))
        .group_by("tower", "slot")
        .agg(
            pl.col("ws").sum() / pl.col("weight").sum(),
            pl.col("warm").quantile(0.9).alias("hot"),
            pl.col("rough").median(),
        )
        .group_by("tower")
        .agg(pl.col("ws").mean(), pl.col("hot").max(), pl.col("rough").mean())
        .sort("tower")
        .collect()
    )


def main():
    rng = np.random.default_rng(71)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        write_archive(tmp, rng)
        data = load(tmp)
    print(f"{data.height} half-smoothed records of {TOWERS} towers")

    draws = [one_draw(data, rng) for _ in range(DRAWS)]
    flux = np.array([d["ws"].to_numpy() for d in draws])
    hot = np.array([d["hot"].to_numpy() for d in draws])
    low, high = np.quantile(flux, [0.05, 0.95], axis=0)
    for tower in range(0, TOWERS, 6):
        print(
            f"tower {tower:2d}  flux {flux[:, tower].mean():+.3f} "
            f"[{low[tower]:+.3f}, {high[tower]:+.3f}]  hot {hot[:, tower].mean():.2f}"
        )


if __name__ == "__main__":
    main()
