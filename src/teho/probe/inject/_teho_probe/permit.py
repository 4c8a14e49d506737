"""Permits the node's sampler to read this process, if the kernel requires it.

With Yama's `ptrace_scope` at 1 (Ubuntu's default), only an ancestor may read a process, or a
process named with `PR_SET_PTRACER` (prctl(2)). Only the sampler gets this permission.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["permit", "read_file"]

_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
_NEEDS_PERMIT = "1"
_PR_SET_PTRACER = 0x59616D61


def permit(folder: str) -> bool:
    """Give the permission if needed; return False if the sampler has not yet written its pid.

    Args:
        folder: the folder with the file `reader`, which has the sampler's pid.
    """
    if read_file(_SCOPE).strip() != _NEEDS_PERMIT:
        return True
    reader = read_file(os.path.join(folder, "reader")).strip()
    if not reader.isdigit():
        return False
    # Importing `ctypes` would take 10 ms. This is its part that calls functions.
    import _ctypes

    program: Any = None
    prctl = _ctypes.dlsym(_ctypes.dlopen(program, 0), "prctl")
    _ctypes.call_function(prctl, (_PR_SET_PTRACER, int(reader), 0, 0, 0))
    return True


def read_file(path: str) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""
