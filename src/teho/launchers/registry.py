"""Finds the launchers: each is one file beside this one, and no list names it.

Such a file has one row, `LAUNCHER`: its class. The file's name is the launcher's.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

import teho.launchers
from teho.errors import InputError
from teho.launchers.launcher import Launcher

__all__ = ["launcher_of", "launchers"]


@cache
def launchers() -> dict[str, Launcher]:
    """Return every launcher by its name, in the order in which they are shown."""
    found: list[Launcher] = []
    for module in iter_modules(teho.launchers.__path__):
        row = getattr(import_module(f"teho.launchers.{module.name}"), "LAUNCHER", None)
        if row is not None:
            launcher = cast("type[Launcher]", row)()
            launcher.name = module.name
            found.append(launcher)
    found.sort(key=lambda one: (one.place, one.name))
    return {one.name: one for one in found}


def launcher_of(name: str) -> Launcher:
    """Return what Teho knows of a launcher.

    Raises:
        InputError: it has no file here.
    """
    known = launchers()
    if name not in known:
        raise InputError(f"launcher {name!r} is not known", " or ".join(known))
    return known[name]
