"""Any text as one word of an `#SBATCH` line, and as a job's name."""

from __future__ import annotations

import re

from teho.schedulers.script.quoting import NAME_MOST, PLAIN, UNPRINTABLE, refuse_unprintable

__all__ = ["slurm_name", "slurm_value"]


def slurm_value(text: str, what: str) -> str:
    """Return a value as sbatch reads it in an `#SBATCH` line.

    sbatch knows both quotes; a backslash takes any character for itself, inside quotes
    too, and `#` begins a comment (src/sbatch/opt.c, and tried on 22.05).

    Raises:
        InputError: it holds what no line can hold.
    """
    refuse_unprintable(text, what)
    if text and PLAIN.fullmatch(text):
        return text
    return '"' + re.sub(r'[\\"#]', r"\\\g<0>", text) + '"'


def slurm_name(name: str) -> str:
    """Return the nearest name that Slurm can hold: printable, and not longer than 200."""
    return UNPRINTABLE.sub("_", name)[:NAME_MOST]
