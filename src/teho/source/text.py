"""Text of expressions, as recordings have it."""

from __future__ import annotations

from collections.abc import Sequence

from teho.patterns import lazy_pattern

__all__ = ["LONGEST_TEXT", "one_line"]

LONGEST_TEXT = 400
"""Maximum number of characters of an expression or a line in a recording."""
_AT_BRACKETS = lazy_pattern(r"(?<=[(\[{]) |,? (?=[)\]}])")


def one_line(lines: Sequence[bytes]) -> str:
    """Return an expression of several lines as one line: `f( a, b, )` becomes `f(a, b)`."""
    text = b" ".join(line.strip() for line in lines).decode("utf-8", "replace").strip()
    return _AT_BRACKETS.sub("", text) if len(lines) > 1 else text
