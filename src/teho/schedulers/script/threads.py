"""How many threads a process should have, as an expression of bash."""

from __future__ import annotations

__all__ = ["part_of"]


def part_of(variable: str, shares: int) -> str:
    """Return a variable's value divided by so many shares.

    Rounded up, so that it is never 0: how many cores come is the site's secret.
    """
    return f"${variable}" if shares == 1 else f"$((({variable} + {shares - 1}) / {shares}))"
