"""Knock-on delays of aircraft rotations, with a permutation test, in Polars."""
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

MONTHS, FLIGHTS = 6, 160_000
SHUFFLES = 36


def write_months(folder):
    for m in range(MONTHS):
        rng = np.random.default_rng(70 + m)
        tail = rng.integers(0, 1500, FLIGHTS)
        minute = rng.integers(0, 30 * 1440, FLIGHTS)
        delay = rng.exponential(12, FLIGHTS) - 6 + 8 * (rng.random(FLIGHTS) < 0.07) * rng.gamma(2, 9, FLIGHTS)
        pl.DataFrame({
            "month": np.full(FLIGHTS, m, np.int8),
            "tail": tail.astype(np.int32),
            "minute": (m * 43200 + minute).astype(np.int32),
            "carrier": (tail % 17).astype(np.int8),
            "delay": delay.round(1),
            "distance": rng.gamma(3, 300, FLIGHTS).round(0),
            "gate": rng.integers(0, 90, FLIGHTS),
        }).write_parquet(folder / f"month_{m:02d}.parquet")


def rotations(folder):
    return (
        pl.scan_parquet(folder / "month_*.parquet")
        .select("tail", "minute", "carrier", "delay")
        .sort("tail", "minute")
        .with_columns(
            before=pl.col("delay").shift(1).over("tail"),
            gap=(pl.col("minute") - pl.col("minute").shift(1)).over("tail"),
        )
        .drop_nulls()
        .collect()
    )


def knock_on(r, column):
    return (
        r.lazy()
        .with_columns(rank=pl.col(column).rank().over("carrier"), prev=pl.col("before").rank().over("carrier"))
        .group_by("carrier")
        .agg(pl.corr("rank", "prev").alias("rho"), pl.col(column).quantile(0.9).alias("q90"))
        .sort("carrier")
        .collect()
    )


def main():
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        write_months(folder)
        r = rotations(folder)
    seen = knock_on(r, "delay")
    beyond = np.zeros(seen.height)
    for s in range(SHUFFLES):
        mixed = r.with_columns(delay=pl.col("delay").shuffle(seed=s))
        beyond += np.abs(knock_on(mixed, "delay")["rho"].to_numpy()) >= np.abs(seen["rho"].to_numpy())
    print(f"{r.height} rotations, mean rho {seen['rho'].mean():.5f}, mean 90 per cent delay {seen['q90'].mean():.2f}")
    print("carriers beyond chance:", int((beyond == 0).sum()))


if __name__ == "__main__":
    main()
