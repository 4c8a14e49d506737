"""Where a function uses the values that its statements give to names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from teho.source.parsed import COMPREHENSIONS, Function

__all__ = ["LOOPS", "TRIES", "Uses"]

LOOPS = (ast.For, ast.AsyncFor, ast.While)
TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_ENDS = (ast.Break, ast.Return, ast.Raise)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_READ_ALL = frozenset(("locals", "globals", "eval", "exec"))
"""Functions that may read any variable."""
_READ_NAMED = frozenset(("eval", "query", "evaluate", "sql", "execute", "read_sql"))
"""Methods and functions of libraries that may read the variables that a text names."""

_Found = dict[ast.Name, None]
"""An ordered set."""


class Uses:
    """Finds the uses of values in one function.

    Args:
        function: the function.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._parents: dict[ast.AST, ast.AST] = {}
        waiting: list[ast.AST] = [function.node]
        while waiting:
            node = waiting.pop()
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, (ast.expr_context, ast.operator)):  # not new for each node
                    self._parents[child] = node
                    waiting.append(child)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node around a node."""
        return self._parents.get(node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, from the inside to the outside, up to the function."""
        while node is not self._function.node and node in self._parents:
            node = self._parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.AST | None:
        """Return the statement that has an expression."""
        return next((one for one in self.around(node) if isinstance(one, ast.stmt)), None)

    def block(self, statement: ast.AST) -> list[ast.AST]:
        """Return the list of statements that has a statement; empty if there is none."""
        parent = self._parents.get(statement)
        blocks = (getattr(parent, name, None) for name in _BLOCKS)
        return next((one for one in blocks if isinstance(one, list) and statement in one), [])

    def loops_around(self, node: ast.AST) -> list[ast.AST]:
        """Return the loops and comprehensions that repeat a node, the innermost first."""
        found: list[ast.AST] = []
        inner = node
        for outer in self.around(node):
            is_inside = isinstance(outer, LOOPS) and (
                inner in outer.body or inner is getattr(outer, "test", None)
            )
            # A loop that ends in its first iteration is none.
            if isinstance(outer, COMPREHENSIONS) or (
                isinstance(outer, LOOPS) and is_inside and not isinstance(outer.body[-1], _ENDS)
            ):
                found.append(outer)
            inner = outer
        return found

    def of(self, statement: ast.AST, name: str) -> list[ast.Name] | None:
        """Return where the value is used that a statement gives a name.

        The list may have too many uses, but not too few. None: not all uses are known.
        """
        if {name} & (self._names_elsewhere | self._function.outer_names):
            return None
        found: _Found = {}
        inner = statement
        is_alive = True
        for outer in self.around(statement):
            if isinstance(outer, TRIES):  # an exception may lead there
                for block in (*([one] for one in outer.handlers), outer.orelse, outer.finalbody):
                    _add(block, name, found)
            is_alive = is_alive and self._add_following(inner, outer, name, found)
            inner = outer
        return list(found)

    def _add_following(self, inner: ast.AST, outer: ast.AST, name: str, found: _Found) -> bool:
        """Add the uses after a statement in its block; return whether there may be further ones."""
        block = self.block(inner)
        if not block:
            return True
        place = block.index(inner)
        if not _add(block[place + 1 :], name, found):
            return False
        if isinstance(outer, LOOPS) and block is outer.body:
            # The next iteration, up to this statement.
            test = [outer.test] if isinstance(outer, ast.While) else []
            _add([*test, *block[: place + 1]], name, found)
            _add(outer.orelse, name, found)
        return True

    @cached_property
    def _names_elsewhere(self) -> frozenset[str]:
        """Names that code may read at a time that is not known: functions in it, or texts."""
        scopes = [one for one in self._function.nodes if isinstance(one, _SCOPES)]
        found = {name for one in scopes for name in _free(one)}
        for call in self._function.nodes:
            if not isinstance(call, ast.Call):
                continue
            if isinstance(call.func, ast.Name) and (
                call.func.id in _READ_ALL or (call.func.id == "vars" and not call.args)
            ):
                found |= set(self._function.assigned)
            elif isinstance(call.func, ast.Attribute) and call.func.attr in _READ_NAMED:
                found |= self._words if call.args else set()
        return frozenset(found)

    @cached_property
    def _words(self) -> set[str]:
        texts = (
            one.value
            for one in ast.walk(self._function.module.node)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        )
        return {word for text in texts for word in re.findall(r"\w+", text)}


def _add(nodes: Sequence[ast.AST], name: str, found: _Found) -> bool:
    """Add the uses in statements; return whether the value may be used after them."""
    is_certain = True
    for node in nodes:
        blocks = [getattr(node, one, None) for one in _BLOCKS]
        inside = [one for block in blocks if isinstance(block, list) for one in block]
        _add_all([one for one in ast.iter_child_nodes(node) if one not in inside], name, found)
        for block in blocks:
            if isinstance(block, list):
                _add(block, name, found)
        _add_own(node, name, found)
        if is_certain and (isinstance(node, (ast.Return, ast.Raise)) or _replaces(node, name)):
            return False
        is_certain &= not any(isinstance(it, (ast.Break, ast.Continue)) for it in ast.walk(node))
    return True


def _add_all(nodes: Sequence[ast.AST], name: str, found: _Found) -> None:
    for node in nodes:
        for one in ast.walk(node):
            _add_own(one, name, found)


def _add_own(node: ast.AST, name: str, found: _Found) -> None:
    if isinstance(node, ast.AugAssign):
        node = node.target  # `x += 1` uses `x`
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return  # `del x` needs that there is a value
    if isinstance(node, ast.Name) and node.id == name:
        found[node] = None


def _replaces(statement: ast.AST, name: str) -> bool:
    """Return whether a statement certainly gives a name another value."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    flat = [
        one
        for target in targets
        for one in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])
    ]
    return any(isinstance(one, ast.Name) and one.id == name for one in flat)


def _free(scope: ast.AST) -> set[str]:
    """Return the names that a function or class reads, and that it does not define."""
    used: set[str] = set()
    bound: set[str] = set()
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, _SCOPES):
            used |= _free(node)
            continue
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return {*used, *node.names, *(_names_in(scope))}
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        if isinstance(node, COMPREHENSIONS):  # its own names are not bound outside of it
            used |= _names_in(node)
            continue
        waiting.extend(ast.iter_child_nodes(node))
    return used if isinstance(scope, ast.ClassDef) else used - bound


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
