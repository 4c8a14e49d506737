"""Batches and samples as a list of arrays, and the way back to tuples and dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

__all__ = ["Rebuild", "equal", "flat", "mapped"]

Rebuild = Callable[[Sequence[Any]], Any]
"""Makes the structure again from its leaves."""


def flat(value: Any) -> tuple[list[Any], Rebuild]:
    """Return the leaves of nested lists, tuples and mappings, and a function for the way back."""
    make: Rebuild
    if isinstance(value, Mapping):
        keys, parts = list(value), list(value.values())

        def make(given: Sequence[Any]) -> Any:
            return dict(zip(keys, given, strict=True))

    elif isinstance(value, (list, tuple)):
        parts = list(value)
        make = getattr(type(value), "_make", type(value))  # `_make`: of a named tuple
    else:
        return [value], _only
    inner = [flat(part) for part in parts]
    leaves = [leaf for own, _ in inner for leaf in own]
    if all(whole is _only for _, whole in inner):  # the usual case is the fastest
        return leaves, make
    pieces = [(len(own), whole) for own, whole in inner]

    def rebuild(given: Sequence[Any]) -> Any:
        rest = iter(given)
        return make([whole(list(islice(rest, size))) for size, whole in pieces])

    return leaves, rebuild


def _only(given: Sequence[Any]) -> Any:
    return given[0]


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
