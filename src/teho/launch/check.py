"""`teho launch --check`: do the ranks of this step reach each other, and how fast?

A script that every rank becomes, under whatever Python the user trains with: Python 3.8 or
later, in containers too, with the standard library alone (and torch where it is there). The
`checking` package beside it and `teho.process.json_lines` follow the same rule.

    check.py [--seconds S] [--timeout S] [--json]

It reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT, and,
where they are set, TEHO_HOSTS (the step's nodes, by comma) and TEHO_STEP (a name that no other
step has). Rank 0 prints the report; its exit code is 0 (all is well), 1 (something is wrong) or
2 (the environment is not that of a rank).
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


def _stand_alone() -> None:
    """Make the files beside this one importable, and nothing else of Teho's.

    A Python that does not have Teho must find them; and their folder must not stay first on the
    path, where its files could be taken for modules of the same names.
    """
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if entry != str(here)]
    for name, directory in (("teho", here.parent), ("teho.launch", here)):
        package = ModuleType(name)
        package.__path__ = [str(directory)]
        sys.modules[name] = package


if __name__ == "__main__":
    _stand_alone()
    sys.exit(main())
