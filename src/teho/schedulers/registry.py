"""Find the schedulers: each is one folder next to this file. Their names are not in a list.

The `__init__.py` of such a folder has one row, `SCHEDULER`: the module and the class that describe
the scheduler. The folder's name is the scheduler's name, as in a cluster's file.
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

__all__ = [
    "backend_for",
    "cluster_schedulers",
    "scheduler_of",
    "scheduler_or_none",
    "schedulers",
]


@cache
def schedulers() -> dict[str, Scheduler]:
    """Return every scheduler by its name, in the order in which their variables are read."""
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


def cluster_schedulers() -> list[str]:
    """Return the names of the schedulers that a cluster's file may name."""
    return [name for name, one in schedulers().items() if not one.is_this_machine]


def scheduler_of(name: str) -> Scheduler:
    """Return the description of a scheduler.

    Raises:
        InputError: it has no folder here.
    """
    known = schedulers()
    if name not in known:
        raise InputError(f"scheduler {name!r} is not known", " or ".join(known))
    return known[name]


def scheduler_or_none(name: str | None) -> Scheduler:
    """Return the description of a run's scheduler.

    If the run had no scheduler, or an unknown one, the description has no abilities and no advice.
    """
    return schedulers().get(name or "") or Scheduler()


def backend_for(scheduler: str, home: Path) -> Backend:
    """Return the backend of a scheduler.

    Args:
        scheduler: its name, such as `slurm`.
        home: Teho's own directory, which also has the jobs of `local`.

    Raises:
        InputError: Teho does not know this scheduler.
    """
    return scheduler_of(scheduler).backend(home)
