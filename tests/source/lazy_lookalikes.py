"""Programs with lazy tables that compute no table again, or not for sure.

Each program has the innermost call of its stack.
"""

from __future__ import annotations

CLEAN = {
    "Spark keeps the rows": (
        """
        from pyspark.sql import SparkSession
        def main(spark, path, sites):
            rows = spark.read.csv(path)
            rows.cache()
            for site in sites:
                print(rows.filter(rows.site == site).count())
        """,
        "rows.filter(rows.site == site).count()",
    ),
    "a method with the same name": (
        """
        def main(shelf, path, sites):
            rows = shelf.read.csv(path)
            for site in sites:
                print(rows.filter(rows.site == site).count())
        """,
        "rows.filter(rows.site == site).count()",
    ),
    "groups of Parquet by a name": (
        """
        def main(path, sites):
            ranks = pl.scan_parquet(path).with_columns(pl.col("n").rank().over("site"))
            for site in sites:
                one = ranks.filter(site=site).collect()
        """,
        "ranks.filter(site=site).collect()",
    ),
    "collected before the loop": (
        """
        def main(path, keys):
            records = pl.scan_csv(path).collect()
            for key in keys:
                one = records.lazy().filter(pl.col("buoy") == key).collect()
        """,
        'records.lazy().filter(pl.col("buoy") == key).collect()',
    ),
    "kept by the advice": (
        """
        def main(path, keys):
            records = pl.scan_csv(path)
            records = records.collect().lazy()
            for key in keys:
                one = records.filter(pl.col("buoy") == key).collect()
        """,
        'records.filter(pl.col("buoy") == key).collect()',
    ),
    "another file in each iteration": (
        """
        def main(paths):
            for path in paths:
                one = pl.scan_csv(path).filter(pl.col("a") > 1).collect()
        """,
        'pl.scan_csv(path).filter(pl.col("a") > 1).collect()',
    ),
    "Parquet, of which only some groups of rows are read": (
        """
        def main(path, keys):
            records = pl.scan_parquet(path).with_columns(pl.col("a") * 2)
            for key in keys:
                one = records.filter(pl.col("key") == key).collect()
        """,
        'records.filter(pl.col("key") == key).collect()',
    ),
    "groups of which a filter selects some": (
        """
        def main(path, sites):
            sums = pl.scan_parquet(path).group_by("site").agg(pl.col("n").sum())
            for site in sites:
                one = sums.filter(pl.col("site") == site).collect()
        """,
        'sums.filter(pl.col("site") == site).collect()',
    ),
    "a part of the file after the other": (
        """
        def main(path):
            records = pl.scan_csv(path)
            for begin in range(0, 10**9, 10**6):
                part = records.slice(begin, 10**6).collect()
        """,
        "records.slice(begin, 10**6).collect()",
    ),
    "only the first rows of the file": (
        """
        def main(path, keys):
            records = pl.scan_csv(path, n_rows=1000)
            for key in keys:
                part = records.filter(pl.col("k") == key).collect()
        """,
        'records.filter(pl.col("k") == key).collect()',
    ),
    "only two iterations": (
        """
        def main(path):
            records = pl.scan_csv(path)
            for split in ("train", "test"):
                part = records.filter(pl.col("split") == split).collect()
        """,
        'records.filter(pl.col("split") == split).collect()',
    ),
    "a second try after an error": (
        """
        def main(path):
            records = pl.scan_csv(path)
            for attempt in range(5):
                try:
                    part = records.filter(pl.col("a") > 1).collect()
                    break
                except OSError:
                    print(attempt)
        """,
        'records.filter(pl.col("a") > 1).collect()',
    ),
    "a file that grows": (
        """
        def main(path):
            records = pl.scan_csv(path)
            while True:
                rows = records.filter(pl.col("state") == "new").collect()
                time.sleep(60)
        """,
        'records.filter(pl.col("state") == "new").collect()',
    ),
    "a join with a large table": (
        """
        def main(path, tables):
            names = pl.scan_csv(path)
            for table in tables:
                joined = names.join(table.lazy(), on="id").group_by("k").len().collect()
        """,
        'names.join(table.lazy(), on="id").group_by("k").len().collect()',
    ),
    "another table in memory each time": (
        """
        def rank(table):
            return table.lazy().with_columns(r=pl.col("a").rank().over("b")).collect()

        def main(table, seeds):
            for seed in seeds:
                mixed = table.with_columns(pl.col("a").shuffle(seed=seed))
                rank(mixed)
        """,
        'table.lazy().with_columns(r=pl.col("a").rank().over("b")).collect()',
    ),
    "a plan that grows": (
        """
        def main(path, rules):
            lazy = pl.scan_csv(path)
            for rule in rules:
                lazy = lazy.filter(rule)
                print(lazy.select(pl.len()).collect())
        """,
        "lazy.select(pl.len()).collect()",
    ),
    "Dask in memory": (
        """
        def main(path, keys):
            frame = dd.read_csv(path).persist()
            for key in keys:
                mean = frame[frame.k == key].x.mean().compute()
        """,
        "frame[frame.k == key].x.mean().compute()",
    ),
    "Dask, one partition after the other": (
        """
        def main(path):
            frame = dd.read_csv(path)
            for number in range(frame.npartitions):
                part = frame.partitions[number].compute()
        """,
        "frame.partitions[number].compute()",
    ),
    "a benchmark": (
        """
        def main(path):
            records = pl.scan_csv(path)
            for number in range(10):
                start = time.perf_counter()
                rows = records.filter(pl.col("a") > number).collect()
                print(time.perf_counter() - start)
        """,
        'records.filter(pl.col("a") > number).collect()',
    ),
    "computed after the loop": (
        """
        def main(path, keys):
            records = pl.scan_csv(path)
            parts = []
            for key in keys:
                parts.append(records.filter(pl.col("k") == key))
            return pl.collect_all(parts), pl.concat(parts).collect()
        """,
        "pl.concat(parts).collect()",
    ),
    "attributes that depend on each other": (
        """
        class Archive:
            def __init__(self):
                self.rows = self.all
                self.all = self.rows
            def of(self, towers):
                for tower in towers:
                    print(self.rows.filter(pl.col("tower") == tower).collect())
        """,
        'self.rows.filter(pl.col("tower") == tower).collect()',
    ),
    "another object with the same method": (
        """
        def main(devices, log):
            for device in devices:
                rows = log.filter(device).collect()
        """,
        "log.filter(device).collect()",
    ),
}
