"""Recording without being asked: `teho always`."""

from __future__ import annotations

from datetime import datetime

import msgspec

__all__ = ["Always", "Hook"]


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """Lines in a file of the user, with which the jobs of one scheduler start the recorder."""

    scheduler: str
    """Its name on screens."""
    file: str
    lines: tuple[str, ...]
    is_active: bool = False
    """Whether jobs that are submitted from this shell are recorded."""
    needs_new_shell: bool = True
    """Whether a shell has to read the lines before it submits jobs. False: the jobs read them."""
    problem: str = ""
    """Why a new shell does not have them, or what is wrong with them; empty: all is well."""


class Always(msgspec.Struct, frozen=True, kw_only=True):
    """Whether jobs are recorded without being asked, and what was recorded."""

    state: str
    """`on`, `off`, or `partly`: only some of the schedulers, or parts are missing."""
    hooks: tuple[Hook, ...]
    """At least one for each scheduler of this machine."""
    start: str
    """The program that starts the recorder."""
    home: str
    """The directory of the recordings."""
    recordings: int
    """Recordings that `teho always` made."""
    used_bytes: int
    keep_s: float
    keep_bytes: float
    last_id: str = ""
    """The newest of these recordings."""
    last_at: datetime | None = None
    problems: tuple[str, ...] = ()
    """Why jobs are not recorded, one sentence each."""
    next_step: str = ""
    """What to do so that this shell fits the state; empty: it fits."""
