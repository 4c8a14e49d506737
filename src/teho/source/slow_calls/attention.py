"""Finds calls of `nn.MultiheadAttention` whose attention weights the program does not use.

`out, _ = self.attention(x, x, x)` computes the weights of all pairs of tokens and their mean over
the heads. With `need_weights=False`, PyTorch uses a fused kernel that does not store the weights.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.parsed import Function, SourceFile, dotted_name

__all__ = ["find_unused_weights"]

_LAYER = "MultiheadAttention"
_OPTION = "need_weights"


@functools.lru_cache(maxsize=64)
def find_unused_weights(path: str, file: SourceFile) -> tuple[CostlyOption, ...]:
    """Return the calls in a file whose second result is not used."""
    if not any(_LAYER.encode() in line for line in file.lines):
        return ()
    found: list[CostlyOption] = []
    for function in file.module.every():
        layers = _layers(function)
        for call in _calls(function):
            is_layer = dotted_name(call.func) in layers and len(call.args) <= 4
            is_open = any(word.arg in (None, _OPTION) for word in call.keywords)
            if is_layer and not is_open:
                text = " ".join(file.text_of(call).split())
                at = Frame(path, function.name or "<module>", call.lineno, text)
                new = f"{text[:-1].rstrip().rstrip(',')}, {_OPTION}=False)"
                found.append(
                    CostlyOption(
                        name="attention_weights_unused", at=at, lines=(), words={"new": new}
                    )
                )
    return tuple(found)


def _layers(function: Function) -> set[str]:
    """Return the names of such layers in a function: `self.attention`, or a plain name."""
    owner = function.owner.body if function.owner is not None else []
    statements = [*ast.walk(ast.Module(list(owner), [])), *function.module.nodes, *function.nodes]
    return {
        dotted_name(target)
        for node in statements
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and dotted_name(node.value.func).rpartition(".")[2] == _LAYER
        for target in node.targets
    } - {""}


def _calls(function: Function) -> Iterator[ast.Call]:
    """Yield calls with two results, of which a function uses only the first one."""
    for node in function.nodes:
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=[_, ast.Name(id=name)])], value=ast.Call() as call
            ) if not _is_read(name, function):
                yield call
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)):
                yield call


def _is_read(name: str, function: Function) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for inner in function.every()
        for node in inner.nodes
    )
