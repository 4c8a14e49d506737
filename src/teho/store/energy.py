"""What `teho energy --save` keeps: where the counter of each GPU stood, and when.

    TEHO_HOME/energy/NODE/DEVICE.json     replaced atomically, the newest one counts

A file for each GPU: tasks of one node that see a GPU each, and a script that sees them all, write
and read the same ones.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from teho.errors import DamagedError, InputError
from teho.store.layout import replace_file, safe_name

__all__ = ["SavedCounter", "load_counter", "save_counter"]

_SAVE_AGAIN = "`teho energy --save` before what is to be measured"


class SavedCounter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a GPU's counter stood."""

    boot: str
    """The kernel's id of the node's boot."""
    job: str
    """The scheduler's number of the job; empty outside of one."""
    at_s: float
    """Seconds since that boot."""
    energy_j: float


def save_counter(home: Path, node: str, device: str, saved: SavedCounter) -> None:
    """Keep where a GPU's counter stands, in place of what was kept before.

    Raises:
        OSError: it cannot be written; the older one stays.
    """
    path = _path(home, node, device)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(saved))


def load_counter(home: Path, node: str, device: str, now: SavedCounter) -> SavedCounter:
    """Return where a GPU's counter stood when it was saved.

    Args:
        home: the directory of all recordings.
        node: the node's name.
        device: the GPU's id.
        now: where it stands now; what was saved in another job or boot is refused.

    Raises:
        InputError: nothing was saved, or in another job, or before the node was restarted.
        DamagedError: the file is not what was written.
    """
    path = _path(home, node, device)
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=SavedCounter)
    except FileNotFoundError:
        raise InputError(
            f"nothing was saved for {device} on {node}", next_step=_SAVE_AGAIN
        ) from None
    except (OSError, msgspec.DecodeError) as error:
        raise DamagedError(
            f"{path}: {error}", "what `teho energy --save` writes", _SAVE_AGAIN
        ) from error
    if saved.boot != now.boot:
        found = f"{node} was restarted since the energy of {device} was saved"
    elif saved.job != now.job:
        found = (
            f"the energy of {device} was saved {_words(saved.job)}, and this is {_this(now.job)}"
        )
    elif saved.at_s > now.at_s:
        found = f"{path}: saved {saved.at_s - now.at_s:.0f} s from now"
    else:
        return saved
    raise InputError(found, next_step=_SAVE_AGAIN)


def _path(home: Path, node: str, device: str) -> Path:
    return home / "energy" / (safe_name(node) or "node") / f"{safe_name(device)}.json"


def _words(job: str) -> str:
    return f"in job {job}" if job else "outside of a job"


def _this(job: str) -> str:
    return f"job {job}" if job else "no job"
