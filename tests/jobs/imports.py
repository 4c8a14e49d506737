"""Imports logs in a test, and reads back what the recording has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from teho.config.settings import load_settings
from teho.jobs.importer import importer_for
from teho.jobs.make_recording import ImportWish, make_recordings
from teho.jobs.read_source import read_source
from teho.model.missing import Reason
from teho.model.run import Run
from teho.show.loaded import LoadedRun
from teho.store.read import read_run

LOGS = Path(__file__).parents[1] / "data" / "imports"
CHANGED_S = 1_795_000_000.0
"""Time of the last change of every file that `written` makes: 2026-11-18 11:06:40 UTC."""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    os.utime(path, (CHANGED_S, CHANGED_S))
    return path


def imported(*paths: Path, columns: str = "", gpus: int | None = None, **wish: Any) -> list[Path]:
    names = tuple(columns.split(",")) if columns else ()
    sources = [read_source(path)._replace(columns=names, gpu_count=gpus) for path in paths]
    logs = [(source, importer_for(source).read(source)) for source in sources]
    return make_recordings(logs, ImportWish(**wish), load_settings().home_directory)


def only(*paths: Path, **wish: Any) -> Path:
    (directory,) = imported(*paths, **wish)
    return directory


def run_of(directory: Path) -> Run:
    return read_run(directory)


def loaded(directory: Path) -> LoadedRun:
    return LoadedRun(directory, load_settings())


def rows(directory: Path, device: str) -> list[dict[str, Any]]:
    """Return the rows of a device, each with its values that are not null."""
    tables = [pq.ParquetFile(path).read() for path in sorted(directory.glob("samples/*.parquet"))]
    found = pa.concat_tables(tables).drop_columns(["time"]).to_pylist()
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in found
        if row["device"] == device
    ]


def column(directory: Path, device: str, metric: str) -> list[Any]:
    return [row.get(metric) for row in rows(directory, device)]


def notes(directory: Path) -> str:
    return "\n".join(note for node in run_of(directory).nodes for note in node.notes)


def absence(directory: Path, device: str, metric: str) -> tuple[Reason, str]:
    (node,) = run_of(directory).nodes
    (found,) = [one for one in node.absences if (one.device, one.metric) == (device, metric)]
    return found.missing.reason, found.missing.detail
