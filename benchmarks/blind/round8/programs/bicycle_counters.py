"""Yearly report of the bicycle counters of a town (polars).

One CSV of all passages; the report has a table for each way to look at them.
"""
import os
import tempfile

import numpy as np
import polars as pl

ROWS = 5_000_000
STATIONS = 40


def write_passages(path):
    rng = np.random.default_rng(365)
    seconds = np.sort(rng.integers(0, 365 * 86400, ROWS))
    start = np.datetime64("2023-01-01T00:00:00", "us")
    frame = pl.DataFrame({
        "stamp": start + seconds.astype("timedelta64[s]").astype("timedelta64[us]"),
        "station": rng.integers(0, STATIONS, ROWS).astype(np.int32),
        "speed": np.round(rng.normal(18, 4, ROWS), 2),
        "direction": rng.integers(0, 2, ROWS).astype(np.int32),
    })
    frame.write_csv(path, datetime_format="%Y-%m-%d %H:%M:%S")


def prepared(path):
    raw = pl.scan_csv(path, schema_overrides={"stamp": pl.String})
    stamp = pl.col("stamp").str.to_datetime("%Y-%m-%d %H:%M:%S")
    return (raw.with_columns(stamp.alias("time"))
            .filter((pl.col("speed") > 4) & (pl.col("speed") < 45))
            .with_columns(pl.col("time").dt.hour().alias("hour"),
                          pl.col("time").dt.weekday().alias("weekday"),
                          pl.col("time").dt.month().alias("month"))
            .select("station", "speed", "direction", "hour", "weekday", "month"))


def tables(passages):
    keys = [["hour"], ["weekday"], ["month"], ["station"], ["direction"],
            ["weekday", "hour"], ["month", "hour"], ["station", "hour"],
            ["station", "weekday"], ["station", "month"], ["direction", "hour"],
            ["direction", "month"], ["station", "direction"],
            ["month", "weekday"], ["direction", "weekday"], ["station", "month", "weekday"]]
    report = {}
    for key in keys:
        table = (passages.group_by(key)
                 .agg(pl.len().alias("count"), pl.col("speed").mean().alias("mean"),
                      pl.col("speed").std().alias("spread"))
                 .sort(key)
                 .collect())
        report[" by ".join(key)] = table
    return report


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "passages.csv")
        write_passages(path)
        passages = prepared(path)
        report = tables(passages)
        for name, table in list(report.items())[:5]:
            top = table.sort("count", descending=True).row(0)
            print(f"{name}: {table.height} rows, busiest {top[0]} with {top[1]} passages")
        total = report["direction"]["count"].sum()
        print(f"{len(report)} tables of {total} passages")


if __name__ == "__main__":
    main()
