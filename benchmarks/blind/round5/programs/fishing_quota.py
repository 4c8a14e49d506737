"""How early in the year each fishing quota is used up.

Landings of all vessels come as a Parquet file.  For every vessel the
landings are accumulated in the order of time, scaled with the gear factor;
the report then looks at one species after the other.
"""
import os
import tempfile

import numpy as np
import polars as pl

LANDINGS = 2_500_000
VESSELS = 1500
SPECIES = [f"{name}_{area}" for name in
           ("cod", "hake", "plaice", "ling", "saithe", "turbot", "sprat", "herring")
           for area in ("north", "west", "south")]
GEARS = ["trawl", "seine", "gillnet", "longline", "pots"]


def write_landings(path, rng):
    frame = pl.DataFrame({
        "vessel": rng.integers(0, VESSELS, LANDINGS).astype(np.int32),
        "minute": rng.permutation(LANDINGS).astype(np.int64),
        "species": rng.integers(0, len(SPECIES), LANDINGS).astype(np.int8),
        "gear": rng.integers(0, len(GEARS), LANDINGS).astype(np.int8),
        "kg": np.round(rng.gamma(2.0, 60.0, LANDINGS), 1),
    })
    frame.write_parquet(path)


def effort_table(rng):
    return pl.DataFrame({
        "gear": np.arange(len(GEARS)).astype(np.int8),
        "factor": rng.uniform(0.8, 1.3, len(GEARS)),
    })


def landings(path, gears):
    """All landings with the running total of their vessel."""
    return (
        pl.scan_parquet(path)
        .join(gears.lazy(), on="gear", how="left")
        .sort("minute")
        .with_columns((pl.col("kg") * pl.col("factor")).alias("weighted"))
        .with_columns(
            pl.col("weighted").cum_sum().over("vessel").alias("vessel_total"),
            pl.col("minute").rank("ordinal").over("vessel").alias("trip"),
        )
    )


def used_up(table, quota, rng):
    """Minute at which the quota is reached, and its bootstrap spread."""
    kg = table["weighted"].to_numpy()
    minute = table["minute"].to_numpy()
    total = np.cumsum(kg)
    reached = minute[min(np.searchsorted(total, quota), len(minute) - 1)]
    spread = []
    for _ in range(200):
        noise = rng.exponential(1.0, len(kg))
        again = np.cumsum(kg * noise)
        spread.append(minute[min(np.searchsorted(again, quota), len(minute) - 1)])
    return int(reached), float(np.std(spread))


def main():
    rng = np.random.default_rng(60)
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "landings.parquet")
        write_landings(path, rng)
        table = landings(path, effort_table(rng))
        report = []
        for code, name in enumerate(SPECIES):
            part = table.filter(pl.col("species") == code).collect()
            quota = 0.6 * part["weighted"].sum()
            minute, spread = used_up(part, quota, rng)
            late = part.filter(pl.col("minute") > minute)
            report.append((name, minute, spread, late["trip"].mean(),
                           part["vessel_total"].max()))
    report.sort(key=lambda r: r[1])
    print(f"landings: {LANDINGS}, species and areas: {len(SPECIES)}")
    for name, minute, spread, trip, top in report[:3]:
        print(f"{name:14s} used up at {minute / LANDINGS:.4f} of the year "
              f"+- {spread / LANDINGS:.5f}, mean later trip {trip:.1f}")
    print(f"largest vessel total: {max(r[4] for r in report) / 1000:.2f} t")


if __name__ == "__main__":
    main()
