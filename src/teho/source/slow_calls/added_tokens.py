"""Finds tokens that a loop adds to a tokenizer one at a time.

After each call of `add_tokens`, a tokenizer builds the automaton again with which it looks for all
added tokens. So the time grows with the square of the number of tokens. One call with all tokens
builds it once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.parsed import Loop, dotted_name, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import rewritten_loop
from teho.source.stack import Level

__all__ = ["find_added_tokens"]

_LIBRARY = lazy_pattern(r"(tokenizers|transformers)(\.|$)")
_METHODS = frozenset(("add_tokens", "add_special_tokens"))
_LEAST_TOKENS = 50
_NAMES = ("new_tokens", "tokens_to_add", "all_new_tokens")


def find_added_tokens(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that adds one token to a tokenizer, in each iteration of a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    level = levels[-1]
    call = level.node
    loop = next((one for one in reversed(level.loops()) if one.is_statement), None)
    if not isinstance(call, ast.Call) or loop is None or not isinstance(loop.node, ast.For):
        return None
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr not in _METHODS:
        return None
    if not _is_of_library(level) or not may_iterate(loop, level.function, _LEAST_TOKENS):
        return None
    token = _token(call, loop)
    statement = _statement(call, loop.node.body)
    if token is None or statement is None:
        return None
    if not _is_used_only_here(method.value, call, loop, level, purity):
        return None
    name = next((one for one in _NAMES if not level.function.knows(one)), "")
    if not name:
        return None
    words = _with_all(call, name)
    code = {
        "before": f"{name} = []",
        "new": f"{name}.append({ast.unparse(token)})",
        "after": ast.unparse(statement).replace(ast.unparse(call), words),
    }
    return rewritten_loop("tokens_added_singly", level, call, statement, loop, code)


def _is_of_library(level: Level) -> bool:
    """Return whether the file imports a library that has tokenizers."""
    outer = level.function
    every = (*outer.imports.values(), *outer.module.imports.values())
    return any(_LIBRARY.match(one) for one in every)


def _token(call: ast.Call, loop: Loop) -> ast.expr | None:
    """Return the only token that a call adds; None: it may add several."""
    if len(call.args) != 1 or not all(word.arg == "special_tokens" for word in call.keywords):
        return None
    match call.args[0]:
        case ast.List(elts=[ast.Starred()]):
            return None
        case ast.List(elts=[token]):
            return token
        case ast.Call(func=func) as token if dotted_name(func).endswith("AddedToken"):
            return token
        case ast.JoinedStr() as token:
            return token
        case ast.Name(id=name) as token:
            target = getattr(loop.node, "target", None)
            is_item = isinstance(target, ast.Name) and target.id == name
            return token if is_item else None
    return None


def _statement(call: ast.Call, body: Sequence[ast.stmt]) -> ast.Expr | ast.AugAssign | None:
    """Return the statement with a call, in a loop or in an `if` of this loop."""
    for one in body:
        match one:
            case ast.Expr(value=value) | ast.AugAssign(op=ast.Add(), value=value):
                if value is call:
                    return one
            case ast.If(body=inner, orelse=[]):
                found = _statement(call, inner)
                if found is not None:
                    return found
    return None


def _is_used_only_here(
    receiver: ast.expr, call: ast.Call, loop: Loop, level: Level, purity: Purity
) -> bool:
    """Return whether the loop uses the tokenizer only to add tokens, and to ask for known tokens.

    If the loop also splits texts, these texts may need the tokens that were added before.
    """
    name = dotted_name(receiver)
    if not name or not isinstance(loop.node, ast.For):
        return False
    is_local = level.function.binds(root_name(receiver))
    asked = {id(inner) for test in _tests(loop.node) for inner in ast.walk(test)}
    asked |= {id(inner) for inner in ast.walk(call.func)}
    for node in purity.program.all_nodes(loop.node, loop.node.body):
        match node:
            case ast.Return() | ast.Yield() | ast.YieldFrom() | ast.Await():
                return False
            case ast.Name() | ast.Attribute() if dotted_name(node) == name:
                if id(node) not in asked:
                    return False
            case ast.Call() if not is_local and isinstance(
                purity.program.called(node, level.place), Place
            ):
                return False  # it may use the tokenizer too
    return True


def _tests(loop: ast.For) -> Iterator[ast.expr]:
    yield from (node.test for node in ast.walk(loop) if isinstance(node, ast.If))


def _with_all(call: ast.Call, name: str) -> str:
    """Return the call with a list of all tokens."""
    words = "".join(f", {ast.unparse(word)}" for word in call.keywords)
    return f"{ast.unparse(call.func)}({name}{words})"
