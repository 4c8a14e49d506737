"""Arrow works in a process that refuses to import pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """\
import sys
from teho.store.without_pandas import work_without_pandas
work_without_pandas()
before = len(sys.meta_path)
work_without_pandas()
assert len(sys.meta_path) == before
try:
    import pandas
    sys.exit("pandas was imported")
except ModuleNotFoundError as error:
    assert error.name == "pandas"
import json, pyarrow as pa, pyarrow.compute as pc
column = pa.array(["node", "gpu", None])
assert pc.equal(column, "gpu").to_pylist() == [False, True, None]
"""
TOP = """\
import sys
from teho.cli import main
try: main(["top", sys.argv[1], "--once"])
except SystemExit as end: assert not end.code, end.code
assert "pyarrow" in sys.modules
assert "pandas" not in sys.modules
"""


def run(code: str, *arguments: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr


def test_arrow_converts_values_without_pandas() -> None:
    run(CODE)


def test_the_live_view_does_not_load_pandas() -> None:
    run(TOP, str(Path(__file__).parents[2] / "examples/runs/one-idle-gpu"))
