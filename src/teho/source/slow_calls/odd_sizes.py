"""Finds where a program chooses sizes of layers that are not multiples of 8: `VOCAB = 50257`.

Whether such a size makes a program slow, the sizes of its layers and the GPU show.
"""

from __future__ import annotations

import ast
import functools

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, SourceFile, dotted_name

__all__ = ["find_odd_sizes"]

_SMALLEST, _MULTIPLE, _NEW_MULTIPLE = 256, 8, 64
_LAYERS = frozenset(("Linear",))
_WORDS = frozenset(
    ("vocab_size", "in_features", "out_features", "hidden_size", "intermediate_size", "d_model",
     "num_embeddings")
)  # fmt: skip


@functools.lru_cache(maxsize=64)
def find_odd_sizes(path: str, file: SourceFile) -> tuple[CostlyOption, ...]:
    """Return the places in a file that choose such a size."""
    found: dict[int, CostlyOption] = {}
    for function in file.module.every():
        for node in function.nodes:
            if not isinstance(node, ast.Call):
                continue
            is_layer = dotted_name(node.func).rpartition(".")[2] in _LAYERS
            sizes = [*(node.args[:2] if is_layer else [])]
            sizes += [word.value for word in node.keywords if word.arg in _WORDS]
            for size in sizes:
                option = _option(size, function, path, file)
                if option is not None:
                    found.setdefault(option.at.line, option)
    return tuple(found.values())


def _option(size: ast.expr, function: Function, path: str, file: SourceFile) -> CostlyOption | None:
    name, value, place = "", size, function
    if isinstance(size, ast.Name):
        given = assigned_value(size.id, function)
        if given is None:
            return None
        name, (value, place) = size.id, given
    if not isinstance(value, ast.Constant) or type(value.value) is not int:
        return None
    number = value.value
    if number < _SMALLEST or number % _MULTIPLE == 0:
        return None
    new = -(-number // _NEW_MULTIPLE) * _NEW_MULTIPLE
    begin = f"{name} = " if name else ""
    text = f"{begin}{file.text_of(value)}"
    at = Frame(path, place.name or "<module>", value.lineno, text)
    words = {"size": str(number), "new": f"{begin}{new}", "old": text}
    return CostlyOption(name="odd_size", at=at, lines=(), words=words)
