"""The few pieces of HTML that every part of the page is made with."""

from __future__ import annotations

from functools import lru_cache
from html import escape

from teho.show.cells import plain

__all__ = ["scrolling", "text"]


@lru_cache(4096)  # a page of many GPUs says the same tens of thousands of times
def text(content: str) -> str:
    """Write a text so that it is nothing but text, in an element or an attribute."""
    return escape(plain(content))


def scrolling(label: str, inner: str) -> str:
    """Put the inside of a table into a box of its own, which scrolls where it is too small."""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(label)}">'
        f"<table>{inner}</table></div>"
    )
