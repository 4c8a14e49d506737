"""Any text as one word of bash, and what a scheduler's own lines need for theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from teho.errors import InputError

__all__ = [
    "NAME_MOST",
    "PLAIN",
    "UNPRINTABLE",
    "bash_command",
    "bash_word",
    "refuse_unprintable",
]

PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
"""A word that needs no quotes."""
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\udc80-\udcff]")
"""Control characters, and bytes that are no UTF-8 (as surrogates, the way Python reads them)."""
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "'": "\\'"}
# bash reads these at the beginning of a command as words of its own language.
_KEYWORDS = frozenset({
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
})  # fmt: skip
NAME_MOST = 200
"""Longest name of a job that is written; schedulers cut or refuse longer ones."""


def bash_word(word: str) -> str:
    """Return a word as bash reads it back, byte for byte.

    What cannot be printed is escaped: a script stays text, one line a command, so that
    no argument can look like a directive, and no line end like that of another system.

    Args:
        word: any text without NUL; bytes that are no UTF-8 as surrogates (`os.fsdecode`).
    """
    if PLAIN.fullmatch(word):
        return word
    if UNPRINTABLE.search(word):
        return "$'" + "".join(map(_escaped, word)) + "'"
    return "'" + word.replace("'", "'\\''") + "'"


def bash_command(words: Sequence[str]) -> str:
    """Return words as one command of bash; the first is run and never read as bash's own."""
    first, *rest = words
    quoted = bash_word(first)
    if quoted == first and (first in _KEYWORDS or "=" in first):
        quoted = f"'{first}'"
    return " ".join([quoted, *map(bash_word, rest)])


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if UNPRINTABLE.fullmatch(character):
        return f"\\x{ord(character) & 0xFF:02x}"
    return character


def refuse_unprintable(text: str, what: str) -> None:
    """Refuse a value that no line can hold.

    Raises:
        InputError: it has characters that cannot be printed.
    """
    if UNPRINTABLE.search(text):
        raise InputError(f"{what}: {text!r} has characters that cannot be printed", "others")
