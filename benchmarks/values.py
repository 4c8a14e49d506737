"""Count the values in the recordings of a home: `values.py HOME` prints cells, readings and bytes.

A cell is counted if it is not null. In a list, each element is counted. Readings are the cells of
metrics. The other cells identify the row: its time, node and device.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_KEYS = frozenset({"elapsed_s", "span_s", "time", "node", "kind", "device"})


def count_cells(path: Path, *, keys: bool) -> int:
    """Count the values of one sealed file, with or without the columns that identify the row."""
    table = pq.ParquetFile(path).read()
    total = 0
    for name in table.column_names:
        if not keys and name in _KEYS:
            continue
        column = table[name].combine_chunks()
        nested = pa.types.is_list(column.type)
        total += len(pc.list_flatten(column)) if nested else len(column) - column.null_count
    return total


def count_signals(path: Path) -> int:
    """Count the pairs of device and metric with a value; the share of each core is one pair."""
    table = pq.ParquetFile(path).read()
    total = 0
    for device in pc.unique(table["device"]).to_pylist():
        rows = table.filter(pc.equal(table["device"], device))
        for name in rows.column_names:
            if name in _KEYS or name.endswith("_max") or rows[name].null_count == rows.num_rows:
                continue
            column = rows[name].combine_chunks()
            nested = pa.types.is_list(column.type)
            total += pc.max(pc.list_value_length(column)).as_py() if nested else 1
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("--signals", action="store_true", help="count pairs of device and metric")
    options = parser.parse_args()
    files = sorted(options.home.glob("runs/*/samples/*.parquet"))
    if options.signals:
        print(sum(map(count_signals, files)))
        return
    cells, readings = (
        sum(count_cells(path, keys=keys) for path in files) for keys in (True, False)
    )
    print(cells, readings, sum(path.stat().st_size for path in files))


if __name__ == "__main__":
    main()
