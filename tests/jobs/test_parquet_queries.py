"""The SQL of docs/parquet.md, run by DuckDB and Spark on exported recordings."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jobs.imports import LOGS, loaded, only, run_of
from jobs.test_export import log
from support import FRAMEWORKS, SOAK, lacks_framework
from teho.jobs.export.parquet import export_parquet

PAGE = (Path(__file__).parents[2] / "docs" / "parquet.md").read_text()
QUERIES = dict(re.findall(r"^\*\*(\d+)\..*?```sql\n(.*?);\n```", PAGE, re.MULTILINE | re.DOTALL))
_DUCKDB = """
import duckdb, json, sys
for number, query in json.load(sys.stdin).items():
    found = duckdb.sql(query)
    rows = [dict(zip(found.columns, map(str, row))) for row in found.fetchall()]
    print(json.dumps([number, rows]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Export recordings of two users into one folder."""
    monkeypatch.setenv("TZ", "UTC")
    for owner, path in (
        ("ana", log(tmp_path)),
        ("ben", LOGS / "prometheus-slurm-job-exporter.json"),
        ("ben", LOGS / "prometheus-jobstats.json"),
    ):
        directory = only(path)
        export_parquet(run_of(directory), directory, owner, tmp_path / "teho", [])
    return tmp_path


def test_the_page_has_ten_questions() -> None:
    assert list(QUERIES) == [str(number) for number in range(1, 11)]


@pytest.mark.skipif(bool(lacks_framework("duckdb")), reason=lacks_framework("duckdb"))
def test_duckdb_answers_each_question(folder: Path) -> None:
    done = subprocess.run(
        [FRAMEWORKS / "bin" / "python", "-c", _DUCKDB],
        cwd=folder, input=json.dumps(QUERIES), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, list[dict[str, Any]]] = dict(map(json.loads, done.stdout.splitlines()))
    assert set(found) == set(QUERIES)
    slurm = loaded(only(LOGS / "prometheus-slurm-job-exporter.json")).summary
    idle = [row for row in found["2"] if row["user"] == "ben"]
    assert [row["gpu"] for row in idle] == ["1"]
    busy = [row for row in found["1"] if row["job"] == "4711" and row["gpu"] == "0"]
    mean = slurm.gpus[0].stats["gpu_busy_percent"].mean  # type: ignore[union-attr]
    assert [float(row["busy_percent"]) for row in busy] == [round(mean)]
    energy = {row["user"]: row["kwh"] for row in found["4"]}
    assert float(energy["ben"]) == pytest.approx(28900 / 3.6e6, abs=1e-3)
    assert energy["ana"] == "None"
    assert {row["hour_utc"] for row in found["9"]} == {"0", "10"}


# The JVM needs more time to start than all other tests of this file together.
@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="Spark runs only in `make soak`")
@pytest.mark.skipif(
    bool(lacks_framework("pyspark")) or not shutil.which("java"),
    reason=lacks_framework("pyspark") or "no java for Spark",
)
def test_spark_answers_the_question_of_the_page(folder: Path) -> None:
    ((program,),) = [re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)]
    options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    local = f'builder.master("local[1]").config(map={options})'
    program = program.replace("builder", local)
    done = subprocess.run(
        [FRAMEWORKS / "bin" / "python", "-c", program],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    users = dict(re.findall(r"^\| *(\w+)\| *(\S+?)\|$", done.stdout, re.MULTILINE))
    assert float(users["ben"]) == pytest.approx(28900 / 3.6e6, rel=1e-3)
    assert users["ana"].lower() == "null"
