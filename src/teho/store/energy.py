"""The files of `teho energy --save`: the value of each GPU's energy counter, and its time.

    TEHO_HOME/energy/NODE/DEVICE.json     replaced atomically; the newest value counts

Each GPU has one file. Some tasks see one GPU, and a script may see all GPUs of the node. All of
them use the same files.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from teho.errors import DamagedError, InputError
from teho.store.layout import replace_file, safe_name

__all__ = ["SavedCounter", "load_counter", "save_counter"]

_SAVE_AGAIN = "run `teho energy --save` before the part to measure"


class SavedCounter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value of a GPU's energy counter."""

    boot: str
    """The kernel's id of the node's boot."""
    job: str
    """The scheduler's number of the job; empty outside of one."""
    at_s: float
    """Seconds since that boot."""
    energy_j: float


def save_counter(home: Path, node: str, device: str, saved: SavedCounter) -> None:
    """Save the value of a GPU's counter, and replace an older one.

    Raises:
        OSError: it cannot be written; the older value is kept.
    """
    path = _path(home, node, device)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(saved))


def load_counter(home: Path, node: str, device: str, now: SavedCounter) -> SavedCounter:
    """Return the saved value of a GPU's counter.

    Args:
        home: the directory of all recordings.
        node: the node's name.
        device: the GPU's id.
        now: the present value; a value of another job or another boot is refused.

    Raises:
        InputError: no value was saved, or in another job, or before the node was restarted.
        DamagedError: the file is damaged.
    """
    path = _path(home, node, device)
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=SavedCounter)
    except FileNotFoundError:
        raise InputError(
            f"no energy was saved for {device} on {node}", next_step=_SAVE_AGAIN
        ) from None
    except (OSError, msgspec.DecodeError) as error:
        raise DamagedError(
            f"{path}: {error}", "the JSON that `teho energy --save` writes", _SAVE_AGAIN
        ) from error
    if saved.boot != now.boot:
        found = f"{node} was restarted after the energy of {device} was saved"
    elif saved.job != now.job:
        where = f"in job {saved.job}" if saved.job else "outside a job"
        here = f"in job {now.job}" if now.job else "outside a job"
        found = (
            f"`--save` read the energy counter of {device} {where}, but this command runs {here}"
        )
    elif saved.at_s > now.at_s:
        found = f"the time in {path} is {saved.at_s - now.at_s:.0f} s in the future"
    else:
        return saved
    raise InputError(found, next_step=_SAVE_AGAIN)


def _path(home: Path, node: str, device: str) -> Path:
    return home / "energy" / (safe_name(node) or "node") / f"{safe_name(device)}.json"
