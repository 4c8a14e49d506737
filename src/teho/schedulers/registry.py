"""Finds the schedulers: each is one folder beside this file, and no list names it.

The `__init__.py` of such a folder has one row, `SCHEDULER`: the module and the class that say
what the scheduler can do. The folder's name is the scheduler's, as in a cluster's file.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules, resolve_name
from typing import TYPE_CHECKING

import teho.schedulers
from teho.errors import InputError
from teho.schedulers.scheduler import Scheduler

if TYPE_CHECKING:
    from pathlib import Path

    from teho.schedulers.backend import Backend

__all__ = ["backend_for", "scheduler_of", "scheduler_or_none", "schedulers"]


@cache
def schedulers() -> dict[str, Scheduler]:
    """Return every scheduler by its name; the one whose variables count first comes first."""
    found: list[Scheduler] = []
    for module in iter_modules(teho.schedulers.__path__):
        if not module.ispkg:
            continue
        row = getattr(import_module(f"teho.schedulers.{module.name}"), "SCHEDULER", "")
        if row:
            scheduler = resolve_name(row)()
            scheduler.name = module.name
            found.append(scheduler)
    found.sort(key=lambda one: (one.precedence, one.name))
    return {one.name: one for one in found}


def scheduler_of(name: str) -> Scheduler:
    """Return what Teho knows of a scheduler.

    Raises:
        InputError: it has no folder here.
    """
    known = schedulers()
    if name not in known:
        raise InputError(f"scheduler {name!r} is not known", " or ".join(known))
    return known[name]


def scheduler_or_none(name: str | None) -> Scheduler:
    """Return what Teho knows of a run's scheduler.

    If the run had none, or if this Teho does not know it, the result can do nothing and gives no
    advice.
    """
    return schedulers().get(name or "") or Scheduler()


def backend_for(scheduler: str, home: Path) -> Backend:
    """Return the backend of a scheduler.

    Args:
        scheduler: its name, such as `slurm`.
        home: where Teho keeps its own things, and so the jobs of `local`.

    Raises:
        InputError: Teho knows no such scheduler.
    """
    return scheduler_of(scheduler).backend(home)
