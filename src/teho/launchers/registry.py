"""Find the launchers: each is one file of this folder, without a list.

The file sets `LAUNCHER` to its class. The launcher has the name of the file.
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
    """Return every launcher by its name, in the order of the documentation."""
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
    """Return a launcher by its name.

    Raises:
        InputError: Teho has no launcher of this name.
    """
    known = launchers()
    if name not in known:
        raise InputError(f"launcher {name!r} is not known", " or ".join(known))
    return known[name]
