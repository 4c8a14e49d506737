"""Programs with lazy tables that compute a table again in each iteration of a loop.

Each program has the calls of its stack, the outermost first; the text of the table, the loop, and
whether the table parses a text file.
"""

from __future__ import annotations

FOUND = {
    "filtered for each key": (
        """
        def statistics(path, keys):
            records = pl.scan_csv(path)
            out = []
            for key in keys:
                one = records.filter(pl.col("buoy") == key).collect()
                out.append(one["flux"].mean())
            return out
        """,
        ['records.filter(pl.col("buoy") == key).collect()'],
        ("records", "for key in keys", True),
    ),
    "several assignments, and a comprehension": (
        """
        table = pl.scan_ndjson("a.json")
        table = table.with_columns(pl.col("a").cast(int))
        table = table.drop_nulls()
        means = [table.select(pl.col(name).mean()).collect().item() for name in NAMES]
        """,
        ["table.select(pl.col(name).mean()).collect().item()"],
        (
            "table",
            "means = [table.select(pl.col(name).mean()).collect().item() for name in NAMES]",
            True,
        ),
    ),
    "the plan is an argument": (
        """
        def one_day(lazy, day):
            part = lazy.filter(pl.col("day") == day)
            return part.collect()

        def main(path):
            lazy = pl.scan_csv(path, separator=";")
            for day in range(365):
                print(one_day(lazy, day).height)
        """,
        ["one_day(lazy, day)", "part.collect()"],
        ("lazy", "for day in range(365)", True),
    ),
    "made in the loop from the same file": (
        """
        def load(path):
            return pl.scan_csv(path).rename({"x": "y"})

        def main(path, stations):
            for station in stations:
                rows = load(path).filter(pl.col("y") == station).collect()
        """,
        ['load(path).filter(pl.col("y") == station).collect()'],
        ("load(path)", "for station in stations", True),
    ),
    "a step of a Parquet file that needs all rows": (
        """
        def landings(path, gears):
            return (
                pl.scan_parquet(path)
                .join(gears.lazy(), on="gear")
                .with_columns(pl.col("kg").cum_sum().over("vessel").alias("total"))
            )

        def main(path, gears, species):
            table = landings(path, gears)
            for code, name in enumerate(species):
                part = table.filter(pl.col("species") == code).collect()
        """,
        ['table.filter(pl.col("species") == code).collect()'],
        ("table", "for code, name in enumerate(species)", False),
    ),
    "an attribute": (
        """
        class Archive:
            def __init__(self, path):
                self.rows = pl.scan_csv(path)

            def of(self, tower):
                return self.rows.filter(pl.col("tower") == tower).collect()

        def main(towers):
            archive = Archive("a.csv")
            for tower in towers:
                print(archive.of(tower))
        """,
        ["archive.of(tower)", 'self.rows.filter(pl.col("tower") == tower).collect()'],
        ("self.rows", "for tower in towers", True),
    ),
    "groups of a table in memory": (
        """
        def main(table, limits):
            grouped = table.lazy().group_by("site").agg(pl.col("n").sum())
            for limit in limits:
                rows = grouped.filter(pl.col("n") > limit).collect()
        """,
        ['grouped.filter(pl.col("n") > limit).collect()'],
        ("grouped", "for limit in limits", False),
    ),
    "windows of a table in memory": (
        """
        def main(table, limits):
            ranked = table.lazy().with_columns(r=pl.col("n").rank().over("site"))
            for limit in limits:
                rows = ranked.filter(pl.col("r") > limit).collect()
        """,
        ['ranked.filter(pl.col("r") > limit).collect()'],
        ("ranked", "for limit in limits", False),
    ),
    "Dask, a mask": (
        """
        def main(folder, species):
            frame = dd.read_csv(folder + "/*.csv")
            for name in species:
                mean = frame[frame.species == name].length.mean().compute()
        """,
        ["frame[frame.species == name].length.mean().compute()"],
        ("frame", "for name in species", True),
    ),
    "Dask, made in the loop from the same files": (
        """
        def main(folder, species):
            for name in species:
                frame = dd.read_csv(folder + "/*.csv")
                mean = frame[frame.species == name].length.mean().compute()
        """,
        ["frame[frame.species == name].length.mean().compute()"],
        ("dd.read_csv(folder + '/*.csv')", "for name in species", True),
    ),
    "Dask, the number of rows": (
        """
        def main(path, sites):
            frame = dd.read_csv(path)
            return {site: len(frame[frame["site"] == site]) for site in sites}
        """,
        ['len(frame[frame["site"] == site])'],
        ("frame", 'return {site: len(frame[frame["site"] == site]) for site in sites}', True),
    ),
    "Dask, functions": (
        """
        frame = dd.read_json("a.json")
        while wanted:
            key = wanted.pop()
            low, high = dask.compute(frame[frame.k == key].x.min(), frame.x.max())
        """,
        ["dask.compute(frame[frame.k == key].x.min(), frame.x.max())"],
        ("frame", "while wanted", True),
    ),
    "a global name": (
        """
        ROWS = pl.scan_csv("a.csv")

        def count(year):
            return ROWS.filter(pl.col("year") == year).select(pl.len()).collect().item()

        def main():
            return {year: count(year) for year in range(1990, 2020)}
        """,
        ["count(year)", 'ROWS.filter(pl.col("year") == year).select(pl.len()).collect()'],
        ("ROWS", "return {year: count(year) for year in range(1990, 2020)}", True),
    ),
}
FOUND |= {
    "Spark": (
        """
        from pyspark.sql import SparkSession
        def main(path, sites):
            spark = SparkSession.builder.getOrCreate()
            rows = spark.read.option("header", True).csv(path)
            for site in sites:
                print(rows.filter(rows.site == site).count())
        """,
        ["rows.filter(rows.site == site).count()"],
        ("rows", "for site in sites", True),
    ),
    "Spark, groups of a Parquet file": (
        """
        from pyspark.sql import SparkSession, functions as F
        def main(spark, path, limits):
            sums = spark.read.parquet(path).groupBy("site").agg(F.sum("n").alias("total"))
            for limit in limits:
                print(sums.where(sums.total > limit).collect())
        """,
        ["sums.where(sums.total > limit).collect()"],
        ("sums", "for limit in limits", False),
    ),
    "relations of DuckDB": (
        """
        import duckdb
        con = duckdb.connect()
        rows = con.read_csv("a.csv")
        for buoy in range(30):
            mean = rows.filter(f"buoy = {buoy}").aggregate("avg(flux)").fetchone()
        """,
        ['rows.filter(f"buoy = {buoy}").aggregate("avg(flux)").fetchone()'],
        ("rows", "for buoy in range(30)", True),
    ),
}
