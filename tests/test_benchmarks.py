"""Every benchmark runs and prints its rows; what it measures here means nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / "benchmarks" / "run.py"


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("start", "`teho run -- true`, wall time"),
        ("launch", "`teho launch -- true`, wall time"),
        ("always", "a later bash of the job: longer by"),
        ("plan", "plans in one process"),
        ("jobs", "`teho digest` with 1,000 jobs, peak memory"),
        ("doctor", "`teho doctor` without a GPU"),
        ("recorder", "CPU time of a whole"),
        ("live", "`teho top`, 2 nodes: time until the first frame with values"),
        ("metadata", "ten nodes, without a viewer: operations per second"),
        ("slowdown", "program *loader*: slower by"),
        ("probe", "program *numpy*: slower by"),
        ("lines", "Python quick machine: largest error"),
        ("profiler", "summary of a trace of 5 MB, peak memory"),
        ("feed", "in memory, batch 512, an epoch"),
        ("disk", "bytes per measured value"),
        ("big_report", "64 nodes, 3 days: `teho report --format html`, peak memory"),
        ("logs", "`teho export --to parquet` of 2 nodes, 0.02 days, peak memory"),
    ],
)
@pytest.mark.usefixtures("nvml_library")  # the benchmarks compile it too
def test_quick_form_prints_its_rows(name: str, row: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(RUN), "--quick", "--only", name, "--write", str(tmp_path / "page.md")],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "was not measured" in done.stderr:
        pytest.skip(done.stderr)
    table = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert table[0].startswith("| What | Unit | Teho | Other tool |")
    (line, *_) = [line for line in table if row in line]
    assert len(line.split("|")) == len(table[0].split("|"))
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.startswith("# Benchmarks\n")
    assert line in page
    assert f"Python {sys.version.split()[0]}" in page
