"""Running text for a terminal, shared by the faces that are not a report."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.console import Console
from rich.text import Text

from teho.show.text import _dotted as dotted
from teho.show.text import _flow as flow
from teho.show.text import _words as words

__all__ = ["dotted", "flow", "printed", "sentence", "words"]


def sentence(text: str, source: str) -> list[Text]:
    """Cut a sentence, and its source behind it, into pieces for `flow`."""
    pieces = words(text)
    if source and pieces:
        pieces[-1].append(" ·", "dim")
        behind = words(source)
        for piece in behind:
            piece.stylize("dim")
        pieces += behind
    return pieces


def printed(blocks: Iterable[list[Text]], *, width: int, color: bool) -> str:
    """Write blocks of lines, an empty line between two; ends in a line break."""
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        console.print(Text("\n\n").join(Text("\n").join(block) for block in blocks), soft_wrap=True)
    return "\n".join(line.rstrip() for line in capture.get().split("\n"))
