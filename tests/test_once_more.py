"""What failed in `make test` runs once more, alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("once_more.py")
FAILS_ONCE = """
from pathlib import Path

def test_it() -> None:
    mark = Path(__file__).with_suffix(".mark")
    failed_before = mark.exists()
    mark.touch()
    assert failed_before
"""
ALWAYS_FAILS = "def test_it() -> None:\n    assert False\n"


@pytest.mark.parametrize(
    ("files", "exit_code", "printed"),
    [
        ([FAILS_ONCE], 0, "  test_0.py::test_it"),
        ([FAILS_ONCE, ALWAYS_FAILS], 1, "FAILED test_1.py::test_it"),
        ([FAILS_ONCE] * 4, 1, ""),
    ],
    ids=["fails once", "fails again", "too many"],
)
def test_only_a_few_tests_run_again_and_they_have_to_pass(
    tmp_path: Path, files: list[str], exit_code: int, printed: str
) -> None:
    for number, text in enumerate(files):
        (tmp_path / f"test_{number}.py").write_text(text)
    pytest_call = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--cache-clear", "."]
    assert subprocess.run(pytest_call, cwd=tmp_path, check=False).returncode == 1
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, printed in done.stdout) == (exit_code, True), done.stdout
