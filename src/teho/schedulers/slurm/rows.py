"""Read Slurm's text about nodes, partitions and QOS as rows of keys and values.

The text of every release has all facts. The JSON of most releases lacks some, such as a
partition's flags (before 26.05) or a node's reserved cores (before 23.02).
"""

from __future__ import annotations

import re

from teho.patterns import lazy_pattern

__all__ = ["Row", "columns", "settings", "text_rows"]

Row = dict[str, str]

_KEY = lazy_pattern(r"([A-Z][A-Za-z_/]*)=(.*)", re.DOTALL)


def text_rows(text: str) -> list[Row]:
    """Read the lines of `scontrol -o show`, one row for each line.

    A word without a key belongs to the value before it, such as the system's name. If a key comes
    twice, the first one counts, because free text (a comment) is at the end.
    """
    return [_text_row(line) for line in text.splitlines() if "=" in line]


def _text_row(line: str) -> Row:
    row: Row = {}
    key = ""
    for word in line.split():
        match = _KEY.fullmatch(word)
        if match is None:
            row[key] = f"{row.get(key, '')} {word}"
            continue
        key = match[1] if match[1] not in row else ""
        row[key] = match[2]
    row.pop("", None)
    return {key: "" if value == "(null)" else value for key, value in row.items()}


def settings(text: str) -> Row:
    """Read `scontrol show config`: lines of `Key = value`."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): "" if value.strip() == "(null)" else value.strip()
            for key, _, value in pairs}  # fmt: skip


def columns(text: str, names: str) -> list[Row]:
    """Read the output of `sacctmgr -nP`: columns between bars, in the order of `format=names`."""
    lines = (line.split("|") for line in text.splitlines() if line)
    return [dict(zip(names.split(","), cells, strict=False)) for cells in lines]
