"""The languages of the portal's pages.

English is in the templates and in the code. Another language is one file, `languages/NAME.toml`,
with a translation of each message of `languages/en.toml`. A message without one stays English.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from teho.config.toml import read_toml

__all__ = ["choose_language", "language", "say", "say_count"]

_FOLDER = Path(str(files("teho.show.portal"))) / "languages"


class _Language(NamedTuple):
    name: str
    """As in HTML, such as `en`."""
    messages: Mapping[str, str]


_ENGLISH = _Language("en", {})
_present: ContextVar[_Language] = ContextVar("language", default=_ENGLISH)


def choose_language(accepted: str) -> None:
    """Set the language for the rest of this request.

    Args:
        accepted: the header `Accept-Language`; its first language that has a file is taken.
    """
    wanted = [part.split(";")[0].split("-")[0].strip().lower() for part in accepted.split(",")]
    known = _languages(_FOLDER)
    _present.set(next((known[name] for name in wanted if name in known), known["en"]))


@cache
def _languages(folder: Path) -> dict[str, _Language]:
    return {path.stem: _Language(path.stem, read_toml(path)) for path in folder.glob("*.toml")}


def language() -> str:
    """Return the name of the language of this request."""
    return _present.get().name


def say(message: str) -> str:
    """Return a message in the language of this request."""
    return _present.get().messages.get(message, message)


def say_count(one: str, several: str, count: int) -> str:
    """Return the message for one or for several things."""
    return say(one if count == 1 else several)
