"""What the searches for slow calls of GPU libraries have in common."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from teho.source.options.uses import name_of
from teho.source.parsed import Function, SourceFile
from teho.source.program import Place
from teho.source.purity import Purity

__all__ = ["GpuCall", "InFile", "called_name", "short"]

_LONGEST = 60


class GpuCall(NamedTuple):
    """A call, or another expression, whose kernels are slow on a GPU."""

    name: str
    """Its name in `gpu_calls.toml`."""
    node: ast.expr
    words: dict[str, str]
    """Parts of the source that the advice names."""
    last: int = 0
    """Last line of the loop whose time counts; 0: only the lines of the expression."""


class InFile(NamedTuple):
    """A file of a program that is searched."""

    path: str
    file: SourceFile
    purity: Purity
    is_training: Callable[[], bool]
    """Returns whether the program makes backward passes."""

    def places(self) -> Iterator[Place]:
        """Yield the functions of the file, and the file itself."""
        for function in self.file.module.every():
            yield Place(self.path, function)

    def calls(self) -> Iterator[tuple[ast.Call, Place, str]]:
        """Yield the calls of the file, their functions, and the whole names of what they call."""
        for place in self.places():
            for node in place.function.nodes:
                if isinstance(node, ast.Call):
                    yield node, place, called_name(node, place, self.purity)


def called_name(call: ast.Call, place: Place, purity: Purity) -> str:
    """Return the whole name of a function of a library, `torch.linalg.qr`; else an empty text."""
    name = name_of(call.func, place, purity.program)
    return "" if name.startswith(".") else name


def short(node: ast.AST) -> str:
    """Return the code of an expression, cut if it is long."""
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def functions_that_call(function: Function) -> Iterator[tuple[ast.Call, Function]]:
    """Yield the calls of a function by its name in its file, each with the function around it."""
    for outer in function.module.every():
        for node in outer.nodes:
            match node:
                case ast.Call(func=ast.Name(id=name)) if name == function.name:
                    yield node, outer
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if (
                    name == function.name
                ):
                    yield node, outer
