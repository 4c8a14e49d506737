"""Which cases of costly tests run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from drawn import draw

TESTS = Path(__file__).parent
SEED = "one test_cases.py"
CASES = [f"case {number}" for number in range(8)]
FILE = """
import pytest

@pytest.mark.drawn(2, always=("0",))
@pytest.mark.parametrize("case", range(8), ids=str)
def test_first(case): pass

@pytest.mark.drawn(2, always=("0",))
@pytest.mark.parametrize("case", range(8), ids=str)
def test_same_cases(case): pass

@pytest.mark.drawn(1, by="cluster")
@pytest.mark.parametrize("task", range(3))
@pytest.mark.parametrize("cluster", range(4))
def test_by_parameter(cluster, task): pass

@pytest.mark.drawn(1, tests="alike")
@pytest.mark.parametrize("case", range(2))
def test_alike_first(case): pass

@pytest.mark.drawn(1, tests="alike")
def test_alike_second(): pass

@pytest.mark.drawn(1, tests="alike")
def test_alike_third(): pass

@pytest.mark.drawn(1, tests="skipped")
@pytest.mark.skipif(True, reason="not here")
def test_not_here(): pass

@pytest.mark.drawn(1, tests="skipped")
def test_here(): pass

def test_without_mark(): pass
"""
OF_A_GROUP = """
import pytest

pytestmark = pytest.mark.drawn(1, group="files")

def test_first(): pass

def test_second(): pass
"""


def test_a_draw_is_repeated_and_in_the_end_every_case_runs() -> None:
    drawn = [draw(CASES, 2, CASES[:1], f"commit {number}") for number in range(60)]
    assert all(len(one) == 3 and CASES[0] in one for one in drawn)
    assert set().union(*drawn) == {*CASES}
    assert drawn == [draw(CASES, 2, CASES[:1], f"commit {number}") for number in range(60)]
    assert draw(CASES, 20, (), "commit") == {*CASES}


def collected(folder: Path, *arguments: str, **environment: str) -> list[str]:
    """Return the names of the tests that would run."""
    (folder / "test_cases.py").write_text(FILE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "conftest",
         "-p", "no:cacheprovider", "-c", TESTS.parent / "pyproject.toml",
         "--rootdir", TESTS.parent, *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{TESTS}:{TESTS / 'stubs'}", **environment},
    )  # fmt: skip
    return [line.split("::")[1] for line in done.stdout.splitlines() if "::" in line]


def test_pytest_runs_the_drawn_cases(tmp_path: Path) -> None:
    names = collected(tmp_path, "test_cases.py", TEHO_DRAW="one")
    first = {name.split("[")[1] for name in names if name.startswith("test_first")}
    assert len(first) == 3
    assert "0]" in first
    assert first == {name.split("[")[1] for name in names if name.startswith("test_same_cases")}
    clusters = [name for name in names if name.startswith("test_by_parameter")]
    assert len(clusters) == 3
    assert len({name.split("[")[1].split("-")[0] for name in clusters}) == 1
    assert "test_without_mark" in names
    alike = [name for name in names if name.startswith("test_alike")]
    assert len({name.split("[")[0] for name in alike}) == 1
    assert len(alike) == (2 if "first" in alike[0] else 1)
    assert {"test_not_here", "test_here"} <= {*names}


def test_one_file_of_a_group_runs(tmp_path: Path) -> None:
    for name in ("test_a", "test_b", "test_c"):
        (tmp_path / f"{name}.py").write_text(OF_A_GROUP)
    names = collected(tmp_path, "test_a.py", "test_b.py", "test_c.py", TEHO_DRAW="one")
    assert names == ["test_first", "test_second"]


def test_all_cases_run_if_they_are_asked_for(tmp_path: Path) -> None:
    assert len(collected(tmp_path, "test_cases.py", TEHO_SOAK="1")) == 8 + 8 + 12 + 4 + 2 + 1
    left_out = min({f"{number}" for number in range(8)} - draw(map(str, range(8)), 2, "0", SEED))
    one = f"test_first[{left_out}]"
    assert collected(tmp_path, f"test_cases.py::{one}", TEHO_DRAW="one") == [one]
