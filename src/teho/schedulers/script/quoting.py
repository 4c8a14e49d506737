"""Quote texts for bash and for the option lines of schedulers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from teho.errors import InputError
from teho.patterns import lazy_pattern

__all__ = [
    "NAME_MOST",
    "PLAIN",
    "UNPRINTABLE",
    "bash_command",
    "bash_word",
    "refuse_unprintable",
]

PLAIN = lazy_pattern(r"[\w@%+=:,./-]+", re.ASCII)
"""A word that needs no quotes."""
UNPRINTABLE = lazy_pattern(r"[\x00-\x1f\x7f\udc80-\udcff]")
"""Control characters, and bytes that are not UTF-8 (Python reads them as surrogates)."""
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "'": "\\'"}
# bash reads these words as keywords at the beginning of a command.
_KEYWORDS = frozenset({
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
})  # fmt: skip
NAME_MOST = 200
"""Maximum length of a job's name. Schedulers cut or refuse longer names."""


def bash_word(word: str) -> str:
    """Return a word, quoted so that bash reads the same bytes.

    Characters that cannot be printed are escaped. So each command stays on one line, and no
    argument can look like a directive or like a line end of another system.

    Args:
        word: any text without NUL. Bytes that are not UTF-8 are surrogates (`os.fsdecode`).
    """
    if PLAIN.fullmatch(word):
        return word
    if UNPRINTABLE.search(word):
        return "$'" + "".join(map(_escaped, word)) + "'"
    return "'" + word.replace("'", "'\\''") + "'"


def bash_command(words: Sequence[str]) -> str:
    """Return words as one command of bash. The first word is never read as a keyword."""
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
    """Refuse a value with characters that cannot be printed.

    Raises:
        InputError: it has such characters.
    """
    if UNPRINTABLE.search(text):
        raise InputError(
            f"{what}: {text!r} has characters that cannot be printed", "printable characters"
        )
