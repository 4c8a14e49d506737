"""Batches and samples as a list of arrays, and the way back to tuples and dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Rebuild", "equal", "flat", "mapped"]

Rebuild = Callable[[list[Any]], Any]
"""Makes the structure again from the list of its leaves."""


def flat(value: Any) -> tuple[list[Any], Rebuild]:
    """Return the leaves of nested lists, tuples and mappings, and a function for the way back."""
    if isinstance(value, Mapping):
        keys, parts = list(value), [flat(one) for one in value.values()]
        return _joined(parts, lambda made: dict(zip(keys, made, strict=True)))
    if isinstance(value, (list, tuple)):
        parts = [flat(one) for one in value]
        kind: Any = type(value)
        if hasattr(kind, "_fields"):  # a named tuple
            return _joined(parts, lambda made: kind(*made))
        return _joined(parts, list if kind is list else kind)
    return [value], lambda leaves: leaves[0]


def _joined(parts: list[tuple[list[Any], Rebuild]], make: Rebuild) -> tuple[list[Any], Rebuild]:
    leaves = [leaf for own, _ in parts for leaf in own]
    if len(leaves) == len(parts) and all(len(own) == 1 for own, _ in parts):
        # The usual case is the fastest: no part is nested.
        singles = [rebuild for _, rebuild in parts]
        probe = [rebuild([leaf]) for rebuild, leaf in zip(singles, leaves, strict=True)]
        if all(one is leaf for one, leaf in zip(probe, leaves, strict=True)):
            return leaves, make
    sizes = [len(own) for own, _ in parts]

    def rebuild(given: list[Any]) -> Any:
        made, first = [], 0
        for size, (_, inner) in zip(sizes, parts, strict=True):
            made.append(inner(given[first : first + size]))
            first += size
        return make(made)

    return leaves, rebuild


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return the structure with the result of a function for each leaf."""
    leaves, rebuild = flat(value)
    return rebuild([function(leaf) for leaf in leaves])


def equal(one: Any, other: Any) -> bool:
    """Return whether two samples have the same structure and the same values."""
    left, right = flat(one)[0], flat(other)[0]
    return len(left) == len(right) and all(map(_alike, left, right))


def _alike(one: Any, other: Any) -> bool:
    if hasattr(one, "shape") and getattr(other, "shape", None) != one.shape:
        return False
    # Two values that are not a number (NaN) are alike.
    alike = (one == other) | ((one != one) & (other != other))  # noqa: PLR0124
    return bool(alike.all() if hasattr(alike, "all") else alike)
