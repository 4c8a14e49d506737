"""Find the command of `teho launch --check`: the check in the user's Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

__all__ = ["check_command"]

_HAS_TORCH = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
_PATIENCE_S = 60.0
"""A Python on a network file system may start slowly. A Python that hangs is skipped."""


def check_command(python: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command of the check.

    Args:
        python: words that start the user's Python, such as a container's `exec` with `python3`;
            empty: the Python on the PATH that has torch, or else the Python of Teho.
        environment: of this process.
    """
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check.py")  # noqa: PTH100, PTH118, PTH120
    if python:
        return (*python, script)
    for name in ("python", "python3"):
        path = shutil.which(name, path=environment.get("PATH"))
        if path and _has_torch(path, environment):
            return (path, script)
    return (sys.executable, script)


def _has_torch(path: str, environment: Mapping[str, str]) -> bool:
    try:
        ended = subprocess.run(
            [path, "-c", _HAS_TORCH],
            env=dict(environment),
            check=False,
            capture_output=True,
            timeout=_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0
