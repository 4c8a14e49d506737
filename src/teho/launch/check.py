"""`teho launch --check`: do the ranks of this step reach each other, and how fast?

Every rank becomes this script, in the Python that the user trains with: Python 3.8 or later, also
in containers, with only the standard library (and torch, if it is installed). The `checking`
package and `teho.process.json_lines` follow the same rule.

    check.py [--seconds S] [--timeout S] [--json]

It reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR and MASTER_PORT. If
they are set, it also reads TEHO_HOSTS (the step's nodes, separated by commas) and TEHO_STEP (a
unique name of the step). Rank 0 prints the report. Its exit code is 0 (no problem), 1 (a problem
was found) or 2 (the environment does not describe a rank).
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

__all__ = ["main"]


def main() -> int:
    """Run the check and return its exit code."""
    from teho.launch.checking.rank import run

    return run(sys.argv[1:])


def _make_importable() -> None:
    """Make only the files of this folder importable as `teho.launch`.

    A Python without Teho must find them. Their folder must not stay first on the path: its files
    would hide modules of the same names.
    """
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if entry != str(here)]
    for name, directory in (("teho", here.parent), ("teho.launch", here)):
        package = ModuleType(name)
        package.__path__ = [str(directory)]
        sys.modules[name] = package


if __name__ == "__main__":
    _make_importable()
    sys.exit(main())
