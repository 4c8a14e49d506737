"""What a finding calls a piece of the program's source: an option, a call, a loop."""

from __future__ import annotations

import ast

from teho.patterns import lazy_pattern

__all__ = ["noun_of"]

_LOOP = lazy_pattern(r"(async )?for\b")
"""Begin of a loop."""
_OPTION = lazy_pattern(r"\w+=")
"""Begin of an argument with its name."""
_PART = lazy_pattern(r"[\w.\[\]'\"]+\[.*\]")
"""A part of an array."""
_COMPARISON = lazy_pattern(r" (?:[=!]=|[<>]=?) ")
_LINE = lazy_pattern(r"return\b")
"""Begin of a statement that a finding names as a whole line."""
_CLAUSE = lazy_pattern(r"(LIMIT|OFFSET) ")
"""Begin of a clause of SQL."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def noun_of(text: str) -> str:
    """Return what a text is: `x=True` an option, `x = 3` a setting, and `f(x)` a call.

    `for x in y` and `[f(x) for x in y]` are loops, `LIMIT ? OFFSET ?` is a clause of a query,
    `x == y` a comparison, and `x[:, 3]` an expression.
    """
    node = _parsed(text)
    if _LOOP.match(text) or isinstance(node, _COMPREHENSIONS):
        return "loop"
    # A long call is cut.
    if isinstance(node, ast.Call) or (node is None and text.count("(") > text.count(")")):
        return "call"
    if _PART.fullmatch(text):
        return "expression"
    if _COMPARISON.search(text):
        return "comparison"
    if _OPTION.match(text):
        return "option"
    if _CLAUSE.match(text):
        return "clause"
    if _LINE.match(text):
        return "line"
    return "setting" if " = " in text else "call"


def _parsed(text: str) -> ast.expr | None:
    """Return a text as an expression; None if it is not one."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
