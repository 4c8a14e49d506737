"""`teho run --probe auto`: where a program's time went, from its start to the report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import TEHO
from teho.observe.spool import spool_of

# It goes on until stacks were read from outside, however late the recorder starts.
PROGRAM = """\
import glob, os, subprocess, sys, time

def rest():
    until = time.monotonic() + 30
    while not glob.glob(os.environ["TEHO_PROBE"] + "/stacks-*") and time.monotonic() < until:
        time.sleep(0.2)
    time.sleep(1.5)

if sys.argv[1:]:
    rest()
else:
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        sum(range(500))
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "two.py"
    path.write_text(PROGRAM)
    return path


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TEHO, "run", "--every", "200ms", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_report_shows_where_the_time_went(script: Path, home: Path) -> None:
    done = run("--report", "full", "--", sys.executable, str(script))
    assert done.returncode == 0
    assert done.stdout == ""
    assert "Where the time went" in done.stderr
    answer = subprocess.run(
        [*TEHO, "report", "--format", "json"], capture_output=True, text=True, check=True
    )
    tables = {table["key"]: table["rows"] for table in json.loads(answer.stdout)["tables"]}
    # What it was doing is another question on a loaded machine: who gets no core waits.
    codes = {row["line"].strip(): row["code"] for row in tables["lines"]}
    number = PROGRAM.splitlines().index("        sum(range(500))") + 1
    assert codes[f"two.py:{number}"] == "sum(range(500))" or sys.version_info < (3, 11)
    assert sum(row["share_percent"] for row in tables["time"]) == pytest.approx(100, abs=4)
    (files,) = home.glob("runs/*/probe")
    heads = [json.loads(file.read_text().splitlines()[0]) for file in files.iterdir()]
    heads = [head for head in heads if "probe" in head]
    assert len(heads) == 2
    # One more: their stacks, read from outside.
    assert len(list(files.iterdir())) == 3
    # A probe's times stand on the run's own clock.
    (node,) = home.glob("runs/*/nodes/*.json")
    first_s = min(head["began_s"] for head in heads) - json.loads(node.read_text())["started_s"]
    assert 0 < first_s < json.loads(answer.stdout)["facts"][0]["value"]
    # Nothing of it stays where all users write.
    assert not list(Path(spool_of("")).parent.glob("probe-*.jsonl"))


def test_it_is_not_loaded_if_it_is_not_wanted(home: Path) -> None:
    code = "import os; print('TEHO_PROBE' in os.environ, os.environ.get('PYTHONPATH'))"
    done = run("--probe", "off", "--", sys.executable, "-c", code)
    assert done.stdout == f"False {os.environ.get('PYTHONPATH')}\n"
    assert not list(home.glob("runs/*/probe"))


def test_a_program_that_is_not_python_is_as_ever() -> None:
    done = run("--probe", "auto", "--report", "full", "--", "sh", "-c", "echo out; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert "Where the time went" not in done.stderr


def test_what_a_killed_run_of_the_same_number_left_is_not_this_ones(home: Path) -> None:
    run("--", sys.executable, "-c", "sum(range(10**7))")
    (said,) = home.glob("runs/*/probe/*-[0-9]*-[0-9]*.jsonl")
    leave = 'mkdir -pm 700 "$0$$" && cp "$1" "$0$$/99999999-1.jsonl" && shift && exec "$@"'
    folder = spool_of("")
    program = ["sh", "-c", leave, folder, said, *TEHO, "run", "--", "sleep", "0.5"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert "Where the time went" not in done.stderr
    assert len(list(home.glob("runs/*"))) == 2
    # All are of the first run: it may have one more, of stacks that were read from outside.
    assert len({path.parent for path in home.glob("runs/*/probe/*.jsonl")}) == 1
