"""What Slurm says of nodes, partitions and QOS, as rows: keys of its text, and their text.

The text of every release has all that is needed; the JSON of most leaves something out, such as
a partition's flags (before 26.05) or a node's reserved cores (before 23.02).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["QOS_COLUMNS", "Row", "columns", "settings", "text_rows"]

Row = dict[str, str]

_KEY = re.compile(r"([A-Z][A-Za-z_/]*)=(.*)", re.DOTALL)
QOS_COLUMNS = (
    "Name",
    "Flags",
    "MaxTRES",
    "MaxTRESPerNode",
    "MinTRES",
    "MaxTRESPU",
    "GrpTRES",
    "MaxWall",
    "MaxJobsPU",
    "MaxSubmitPU",
)
"""Columns to ask `sacctmgr show qos format=` for, in the order of `columns`."""


def text_rows(text: str) -> list[Row]:
    """Read the lines of `scontrol -o show`: one row a line.

    A word without a key belongs to the value before it, such as the system's name. Of
    a key that comes twice the first counts: free text (a comment) is at the end.
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


def columns(text: str, names: Sequence[str]) -> list[Row]:
    """Read what `sacctmgr -nP` prints: columns between bars, in the order asked for."""
    lines = (line.split("|") for line in text.splitlines() if line)
    return [dict(zip(names, cells, strict=False)) for cells in lines]
