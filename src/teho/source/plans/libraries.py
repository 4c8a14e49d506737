"""The libraries with lazy tables that Teho knows, from `lazy_tables.toml`."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import msgspec

from teho.config.toml import read_toml

__all__ = ["MEMORY", "Library", "libraries", "library_of_call"]

_FILE = Path(__file__).parents[1] / "lazy_tables.toml"
_FIRST_ROWS = frozenset(("n_rows", "nrows"))
"""Arguments with which a plan reads only the first rows of its file."""
MEMORY = "lazy"
"""Method that makes a plan of a table in memory: nothing is read again."""


class Library(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A library of `lazy_tables.toml`; the file describes the keys."""

    name: str
    whole: str
    computes: frozenset[str]
    parts: frozenset[str]
    others: frozenset[str]
    needs_all: str
    keep: str
    advice: str
    keeps: frozenset[str] = frozenset()
    makes: str = ""
    methods: str = ""
    use: str = ""

    def reads_whole(self, function: str) -> bool:
        """Return whether the plan of a function reads and parses a whole file."""
        return re.fullmatch(self.whole, function) is not None

    def needs_all_rows(self, step: str) -> bool:
        """Return whether a step needs all rows, whatever the next steps select."""
        return re.search(self.needs_all, step) is not None


@functools.cache
def libraries() -> dict[str, Library]:
    """Return all libraries by name."""
    found = msgspec.convert(read_toml(_FILE)["library"], list[Library])
    return {one.name: one for one in found}


def library_of_call(
    call: ast.Call, called: object, packages: frozenset[str]
) -> tuple[Library, str] | None:
    """Return the library whose plan a call makes, and the name of the function or method.

    None: the call makes no plan.

    Args:
        call: the call.
        called: what it calls, from `Program.called`.
        packages: the packages that the file of the call imports.
    """
    if any(word.arg in _FIRST_ROWS for word in call.keywords):
        return None
    method = call.func
    if isinstance(method, ast.Attribute) and method.attr == MEMORY and not call.args:
        return libraries()["polars"], MEMORY
    chain = _chain(call)
    for one in libraries().values():
        if isinstance(called, str) and one.makes and re.fullmatch(one.makes, called):
            return one, called
        is_method = isinstance(method, ast.Attribute) and one.methods and one.name in packages
        if is_method and re.search(rf"\.{one.methods}$", chain):
            return one, chain
    return None


def _chain(call: ast.Call) -> str:
    """Return the names of a chain of methods: `.read.option.csv`."""
    names: list[str] = []
    node: ast.expr = call
    while isinstance(node, (ast.Call, ast.Attribute)):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
        node = node.func if isinstance(node, ast.Call) else node.value
    return "".join(f".{name}" for name in reversed(names))
