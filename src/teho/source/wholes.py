"""Finds expressions that go through a whole collection, although a part of it would be enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from teho.model.in_source import Whole
from teho.model.stack import Frame
from teho.source.parsed import Function
from teho.source.purity import Purity
from teho.source.saved import find_saved
from teho.source.searched import find_searched
from teho.source.sorts import find_sorted
from teho.source.stack import levels_of
from teho.source.uses import Uses

__all__ = ["find_whole"]


def find_whole(
    frames: Sequence[Frame], purity: Purity, uses_of: Callable[[Function], Uses]
) -> Whole | None:
    """Return the expression of a stack that goes through a whole collection; None if there is none.

    Args:
        frames: the stack, innermost frame first.
        purity: the program.
        uses_of: returns the uses of names in a function.
    """
    levels = levels_of(frames, purity.program)
    if not levels or any(level.is_measured for level in levels):
        return None
    is_innermost = levels[-1].frame == frames[0]
    searched = find_searched(levels, purity) if is_innermost else None
    return searched or find_sorted(levels, purity, uses_of) or find_saved(levels, purity)
