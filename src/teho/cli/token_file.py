"""The token of a store, in a file that other users should not read."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from teho.cli import say

if TYPE_CHECKING:
    from teho.config.settings import Settings
    from teho.jobs.http import Store

__all__ = ["chosen_store", "warn_of_readers"]


def warn_of_readers(path: Path) -> None:
    """Print a warning if other users have the permission to read or change a file."""
    with contextlib.suppress(OSError):  # the reader of the file says why
        if path.stat().st_mode & 0o066:
            say(
                f"the permissions of {path} let other users read the token. "
                f"Next: `chmod 600 {shlex.quote(str(path))}`"
            )


def chosen_store(settings: Settings, address: str) -> Store | None:
    """Return the store at an address, or of the settings; None: there is none.

    Raises:
        InputError: the address or the file of the token cannot be used.
    """
    from teho.config.settings import expanded
    from teho.jobs.http import store_of

    store = store_of(settings, address)
    if store is not None and settings.monitoring_token_file:
        warn_of_readers(expanded(settings.monitoring_token_file))
    return store
