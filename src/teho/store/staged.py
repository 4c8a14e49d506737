"""What `teho stage` has copied, so that it replaces only its own older copies.

TEHO_HOME/staged/KEY.json     one for each source and destination; replaced atomically
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from teho.errors import DamagedError
from teho.store.layout import replace_file

__all__ = ["load_staged", "save_staged"]

_FORMAT = 1


def save_staged(home: Path, copy: str, files: Mapping[str, tuple[int, int]]) -> None:
    """Save which files are at a destination.

    Args:
        home: the directory of all recordings.
        copy: identifies source and destination.
        files: name -> size in bytes and time in ns.

    Raises:
        OSError: it cannot be written.
    """
    path = _path(home, copy)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Not msgspec: a name that is not a text has surrogates.
    replace_file(path, json.dumps({"format": _FORMAT, "files": dict(files)}).encode())


def load_staged(home: Path, copy: str) -> dict[str, tuple[int, int]]:
    """Return which files were copied earlier; empty if there is no record.

    Raises:
        DamagedError: the record cannot be read.
    """
    path = _path(home, copy)
    try:
        saved = json.loads(path.read_bytes())
        return {name: (int(size), int(time)) for name, (size, time) in saved["files"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(
            f"{path} cannot be read: {error}",
            next_step=f"remove it: `rm {path}`. Without this file, `teho stage` does not replace "
            "files at the destination, even if the files of SRC are newer",
        ) from error


def _path(home: Path, copy: str) -> Path:
    key = hashlib.sha256(copy.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return home / "staged" / f"{key}.json"
