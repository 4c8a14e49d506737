"""Allowing the node's recorder to read this process, where the kernel asks the process for it.

With Yama's `ptrace_scope` at 1 (Ubuntu's default) only an ancestor may, or who was named by
`PR_SET_PTRACER` (prctl(2)). Nothing else is allowed by it, and to nobody else.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["permit"]

_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
_ASKS = "1"
_PR_SET_PTRACER = 0x59616D61


def permit(folder: str) -> bool:
    """Allow it; tell whether there is nothing more to do.

    Args:
        folder: in which the reader has written its number.
    """
    if _read(_SCOPE) != _ASKS:
        return True
    reader = _read(os.path.join(folder, "reader"))
    if not reader.isdigit():
        return False
    # All of `ctypes` would take 10 ms; this is the part of it that calls.
    import _ctypes

    program: Any = None
    prctl = _ctypes.dlsym(_ctypes.dlopen(program, 0), "prctl")
    _ctypes.call_function(prctl, (_PR_SET_PTRACER, int(reader), 0, 0, 0))
    return True


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""
