"""Finds attention that a program computes step by step: `softmax(q @ k.transpose(-2, -1)) @ v`.

Each step writes the weights of all pairs of tokens to the memory of the GPU, and the next one reads
them again. `torch.nn.functional.scaled_dot_product_attention` computes the same with one kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.parsed import Function, dotted_name
from teho.source.stack import Level

__all__ = ["find_attention_by_hand"]

_PRODUCTS = frozenset(("matmul", "bmm"))
_TURNED = frozenset(("transpose", "swapaxes", "permute", "swapdims"))
_SAME_SIZE = frozenset(("dropout", "attn_dropout", "drop", "attention_dropout", "to", "type_as"))
_DEEPEST = 6


class _Product(NamedTuple):
    """A product of two tensors."""

    node: ast.expr
    left: ast.expr
    right: ast.expr


def find_attention_by_hand(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the softmax of a function on a stack, if it is a part of such an attention.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    for level in levels:
        function = level.function
        if "torch" not in {one.partition(".")[0] for one in function.module.imports.values()}:
            continue
        for node in function.nodes:
            if isinstance(node, ast.Call) and _last(node.func) == "softmax":
                words = _attention(node, function)
                if words is not None:
                    text = " ".join(level.file.text_of(node).split())
                    at = Frame(level.frame.file, level.frame.function, node.lineno, text)
                    return CostlyOption(name="attention_by_hand", at=at, lines=(), words=words)
    return None


def _attention(softmax: ast.Call, function: Function) -> dict[str, str] | None:
    owner = _owner(softmax)
    scores = owner if owner is not None else next(iter(softmax.args), None)
    first = _scores(scores, function, 0) if scores is not None else None
    second = _used_by(softmax, function) if first is not None else None
    if first is None or second is None:
        return None
    keys = first.right
    match keys:
        case ast.Call(func=ast.Attribute(value=inner)) | ast.Attribute(value=inner):
            keys = inner
    lines = sorted((first.node.lineno, second.node.end_lineno or second.node.lineno))
    return {
        "lines": f"{lines[0]} to {lines[1]}" if lines[0] < lines[1] else str(lines[0]),
        "new": "torch.nn.functional.scaled_dot_product_attention("
        f"{_plain(first.left)}, {ast.unparse(keys)}, {ast.unparse(second.right)})",
    }


def _owner(call: ast.Call) -> ast.expr | None:
    """Return `scores` of `scores.softmax(-1)`; None for `F.softmax(scores, -1)`."""
    if not isinstance(call.func, ast.Attribute):
        return None
    name = dotted_name(call.func.value)
    is_module = name in {"torch", "F", "nn.functional", "torch.nn.functional", "functional"}
    return None if is_module else call.func.value


def _last(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _plain(node: ast.expr) -> str:
    """Return the queries without their scale: of `q * scale`."""
    match node:
        case ast.BinOp(left=ast.Name(id=name), op=ast.Mult() | ast.Div()):
            return name
    return ast.unparse(node)


def _product(node: ast.AST) -> _Product | None:
    match node:
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            return _Product(node, left, right)
        case ast.Call(func=func, args=[left, right]) if _last(func) in _PRODUCTS:
            return _Product(node, left, right)
        case ast.Call(func=ast.Attribute(value=left, attr=name), args=[right]) if name in _PRODUCTS:
            return _Product(node, left, right)
    return None


def _scores(node: ast.expr, function: Function, depth: int) -> _Product | None:
    """Return the product of queries and keys from which scores are computed."""
    for one in ast.walk(node):
        product = _product(one)
        if product is not None and _is_turned(product.right):
            return product
        if isinstance(one, ast.Name) and depth < _DEEPEST:
            for given in function.assigned.get(one.id, ()):
                is_inner = given.value is not None and given.value is not node
                if given.value is None or given.loop is not None or not is_inner:
                    continue
                if one.id in {n.id for n in ast.walk(given.value) if isinstance(n, ast.Name)}:
                    inner = next(map(_product, ast.walk(given.value)), None)
                else:
                    inner = _scores(given.value, function, depth + 1)
                if inner is not None and _is_turned(inner.right):
                    return inner
    return None


def _is_turned(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _TURNED
        case ast.Attribute(attr="mT" | "T"):
            return True
    return False


def _used_by(softmax: ast.expr, function: Function) -> _Product | None:
    """Return the product of the weights and the values, if the weights have no other use."""
    names = {
        name
        for name, given in function.assigned.items()
        for one in given
        if one.value is not None and one.loop is None and _gives(one.value, softmax)
    }
    for _ in range(2):  # `w = dropout(w)`, perhaps with another name
        names |= {
            name
            for name, given in function.assigned.items()
            for one in given
            if one.value is not None and _passes(one.value) in names
        }
    products = [
        product
        for node in function.nodes
        if (product := _product(node)) is not None and _is_weights(product.left, softmax, names)
    ]
    last = softmax.end_lineno or softmax.lineno
    reads = [one for one in _reads(names, function) if one.lineno > last]
    allowed = {id(one) for product in products for one in ast.walk(product.left)}
    allowed |= {
        id(one)
        for given in function.assigned.values()
        for each in given
        if each.value is not None and _passes(each.value) in names
        for one in ast.walk(each.value)
    }
    is_only = all(id(one) in allowed for one in reads)
    return products[0] if len(products) == 1 and is_only else None


def _gives(value: ast.expr, softmax: ast.expr) -> bool:
    """Return whether a value is a softmax, perhaps after dropout."""
    while isinstance(value, ast.Call) and value is not softmax:
        if _last(value.func) not in _SAME_SIZE:
            return False
        is_method = isinstance(value.func, ast.Attribute) and _last(value.func) in {"to", "type_as"}
        if is_method and isinstance(value.func, ast.Attribute):
            value = value.func.value
        elif value.args:
            value = value.args[0]
        else:
            return False
    return value is softmax


def _passes(value: ast.expr) -> str:
    """Return the name that a call such as dropout passes on; empty if it is another call."""
    match value:
        case ast.Call(func=func, args=[ast.Name(id=name), *_]) if _last(func) in _SAME_SIZE:
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="to" | "type_as")):
            return name
    return ""


def _is_weights(node: ast.expr, softmax: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names
    return _gives(node, softmax) or _passes(node) in names


def _reads(names: set[str], function: Function) -> Iterator[ast.Name]:
    for node in function.nodes:
        is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        if is_read and isinstance(node, ast.Name) and node.id in names:
            yield node
