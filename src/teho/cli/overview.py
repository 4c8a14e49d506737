"""`teho --help`: the page with all commands. It does not load click, whose import takes 20 ms."""

from __future__ import annotations

import os
import sys
from textwrap import wrap

from teho.cli import COMMANDS
from teho.cli.streams import exit_code_of, open_streams

TYPE_CHECKING = False  # True for type checkers; `typing` would slow down `teho --help`
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ABOUT", "MOST_COLUMNS", "overview", "print_overview"]

ABOUT = "Teho shows how well a job uses the GPUs and CPU cores of a shared cluster."
MOST_COLUMNS = 100
"""Width of a help page on a wider terminal."""
_MARGIN = 2
_LEAST_WIDTH = 50
_USUAL_COLUMNS = 80
_OPTIONS = (
    ("--version", "Show the version and exit."),
    ("-h, --help", "Show this message and exit."),
)


def print_overview() -> int:
    """Print the page to standard output, and return the exit code."""
    open_streams()
    return exit_code_of(_write)


def _write() -> None:
    sys.stdout.write(f"{overview(_columns() - _MARGIN)}\n")


def overview(width: int) -> str:
    """Return the page, without a line break at its end.

    Args:
        width: number of columns of the text.
    """
    width = max(min(width, MOST_COLUMNS - _MARGIN), _LEAST_WIDTH)
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, (group, line) in COMMANDS.items():
        groups.setdefault(group, []).append((name, line))
    begin = max(map(len, COMMANDS)) + 4
    parts = [
        ["Usage: teho [OPTIONS] COMMAND [ARGS]..."],
        wrap(ABOUT, width, initial_indent="  ", subsequent_indent="  "),
        ["Options:", *_rows(_OPTIONS, max(len(name) for name, _ in _OPTIONS) + 2, width)],
        *([f"{group}:", *_rows(rows, begin, width)] for group, rows in groups.items()),
        ["  Begin with:  teho run -- python train.py"],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts)


def _rows(rows: Iterable[tuple[str, str]], begin: int, width: int) -> list[str]:
    """Return the lines of names with their sentences, which begin after `begin` columns."""
    return [
        line
        for name, sentence in rows
        for line in wrap(
            sentence,
            width,
            initial_indent=f"  {name:{begin}}",
            subsequent_indent=" " * (begin + 2),
        )
    ]


def _columns() -> int:
    """Return the width of the terminal, like `shutil.get_terminal_size`, which loads slowly."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    try:
        return os.get_terminal_size(1).columns or _USUAL_COLUMNS
    except OSError:  # standard output is not a terminal
        return _USUAL_COLUMNS
