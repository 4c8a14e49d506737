"""`teho.feed` without PyTorch."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import teho.feed
from teho.feed import pack, packed
assert not hasattr(teho.feed, "nothing")
assert callable(pack) and callable(packed)
for name in ("resident", "loader"):
    try:
        exec(f"from teho.feed import {name}")
    except ImportError as error:
        print(error)
"""


def test_the_error_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        f"teho.feed.{name} needs PyTorch, and {sys.executable} does not have it. Next: install "
        "PyTorch into this Python, or install Teho into the Python that has PyTorch. On a cluster, "
        "`teho env plan --framework pytorch` writes the commands."
        for name in ("resident", "loader")
    ]
