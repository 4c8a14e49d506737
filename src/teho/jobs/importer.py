"""The base class of importers, and the list of all of them.

Each file of `teho.jobs.importers` has one subclass, and sets `IMPORTER` to it. The importer has the
name of its file, as in `teho import --as NAME`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

import teho.jobs.importers
from teho.errors import InputError
from teho.jobs.log import Log, Source

__all__ = ["LINES_BEFORE", "Importer", "importer_for", "importers"]

LINES_BEFORE = 200
"""Number of lines in which a format is searched: a batch job may print many before its log."""


class Importer:
    """One format of logs."""

    name: str = ""
    """Name of its file."""
    title: str = ""
    """Name of the program or service in messages."""
    written_by: str = ""
    """Command that writes such a file, for docs/import.md."""
    place: int = 100
    """Position in the list. Earlier formats are tried first."""

    def recognises(self, source: Source) -> bool:
        """Return whether a file has this format. Only its beginning needs to be read."""
        raise NotImplementedError

    def advice(self, source: Source) -> str:  # noqa: ARG002 - subclasses use it
        """Return what to do if no importer recognises a file that may have this format.

        Empty: the file does not have this format.
        """
        return ""

    def read(self, source: Source) -> Log:
        """Read the whole file.

        Raises:
            InputError: the file has this format, but not what Teho needs.
        """
        raise NotImplementedError


@cache
def importers() -> dict[str, Importer]:
    """Return every importer by its name, in the order in which they are tried."""
    found: list[Importer] = []
    for module in iter_modules(teho.jobs.importers.__path__):
        of_module = import_module(f"{teho.jobs.importers.__name__}.{module.name}")
        importer = cast("type[Importer]", of_module.IMPORTER)()
        importer.name = module.name.replace("_", "-")
        found.append(importer)
    found.sort(key=lambda one: (one.place, one.name))
    return {one.name: one for one in found}


def importer_for(source: Source, name: str = "") -> Importer:
    """Return the importer of a file.

    Args:
        source: the file.
        name: the name that the user gave; empty: found by the content.

    Raises:
        InputError: no importer has this name, or none recognises the file.
    """
    known = importers()
    if name:
        if name not in known:
            raise InputError(f"--as {name}: not a format that Teho reads", ", ".join(known))
        return known[name]
    for importer in known.values():
        if importer.recognises(source):
            return importer
    if not source.text.strip():
        what, next_step = "is empty", "check the program that writes this file"
    else:
        what = "has no format that Teho recognises"
        advice = (one.advice(source) for one in known.values())
        next_step = next(filter(None, advice), "`teho import --help` names the programs")
    raise InputError(
        f"{source.path} {what}",
        f"a log of {', '.join(one.title for one in known.values())}",
        next_step,
    )
