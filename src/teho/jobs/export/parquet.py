"""Writes recordings as Parquet files; a folder may have the files of many users.

    FOLDER/rows/RUN.parquet   the rows of all nodes, with the run and the index of the GPU
    FOLDER/runs/RUN.parquet   one row for each node: the run, its job, and what it was allocated

A file is complete or absent. A run that has not changed since its last export is not written again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from teho.jobs.export.labels import run_labels
from teho.model.run import Node, Run
from teho.store.layout import run_file
from teho.store.read import rows_of_node
from teho.store.schema import KINDS, ROW_SCHEMA

__all__ = ["RUNS_SCHEMA", "export_parquet"]

_STAMP = b"teho.run"
"""Key of the state of the recording from which a file was made."""
_LABELS = pa.schema(
    [("run", pa.string()), ("user", pa.string()), ("job", pa.string()), ("gpu", pa.int16())]
)
_ROWS = pa.schema([*_LABELS, *ROW_SCHEMA])
RUNS_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "name", "user", "job", "cluster", "partition")),
        *((name, pa.string()) for name in ("account", "node", "command", "gpu_model")),
        ("started_at", pa.timestamp("ms", tz="UTC")),
        ("elapsed_s", pa.float64()),
        ("exit_code", pa.int32()),
        ("cores", pa.int32()),
        ("gpus", pa.int32()),
        ("memory_limit_bytes", pa.int64()),
        ("time_limit_s", pa.float64()),
        ("imported_from", pa.string()),
    ]
)
"""One row for each node of a run. A null is not known."""


def export_parquet(
    run: Run, directory: Path, owner: str, folder: Path, problems: list[str]
) -> bool:
    """Write the two files of one run.

    Args:
        run: the description of the recording.
        directory: the recording.
        owner: the user who owns it.
        folder: gets the files.
        problems: gets a sentence for each file of the recording that cannot be read completely.

    Returns:
        Whether they were written: the files of a run that has not changed stay as they are.

    Raises:
        OSError: a file cannot be written.
    """
    stamp = f"{run_file(directory).stat().st_mtime_ns} {run.end is not None}".encode()
    paths = [folder / kind / f"{run.id}.parquet" for kind in ("rows", "runs")]
    if run.end is not None and all(_stamp_of(path) == stamp for path in paths):
        return False
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    labels = run_labels(run, owner)
    _write(paths[0], _ROWS, stamp, _rows(run, directory, labels, problems))
    _write(paths[1], RUNS_SCHEMA, stamp, [_nodes(run, labels)])
    return True


def _stamp_of(path: Path) -> bytes | None:
    import pyarrow.parquet as pq

    try:
        return (pq.read_schema(path).metadata or {}).get(_STAMP)
    except (OSError, pa.ArrowInvalid):
        return None


def _write(path: Path, schema: pa.Schema, stamp: bytes, tables: Any) -> None:
    """Write a file under another name, and give it its name when it is complete."""
    import pyarrow.parquet as pq

    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    marked = schema.with_metadata({_STAMP: stamp})
    try:
        with pq.ParquetWriter(temporary, marked, compression="zstd") as writer:
            for table in tables:
                writer.write_table(table.cast(marked))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _rows(
    run: Run, directory: Path, labels: dict[str, str], problems: list[str]
) -> Iterator[pa.Table]:
    """Yield the rows of each node and kind."""
    for node in run.nodes:
        indices = {device.id: device.index for device in node.devices}
        for kind in KINDS:
            found = rows_of_node(directory, node.name, kind, ROW_SCHEMA.names, problems)
            if found is None:
                continue
            table = found.table.select(ROW_SCHEMA.names)
            count = table.num_rows
            gpus = pa.concat_arrays(
                [
                    pa.repeat(pa.scalar(indices.get(device), pa.int16()), place.stop - place.start)
                    for device, place in found.places.items()
                ]
            )
            columns = [
                *(pa.repeat(pa.scalar(labels[name] or None, pa.string()), count)
                  for name in ("run", "user", "job")),
                gpus,
                *table.columns,
            ]  # fmt: skip
            yield pa.table(columns, schema=_ROWS)


def _nodes(run: Run, labels: dict[str, str]) -> pa.Table:
    rows = [_node(run, node, labels) for node in run.nodes]
    return pa.Table.from_pylist(rows, schema=RUNS_SCHEMA)


def _node(run: Run, node: Node, labels: dict[str, str]) -> dict[str, Any]:
    models = {device.name for device in node.devices if device.name}
    own = node.allocation
    return {
        **{name: value or None for name, value in labels.items()},
        "node": node.name,
        "command": " ".join(run.command) or None,
        "gpu_model": ", ".join(sorted(models)) or None,
        "started_at": run.started_at,
        "elapsed_s": run.end.elapsed_s if run.end else None,
        "exit_code": run.end.exit_code if run.end else None,
        "cores": own.cores_asked or len(node.cores) or None,
        "gpus": len(node.devices),
        "memory_limit_bytes": own.memory_limit_bytes,
        "time_limit_s": own.time_limit_s,
        "imported_from": ", ".join(run.imported.tools) if run.imported else None,
    }
