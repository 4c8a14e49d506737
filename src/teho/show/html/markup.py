"""The few pieces of HTML that every part of the page is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape

from teho.patterns import lazy_pattern
from teho.show.advice_code import advice_parts
from teho.show.cells import FIGURE, is_command, plain

__all__ = [
    "advice",
    "breakable",
    "copyable",
    "drawn_text",
    "folded",
    "grid",
    "headline",
    "prose",
    "row",
    "scrolling",
    "text",
]

_FIGURE = lazy_pattern(FIGURE)
_WITH_HYPHEN = lazy_pattern(r"(?<![\w.-])(?=[\w.-]{3,24}(?![\w.-]))[\w.]+(?:-[\w.]+)+")
"""A word that has a hyphen, and that is short enough for one line of a phone."""
_WHOLE = r'<span class="whole">\g<0></span>'
_PIECE = lazy_pattern(r"[^/=_,:]*[/=_,:]+|[^/=_,:]+")
"""A part of a word that ends where a line may break."""
_LONGEST_PIECE = 20
"""Letters of a piece that is never broken; the column of a list has room for them."""


@lru_cache(4096)  # a page of many GPUs repeats the same tens of thousands of times
def text(content: str) -> str:
    """Escape a text for an element or an attribute."""
    return escape(plain(content))


def prose(content: str) -> str:
    """Write running text: code in backquotes, no line break between a number and its unit."""
    pieces = enumerate(content.split("`"))
    return "".join(_code(piece) if at % 2 else _words(piece) for at, piece in pieces)


def headline(content: str) -> str:
    """Write running text in large letters: a name such as `small-g` stays in one line."""
    pieces = enumerate(content.split("`"))
    return "".join(
        _code(piece) if at % 2 else _WITH_HYPHEN.sub(_WHOLE, _words(piece)) for at, piece in pieces
    )


def breakable(command: str) -> str:
    """Write a command for a narrow column.

    A line breaks at a space or behind a sign such as `/`. It breaks inside a word only if the word
    is very long.
    """
    words = plain(command).split(" ")
    return " ".join("<wbr>".join(map(_piece, _PIECE.findall(word))) for word in words)


def _piece(piece: str) -> str:
    escaped = escape(piece)
    is_whole = "-" in piece and len(piece) <= _LONGEST_PIECE
    return f'<span class="whole">{escaped}</span>' if is_whole else escaped


def _words(content: str) -> str:
    return text(_FIGURE.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), content))


def _code(content: str) -> str:
    """Write code; a line is not broken at the hyphen of an option."""
    words = (f"<span>{text(word)}</span>" if "-" in word else text(word) for word in
             content.split(" "))  # fmt: skip
    return f"<code>{' '.join(words)}</code>"


def advice(sentence: str) -> str:
    """Write what to do; each whole command is on its own line, with a button that copies it."""
    parts: list[str] = []
    for part in advice_parts(sentence):
        parts += [_copied(part)] if isinstance(part, tuple) else _advised(part, more=bool(parts))
    return "".join(parts)


def _advised(sentence: str, *, more: bool) -> list[str]:
    parts: list[str] = []
    running = ""
    for number, piece in enumerate(sentence.split("`")):
        if number % 2 and is_command(piece):
            parts += [*_paragraph(running, more=more or bool(parts)), copyable(piece)]
            running = ""
        elif number % 2:
            running += f"`{piece}`"
        else:
            # The line's end takes the place of the comma or the full stop behind the command.
            running += piece.lstrip(" .,;:") if parts and not running else piece
    return [*parts, *_paragraph(running, more=more or bool(parts))]


def copyable(command: str) -> str:
    """Write a command with a button that copies it."""
    return _copied((command,))


def _copied(lines: Sequence[str]) -> str:
    code = "\n".join(map(text, lines))
    return (
        f'<div class="copyable"><code tabindex="0">{code}</code>'
        '<button type="button" class="copy">copy</button></div>'
    )


def _paragraph(words: str, *, more: bool) -> list[str]:
    if not words.strip():
        return []
    return [f'<p class="action{" more" if more else ""}">{prose(words)}</p>']


def folded(title: str, inner: str) -> str:
    """Put a part that only some readers want into a box that opens."""
    return f"<details><summary>{text(title)}</summary>{inner}</details>\n" if inner else ""


def scrolling(label: str, inner: str) -> str:
    """Put the inside of a table into a box that scrolls if the page is too narrow."""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(label)}">'
        f"<table>{inner}</table></div>"
    )


def drawn_text(words: str, x: str, y: float, anchor: str) -> str:
    """Write a text of an SVG whose middle is at the height `y`."""
    return f'<text x="{x}" y="{y:.4g}" dy=".34em" text-anchor="{anchor}">{text(words)}</text>'


def grid(label: str, heads: Sequence[str], rows: Iterable[str], corner: str = "") -> str:
    """Write a table of figures.

    Args:
        label: what the table shows, for screen readers.
        heads: the headings of the columns of figures.
        rows: as `row` writes them.
        corner: the heading of the first column.
    """
    first = f'<th scope="col">{text(corner)}</th>' if corner else "<td></td>"
    cells = "".join(f'<th scope="col" class="n">{text(head)}</th>' for head in heads)
    head = f"<thead><tr>{first}{cells}</tr></thead>"
    return scrolling(label, f"{head}<tbody>{''.join(rows)}</tbody>")


def row(head: str, figures: Iterable[str | None]) -> str:
    """Write a row of `grid`; a figure that is None was not recorded."""
    cells = "".join(
        '<td class="n missing">not recorded</td>'
        if figure is None
        else f'<td class="n">{text(figure)}</td>'
        for figure in figures
    )
    return f'<tr><th scope="row">{text(head)}</th>{cells}</tr>'
