"""Write a text as one word of a `#$` line, or as a job's name."""

from __future__ import annotations

import re

from teho.errors import InputError
from teho.schedulers.script.quoting import NAME_MOST, PLAIN, refuse_unprintable

__all__ = ["grid_engine_name", "grid_engine_value"]


def grid_engine_value(text: str, what: str) -> str:
    """Return a value for a `#$` line, in quotes if it has spaces.

    A quote, `#` or a comma cannot be written (tried on 8.1.9).

    Raises:
        InputError: a line cannot contain the value.
    """
    refuse_unprintable(text, what)
    if re.search("['\"#,]", text):
        expected = "a path without quotes, # or commas: Grid Engine cannot read these characters"
        raise InputError(f"{what}: {text!r}", expected)
    return text if text and PLAIN.fullmatch(text) else f'"{text}"'


def grid_engine_name(name: str) -> str:
    """Return the most similar name for Grid Engine: ASCII letters, digits and `_.+-`.

    Grid Engine refuses a digit first, `none`, blanks, `/`, `:`, `@`, `*`, `?`, backslashes and
    non-ASCII characters. It drops quotes, and the text after a `#` (tried on 8.1.9).
    """
    plain = re.sub(r"[^\w.+-]", "_", name, flags=re.ASCII)[:NAME_MOST]
    return f"_{plain}" if not re.match("[A-Za-z_]", plain) or plain.lower() == "none" else plain
