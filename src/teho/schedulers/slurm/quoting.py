"""Write a text as one word of an `#SBATCH` line, or as a job's name."""

from __future__ import annotations

import re

from teho.schedulers.script.quoting import NAME_MOST, PLAIN, UNPRINTABLE, refuse_unprintable

__all__ = ["slurm_name", "slurm_value"]


def slurm_value(text: str, what: str) -> str:
    """Return a value, quoted for an `#SBATCH` line.

    sbatch reads both kinds of quotes. A backslash escapes any character, also inside quotes, and
    `#` begins a comment (src/sbatch/opt.c, and tried on 22.05).

    Raises:
        InputError: a line cannot contain the value.
    """
    refuse_unprintable(text, what)
    if text and PLAIN.fullmatch(text):
        return text
    return '"' + re.sub(r'[\\"#]', r"\\\g<0>", text) + '"'


def slurm_name(name: str) -> str:
    """Return the most similar name for Slurm: at most 200 printable characters."""
    return UNPRINTABLE.sub("_", name)[:NAME_MOST]
