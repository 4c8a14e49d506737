"""Lets all tasks of a job step, on all nodes, find the same recording.

    TEHO_HOME/steps/KEY -> RUN     a symbolic link to the id of the run

The first node that makes the link begins the recording. Making a link is atomic on all shared
file systems. Readers need only a directory entry, not the content of a file.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta, timezone
from pathlib import Path

from teho.patterns import lazy_pattern
from teho.store.layout import replace_file, run_file, runs_directory, safe_name

__all__ = [
    "claim_step",
    "create_step_directory",
    "forget_steps_of",
    "run_of_step",
    "write_missing_description",
]

_STAMP = lazy_pattern(r"(\d{8}-\d{6})-")
_SAME_STEP = timedelta(hours=1)
"""All tasks of a step start together. Years later the scheduler uses its number again."""


def claim_step(home: Path, key: str, run_id: str) -> tuple[str, bool]:
    """Return `(id of the step's run, whether this call began it)`.

    Raises:
        OSError: the directory cannot be written.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    link = _link(home, key)
    link.parent.mkdir(mode=0o700, exist_ok=True)
    for _ in range(3):
        try:
            link.symlink_to(run_id)
        except FileExistsError:
            known = run_of_step(home, key)
            if known and _is_fresh(known):
                return known, False
            # The link is old: an earlier step had the same number.
            link.unlink(missing_ok=True)
        else:
            return run_id, True
    raise FileExistsError(0, "another step uses the name of this step", str(link))


def run_of_step(home: Path, key: str) -> str | None:
    """Return the id of a step's run; None before it begins."""
    try:
        return str(_link(home, key).readlink())
    except OSError:
        return None


def create_step_directory(home: Path, run_id: str) -> Path:
    """Create the missing directories of a step's run, and return the run's directory.

    The node that began the run writes `run.json`.

    Raises:
        OSError: they cannot be created.
    """
    run = runs_directory(home) / run_id
    if (run / _PARTS[-1]).exists():
        return run  # the part that is made last: ten thousand tasks come here at the same time
    for directory in (home, run.parent, run, *(run / name for name in _PARTS)):
        directory.mkdir(mode=0o700, exist_ok=True)
    return run


_PARTS = ("nodes", "live", "samples", "leases", "tasks")


def write_missing_description(run: Path, description: bytes) -> None:
    """Write `run.json` if the node that began the recording did not.

    Raises:
        OSError: it cannot be written.
    """
    if not run_file(run).exists():
        replace_file(run_file(run), description)


def forget_steps_of(home: Path, run_ids: set[str]) -> None:
    """Delete the links to deleted runs."""
    with contextlib.suppress(OSError):
        for link in (home / "steps").iterdir():
            with contextlib.suppress(OSError):
                if str(link.readlink()) in run_ids:
                    link.unlink()


def _link(home: Path, key: str) -> Path:
    return home / "steps" / safe_name(key)[:200]


def _is_fresh(run_id: str) -> bool:
    """Return whether a run began within the last hour. Its id begins with the time in UTC."""
    match = _STAMP.match(run_id)
    if not match:
        return False
    began = datetime.strptime(match.group(1), "%Y%m%d-%H%M%S").replace(tzinfo=timezone.utc)
    return abs(datetime.now(timezone.utc) - began) < _SAME_STEP
