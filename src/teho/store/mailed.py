"""Remembers who got a mail about waste, and who refused these mails: `TEHO_HOME/mailed.json`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from teho.errors import InputError
from teho.store.layout import replace_file

__all__ = ["Mailed"]


class _Known(msgspec.Struct, forbid_unknown_fields=True):
    last_at: dict[str, datetime] = {}
    """User -> UTC time of the last mail."""
    refused: list[str] = []


class Mailed:
    """The file. Each change is written at once, so that a second call sends no second mail.

    Args:
        home: the directory of all recordings.

    Raises:
        InputError: the file cannot be read.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "mailed.json"
        self._known = _Known()
        if self._path.exists():
            try:
                self._known = msgspec.json.decode(self._path.read_bytes(), type=_Known)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"{self._path}: {error}",
                    "the JSON that `teho digest --mail-to` writes",
                    "correct the file: it has the users who do not want mails",
                ) from error

    def last_at(self, user: str) -> datetime | None:
        """Return the time of the last mail to a user; None: there was none."""
        return self._known.last_at.get(user)

    def has_refused(self, user: str) -> bool:
        """Return whether a user refused the mails."""
        return user in self._known.refused

    def note_mail(self, user: str, at: datetime | None) -> None:
        """Write the time of the last mail to a user; None: there was none.

        Raises:
            InputError: the file cannot be written.
        """
        if at is None:
            self._known.last_at.pop(user, None)
        else:
            self._known.last_at[user] = at
        self._write()

    def refuse(self, user: str) -> None:
        """Write that a user refuses the mails.

        Raises:
            InputError: the file cannot be written.
        """
        self._known.refused = sorted({*self._known.refused, user})
        self._write()

    def accept(self, user: str) -> bool:
        """Write that a user accepts the mails again; return whether the user had refused them.

        Raises:
            InputError: the file cannot be written.
        """
        if user not in self._known.refused:
            return False
        self._known.refused.remove(user)
        self._write()
        return True

    def _write(self) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, msgspec.json.encode(self._known))
        except OSError as error:
            raise InputError(
                f"{self._path}: {error.strerror}", "a file that can be written"
            ) from error
