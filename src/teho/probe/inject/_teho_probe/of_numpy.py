"""NumPy: the library that computes for it, and with how many threads.

The types of its arrays are nobody's to see: they are made by the million.
"""

from __future__ import annotations

import os
import sys

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from _teho_probe.notes import Notes

_ASK = ("openblas_get_num_threads", "scipy_openblas_get_num_threads")
_ENDS = ("", "64_", "_64_", "64")
"""Of names in libraries with indices of 64 bits."""


def numpy(module: Any, notes: Notes) -> None:
    """Note which it is."""
    notes.fact("numpy", version=str(module.__version__), blas=_blas(module))
    threads = _openblas_threads()
    if threads is not None:
        notes.fact("numpy", blas_threads=threads)


def _blas(module: Any) -> str | None:
    """Return the name of the library that multiplies its matrices."""
    config = getattr(module, "__config__", None)
    built = getattr(config, "CONFIG", {}).get("Build Dependencies", {}).get("blas", {})
    if built:
        return " ".join(str(built[key]) for key in ("name", "version") if built.get(key))
    before = getattr(config, "blas_opt_info", {}) or getattr(config, "blas_ilp64_opt_info", {})
    return ", ".join(dict.fromkeys(before.get("libraries", ()))) or None


def _openblas_threads() -> int | None:
    """Ask OpenBLAS; others, such as MKL, would begin to set themselves up only to answer."""
    ctypes = sys.modules.get("ctypes")
    path = _openblas()
    if ctypes is None or path is None:
        return None
    # The one that is loaded already, or none.
    library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    for name in _ASK:
        for end in _ENDS:
            ask = getattr(library, name + end, None)
            if ask is not None:
                return int(ask())
    return None


def _openblas() -> str | None:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            path = line.rstrip("\n").partition("/")[2]
            if "openblas" in path and ".so" in path:
                return "/" + path
    return None
