"""Any text as one word: of bash, of an `#SBATCH` line, of a `#$` line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from teho.errors import InputError

__all__ = [
    "bash_command",
    "bash_word",
    "grid_engine_name",
    "grid_engine_value",
    "slurm_name",
    "slurm_value",
]

_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
# Control characters, and bytes that are no UTF-8 (as surrogates, the way Python reads them).
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\udc80-\udcff]")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "'": "\\'"}
# bash reads these at the beginning of a command as words of its own language.
_KEYWORDS = frozenset({
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
})  # fmt: skip
_NAME_MOST = 200
"""Longest name of a job that is written; schedulers cut or refuse longer ones."""


def bash_word(word: str) -> str:
    """Return a word as bash reads it back, byte for byte.

    What cannot be printed is escaped: a script stays text, one line a command, so that
    no argument can look like a directive, and no line end like that of another system.

    Args:
        word: any text without NUL; bytes that are no UTF-8 as surrogates (`os.fsdecode`).
    """
    if _PLAIN.fullmatch(word):
        return word
    if _UNPRINTABLE.search(word):
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
    if _UNPRINTABLE.fullmatch(character):
        return f"\\x{ord(character) & 0xFF:02x}"
    return character


def slurm_value(text: str, what: str) -> str:
    """Return a value as sbatch reads it in an `#SBATCH` line.

    sbatch knows both quotes; a backslash takes any character for itself, inside quotes
    too, and `#` begins a comment (src/sbatch/opt.c, and tried on 22.05).

    Raises:
        InputError: it holds what no line can hold.
    """
    _refuse_unprintable(text, what)
    if text and _PLAIN.fullmatch(text):
        return text
    return '"' + re.sub(r'[\\"#]', r"\\\g<0>", text) + '"'


def slurm_name(name: str) -> str:
    """Return the nearest name that Slurm can hold: printable, and not longer than 200."""
    return _UNPRINTABLE.sub("_", name)[:_NAME_MOST]


def grid_engine_value(text: str, what: str) -> str:
    """Return a value as qsub reads it in a `#$` line: between quotes where it has spaces.

    A quote, `#` and a comma cannot be said in any way (tried on 8.1.9).

    Raises:
        InputError: it holds what no line can hold.
    """
    _refuse_unprintable(text, what)
    if re.search("['\"#,]", text):
        raise InputError(f"{what}: {text!r}", "no quote, # or comma: Grid Engine cannot read them")
    return text if text and _PLAIN.fullmatch(text) else f'"{text}"'


def grid_engine_name(name: str) -> str:
    """Return the nearest name that Grid Engine takes: of ASCII letters, digits and `_.+-`.

    It refuses a digit first, `none`, blanks, `/`, `:`, `@`, `*`, `?`, backslashes and
    what is not ASCII, and drops quotes and what follows a `#` (tried on 8.1.9).
    """
    plain = re.sub(r"[^\w.+-]", "_", name, flags=re.ASCII)[:_NAME_MOST]
    return f"_{plain}" if not re.match("[A-Za-z_]", plain) or plain.lower() == "none" else plain


def _refuse_unprintable(text: str, what: str) -> None:
    if _UNPRINTABLE.search(text):
        raise InputError(f"{what}: {text!r} has characters that cannot be printed", "others")
