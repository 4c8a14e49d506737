"""Settings of the data loader that `teho tune` has proved for this program."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from teho.errors import InputError

__all__ = ["proved_settings"]

_NAMES = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory")
_SCHEMA = "teho.tune/1"


def proved_settings() -> dict[str, Any]:
    """Return arguments of DataLoader from the file `PROGRAM.tuned.json` next to the program.

    `teho tune -o train.py.tuned.json -- python train.py` writes this file. The result has only
    settings that the program did not have before. It is empty if no gain was proved, or if the gain
    was measured with all samples in memory.

    Raises:
        InputError: the file is not a result of `teho tune`.
    """
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    path = Path(f"{program}.tuned.json")
    if not program or not path.exists():
        return {}
    try:
        tuned = json.loads(path.read_text(encoding="utf-8"))
        if tuned["schema"] != _SCHEMA:
            raise InputError(f"{path} has the schema {tuned['schema']}", _SCHEMA)
        found = dict(tuned["settings"]) if tuned["outcome"] == "gain" else {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} cannot be read", "the JSON form of `teho tune`", "delete the file"
        ) from error
    if found.get("in_memory"):
        return {}
    return {name: found[name] for name in _NAMES if name in found}
