"""Make the page of the source documents: each capability, with its command and its test."""

from __future__ import annotations

import textwrap
from pathlib import Path

import msgspec

from teho.config.toml import read_toml

__all__ = ["Document", "Row", "Sources", "lines_of", "page", "read_sources"]

TABLES = Path(__file__).parent / "sources.toml"


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the documents. Each of its lines is in a row, or in one of these fields."""

    name: str
    title: str
    origin: str
    lines: int
    """Number of lines of the document."""
    other_lines: str
    """Lines without a capability: titles, empty lines, links, greetings."""
    missing_lines: str = ""
    """Lines with a capability, but without a command of Teho yet."""


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One capability that a document names."""

    document: str
    lines: str
    """Such as `12, 15-20`."""
    what: str
    command: str
    test: str
    """The test that shows that the command does it, as pytest names it."""
    prints: str = ""
    """A part of what the command prints."""
    writes: str = ""
    """The file that the command writes."""
    exit_code: int = 0
    not_run: str = ""
    """Why the test of the whole page does not run the command. The test in `test` runs it."""


class Sources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `sources.toml`."""

    document: list[Document]
    row: list[Row]


def read_sources() -> Sources:
    """Return the content of `sources.toml`."""
    return msgspec.convert(read_toml(TABLES), Sources)


def lines_of(text: str) -> list[int]:
    """Return the numbers of lines in `12, 15-20`."""
    numbers: list[int] = []
    for part in filter(None, text.split(", ")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


_HEAD = """# The source documents, line by line

The work on Teho began with five documents about GPUs. Each document says what a user should be able
to do with GPUs, or asks for tools that can do this. We call each of these things a *capability*.
This page lists all of them. For each capability, the page names the lines of the document, the
command of Teho that has this capability, and a test of this command. If you know a piece of advice
from one of the documents, you can find the command for the advice on this page. The documents are
not in Teho's source code.

To try the commands, go to the top folder of Teho's source code, and run
`export TEHO_HOME=examples/learn`. The commands then use the recordings in the folder
`examples/learn`.

The test `tests/test_source_documents.py` runs the commands of this page and checks their output.
If a command has a remark such as *needs a GPU*, this test does not run the command, but checks only
the options of the command. In this case, the test in the last column runs the command, or the part
of Teho that the command uses. All tests are in the folder `tests`.
"""


def page() -> str:
    """Return the page: a section with a table for each document."""
    sources = read_sources()
    parts = [_HEAD]
    for document in sources.document:
        rows = [row for row in sources.row if row.document == document.name]
        about = textwrap.fill(
            f"{document.origin} This document has {document.lines} lines and {len(rows)} "
            "capabilities.",
            100,
        )
        parts.append(f"## {document.title}\n\n{about}\n")
        if document.missing_lines:
            parts.append(f"Lines for which Teho has no command yet: {document.missing_lines}.\n")
        table = ["| Lines | What | Command | Test |", "|---|---|---|---|", *map(_row, rows)]
        parts.append("\n".join(table) + "\n")
    return "\n".join(parts)


def _row(row: Row) -> str:
    command = f"`{row.command}`" + (f" – *{row.not_run}*" if row.not_run else "")
    cells = (row.lines, row.what, command, f"`{row.test.removeprefix('tests/')}`")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
