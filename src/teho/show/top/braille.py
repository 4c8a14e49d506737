"""Draws curves with braille characters: two columns and four rows of dots in each cell."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["braille"]

_FIRST = 0x2800
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""Bits of the dots in a cell: for each column, from the bottom to the top."""


def braille(
    values: Sequence[float | None], width: int, height: int, low: float, high: float
) -> list[str]:
    """Return the lines of a filled curve, top line first (height,).

    Args:
        values: the newest last. If there are more than two for each cell, the oldest are left out.
        width: cells.
        height: cells.
        low: value at the bottom.
        high: value at the top.
    """
    cells = [[0] * width for _ in range(height)]
    shown = list(values)[-2 * width :]
    first = 2 * width - len(shown)
    steps = 4 * height
    for place, value in enumerate(shown, first):
        if value is None:
            continue
        share = (value - low) / (high - low) if high > low else 0.0
        # A known value is at least one dot: an empty column is a missing value.
        filled = max(1, min(steps, round(share * steps)))
        for step in range(filled):
            row = height - 1 - step // 4
            cells[row][place // 2] |= _DOTS[place % 2][step % 4]
    return ["".join(chr(_FIRST + bits) for bits in row) for row in cells]
