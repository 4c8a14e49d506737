"""Any text as one word of a `#$` line, and as a job's name."""

from __future__ import annotations

import re

from teho.errors import InputError
from teho.schedulers.script.quoting import NAME_MOST, PLAIN, refuse_unprintable

__all__ = ["grid_engine_name", "grid_engine_value"]


def grid_engine_value(text: str, what: str) -> str:
    """Return a value as qsub reads it in a `#$` line: between quotes where it has spaces.

    A quote, `#` and a comma cannot be said in any way (tried on 8.1.9).

    Raises:
        InputError: it holds what no line can hold.
    """
    refuse_unprintable(text, what)
    if re.search("['\"#,]", text):
        raise InputError(f"{what}: {text!r}", "no quote, # or comma: Grid Engine cannot read them")
    return text if text and PLAIN.fullmatch(text) else f'"{text}"'


def grid_engine_name(name: str) -> str:
    """Return the nearest name that Grid Engine takes: of ASCII letters, digits and `_.+-`.

    It refuses a digit first, `none`, blanks, `/`, `:`, `@`, `*`, `?`, backslashes and
    what is not ASCII, and drops quotes and what follows a `#` (tried on 8.1.9).
    """
    plain = re.sub(r"[^\w.+-]", "_", name, flags=re.ASCII)[:NAME_MOST]
    return f"_{plain}" if not re.match("[A-Za-z_]", plain) or plain.lower() == "none" else plain
