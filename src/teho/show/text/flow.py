"""Running text for a terminal: words, lines with a hanging indent, printing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import StringIO

from rich.console import Console
from rich.text import Text

from teho.patterns import lazy_pattern
from teho.show.cells import FIGURE, plain

__all__ = ["dotted", "flow", "printed", "words"]

_COMMAND = lazy_pattern(r"(`[^`]*`)")
# A command is one token. A number with its unit is one token too.
_TOKEN = lazy_pattern(rf"{FIGURE}|(?:`[^`]*`|\S)+")


def printed(blocks: Iterable[list[Text]], *, width: int, color: bool) -> str:
    """Return blocks of lines as text, with an empty line between two blocks."""
    console = Console(
        force_jupyter=False,  # it would show an empty output below the cell
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


def dotted(phrases: list[Text]) -> list[Text]:
    """Put a dot between phrases."""
    return [*(phrase.copy().append(" ·", "dim") for phrase in phrases[:-1]), *phrases[-1:]]


def words(sentence: str) -> list[Text]:
    """Cut a sentence into pieces; lines are broken only between them."""
    return [_word(token) for token in _TOKEN.findall(plain(sentence))]


def _word(token: str) -> Text:
    parts = ((part, "cyan" if part[:1] == "`" else "") for part in _COMMAND.split(token))
    return Text.assemble(*(pair for pair in parts if pair[0]))


def flow(
    pieces: list[Text], width: int, lead: Text, *, style: str = "", hang: int | None = None
) -> list[Text]:
    """Fill lines with pieces; lines after the first are indented to the end of the lead."""
    hang = lead.cell_len if hang is None else hang
    room = max(width - hang, 8)
    after_lead = min(width - lead.cell_len, room) if lead.cell_len > hang else room
    lines = [Text(style=style)]
    for piece in _fitting(pieces, room):
        space = room if len(lines) > 1 else after_lead
        is_full = lines[-1].cell_len + bool(lines[-1]) + piece.cell_len > space
        if is_full and (lines[-1] or space < room):
            lines.append(Text(style=style))
        if lines[-1]:
            lines[-1].append(" ")
        lines[-1].append_text(piece)
    return [
        Text.assemble(" " * hang if number else lead, line) for number, line in enumerate(lines)
    ]


def _fitting(pieces: list[Text], room: int) -> Iterator[Text]:
    """Cut pieces that are wider than a line, except commands, which are there to be copied."""
    for piece in pieces:
        if piece.cell_len <= room or piece.no_wrap:
            yield piece
            continue
        for word in piece.split(" "):
            half = room // 2  # a character is at most two cells wide
            yield from word.divide(range(half, len(word), half)) if word.cell_len > room else [word]
