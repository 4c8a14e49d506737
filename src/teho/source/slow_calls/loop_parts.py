"""Parts of loops that several searches need: their statements, and which names depend on which."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.changes import named_values
from teho.source.parsed import Function, Loop, root_name
from teho.source.stack import Level

__all__ = [
    "depends_on",
    "has_jit",
    "imported_name",
    "loads_of",
    "names_in",
    "rewritten_loop",
    "statements_of",
]

_DEEPEST = 6
_COMPILES = ("jit", "vmap", "pmap", "scan", "grad", "checkpoint", "remat")
"""Words of decorators whose functions are traced by JAX."""


def statements_of(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that each iteration executes, also those inside `with` blocks."""
    for one in body:
        if isinstance(one, (ast.With, ast.AsyncWith)):
            yield from statements_of(one.body)
        else:
            yield one


def names_in(node: ast.AST) -> set[str]:
    """Return the names that an expression reads."""
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }


def loads_of(name: str, nodes: Sequence[ast.AST]) -> list[ast.Name]:
    """Return where some code reads a name."""
    return [
        node
        for node in nodes
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]


def depends_on(node: ast.AST, wanted: set[str], nodes: Sequence[ast.AST], depth: int = 0) -> bool:
    """Return whether an expression is computed from some names.

    Args:
        node: the expression.
        wanted: the names.
        nodes: the code that may give values to the names of the expression.
        depth: number of names that led to this expression.
    """
    names = names_in(node)
    if names & wanted:
        return True
    if depth >= _DEEPEST:
        return False
    values = [
        value
        for one in nodes
        for target, value in named_values(one)
        if root_name(target) in names and value is not node
    ]
    return any(depends_on(value, wanted, nodes, depth + 1) for value in values)


def rewritten_loop(
    name: str, level: Level, call: ast.Call, statement: ast.stmt, loop: Loop, code: dict[str, str]
) -> CostlyOption:
    """Return an option whose advice changes a statement of a loop, and adds lines around the loop.

    Args:
        name: the option.
        level: the function with the loop.
        call: the slow call.
        statement: the statement with the call.
        loop: the loop.
        code: `before` and `after` the loop, and the `new` statement.
    """
    frame = level.frame
    return CostlyOption(
        name=name,
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "loop": str(loop.line),
            "line": str(statement.lineno),
            "last": str(loop.last),
            **code,
        },
    )


def imported_name(module: str, function: Function, usual: str) -> str:
    """Return the name of a module in a file: `np` of `import numpy as np`.

    Args:
        module: the module, such as `numpy`.
        function: a function of the file.
        usual: what to return if the file does not import the module by itself.
    """
    outer: Function | None = function
    while outer is not None:
        for name, whole in outer.imports.items():
            if whole == module:
                return name
        outer = outer.parent
    return usual


def has_jit(function: Function) -> bool:
    """Return whether a decorator lets JAX trace a function, instead of executing it each time."""
    decorators = getattr(function.node, "decorator_list", ())
    return any(word in ast.unparse(one) for one in decorators for word in _COMPILES)
