"""The few pieces of HTML that every part of the page is made of."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

from teho.show.cells import FIGURE, is_command, plain

__all__ = ["advice", "folded", "inline", "prose", "scrolling", "text"]

# Whoever copies a command wants its spaces as they are.
_FIGURE = re.compile(rf"`[^`]*`|{FIGURE}")


@lru_cache(4096)  # a page of many GPUs says the same tens of thousands of times
def text(content: str) -> str:
    """Write a text so that it is nothing but text, in an element or an attribute."""
    return escape(plain(content))


def prose(content: str) -> str:
    """Write running text, in which no line is broken between a number and its unit."""
    return text(_FIGURE.sub(_held_together, content))


def _held_together(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == "`" else found[0].replace(" ", "\N{NO-BREAK SPACE}")


def advice(sentence: str) -> str:
    """Write what to do; each whole command is on a line of its own, to be copied."""
    parts: list[str] = []
    running = ""
    for number, piece in enumerate(sentence.split("`")):
        is_code = number % 2 == 1
        if is_code and is_command(piece):
            parts += _paragraph(running, more=bool(parts))
            running = ""
            parts.append(
                f'<div class="copyable"><code tabindex="0">{text(piece)}</code>'
                '<button type="button" class="copy">copy</button></div>'
            )
        elif is_code:
            running += f"<code>{text(piece)}</code>"
        else:
            # The line's end takes the place of the comma or the full stop behind the command.
            said = piece.lstrip(" .,;:") if parts and not running else piece
            running += prose(said)
    return "".join([*parts, *_paragraph(running, more=bool(parts))])


def inline(sentence: str) -> str:
    """Write running text; what is in backquotes is code."""
    pieces = enumerate(sentence.split("`"))
    return "".join(f"<code>{text(one)}</code>" if at % 2 else prose(one) for at, one in pieces)


def _paragraph(inner: str, *, more: bool) -> list[str]:
    return [f'<p class="action{" more" if more else ""}">{inner}</p>'] if inner.strip() else []


def folded(title: str, inner: str) -> str:
    """Put a part that only some readers want into a box that opens."""
    return f"<details><summary>{text(title)}</summary>{inner}</details>\n" if inner else ""


def scrolling(label: str, inner: str) -> str:
    """Put the inside of a table into a box of its own, which scrolls where it is too small."""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(label)}">'
        f"<table>{inner}</table></div>"
    )
