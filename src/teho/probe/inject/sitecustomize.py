"""Run by every Python at its start that finds this folder on its path, which `teho run` sees to.

It lets the probe in, and then whatever Python would have run in its place. A cluster's own tools
run under Pythons as old as 2.7, which come here too: this file reads in all of them.
"""

import os
import sys


def _enter():
    # type: () -> None
    """Start the probe; whatever goes wrong is none of the program's business."""
    if sys.version_info < (3, 8):
        return
    try:
        from _teho_probe import enter

        enter()
    except Exception:  # it must not be seen
        pass


def _make_way(folder):
    # type: (str) -> None
    """Run the `sitecustomize` that stands behind this one; its errors are its own."""
    # The program is to find on its path what it would find without us.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    this = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401 - another one now
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
        sys.modules[__name__] = this


_enter()
_make_way(os.path.dirname(os.path.abspath(__file__)))
