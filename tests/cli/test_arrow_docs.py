"""Commands load pyarrow.compute without its help texts, and nothing else is different."""

from __future__ import annotations

import subprocess
import sys

# What `teho` does before it runs a command.
AS_COMMAND = """\
import sys
from teho.cli import group
group._guarded = lambda words: 0
try:
    group.run(["list"])
except SystemExit:
    pass
import pyarrow as pa, pyarrow.compute as pc
"""


def printed(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


def test_the_parser_is_not_loaded_and_the_functions_work() -> None:
    code = """\
print("pydoc" in sys.modules)
values = pa.array([3, None, 1])
print(pc.sum(values), pc.sort_indices(values, sort_keys=[("", "descending")]).to_pylist())
print(pc.quantile(values, q=[0.5], skip_nulls=True).to_pylist(), pc.sum.__name__)
"""
    assert printed(AS_COMMAND + code) == ["False", "4 [0, 2, 1]", "[2.0] sum"]


def test_what_else_a_pyarrow_may_use_is_the_original() -> None:
    code = """\
from pyarrow.vendored import docscrape
text = "Add.\\n\\nParameters\\n----------\\nx : int\\n    One."
print(docscrape.NumpyDocString(text)["Parameters"], docscrape.NumpyDocString(text)["Summary"])
from pyarrow.vendored import docscrape
print(docscrape.FunctionDoc.__module__, docscrape.NumpyDocString.__module__)
"""
    first, second = printed(AS_COMMAND + code)
    assert first == "[] ['Add.']"
    assert second.split()[0] == "pyarrow.vendored.docscrape"


def test_a_user_s_python_has_the_original() -> None:
    code = "import teho, pyarrow.compute as pc; print('skip_nulls' in pc.sum.__doc__)"
    assert printed(code) == ["True"]
