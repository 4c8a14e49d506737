"""Run by each Python at its start if this folder is on its path; `teho run` adds it.

It loads the probe, and then the `sitecustomize` that Python would have run otherwise. A cluster's
tools may use Python 2.7, so the syntax of this file must be valid there too.
"""

import os
import sys


def _enter():
    # type: () -> None
    """Start the probe; an error must not reach the program."""
    if sys.version_info < (3, 8):
        return
    try:
        from _teho_probe import enter

        enter()
    except Exception:
        pass


def _run_next(folder):
    # type: (str) -> None
    """Run the next `sitecustomize` on the path. Its errors are not suppressed."""
    # The program should have the same path as without the probe.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    this = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401 - another one now
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
        sys.modules[__name__] = this


_enter()
_run_next(os.path.dirname(os.path.abspath(__file__)))
