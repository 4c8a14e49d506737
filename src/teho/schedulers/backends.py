"""Which backend speaks to which scheduler."""

from __future__ import annotations

from pathlib import Path

from teho.errors import InputError
from teho.schedulers.backend import Backend
from teho.schedulers.grid_engine import GridEngine
from teho.schedulers.local import Local
from teho.schedulers.slurm import Slurm

__all__ = ["backend_for"]


def backend_for(scheduler: str, home: Path) -> Backend:
    """Return the backend of a scheduler.

    Args:
        scheduler: `slurm`, `grid_engine` or `local`.
        home: where Teho keeps its own things, and so the jobs of `local`.

    Raises:
        InputError: Teho speaks to no such scheduler.
    """
    backends: dict[str, Backend] = {
        backend.name: backend for backend in (Slurm(), GridEngine(), Local(home))
    }
    if scheduler not in backends:
        raise InputError(f"scheduler {scheduler!r} is none that Teho knows", " or ".join(backends))
    return backends[scheduler]
