"""The few pieces of HTML that every part of the page is made with."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

from teho.show.cells import FIGURE, plain

__all__ = ["prose", "scrolling", "text"]

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


def scrolling(label: str, inner: str) -> str:
    """Put the inside of a table into a box of its own, which scrolls where it is too small."""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(label)}">'
        f"<table>{inner}</table></div>"
    )
