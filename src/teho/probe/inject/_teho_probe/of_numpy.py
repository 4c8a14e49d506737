"""NumPy: its linear algebra library, and the number of threads.

The types of its arrays are not recorded, because programs create millions of them.
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
"""Suffixes of names in libraries with 64-bit indices."""


def numpy(module: Any, notes: Notes) -> None:
    """Note its version, its linear algebra library, and the threads."""
    notes.fact("numpy", version=str(module.__version__), blas=_blas(module))
    threads = _openblas_threads()
    if threads is not None:
        notes.fact("numpy", blas_threads=threads)


def _blas(module: Any) -> str | None:
    """Return the name of the linear algebra library."""
    config = getattr(module, "__config__", None)
    built = getattr(config, "CONFIG", {}).get("Build Dependencies", {}).get("blas", {})
    if built:
        return " ".join(str(built[key]) for key in ("name", "version") if built.get(key))
    before = getattr(config, "blas_opt_info", {}) or getattr(config, "blas_ilp64_opt_info", {})
    return ", ".join(dict.fromkeys(before.get("libraries", ()))) or None


def _openblas_threads() -> int | None:
    """Ask OpenBLAS. Other libraries, such as MKL, would initialise themselves to answer."""
    ctypes = sys.modules.get("ctypes")
    path = _openblas()
    if ctypes is None or path is None:
        return None
    # Only if the library is loaded already.
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
