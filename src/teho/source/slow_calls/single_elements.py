"""Finds loops that reduce a tensor element by element: `scores[t, b].argmax().item()`.

Each such expression starts several small operations for one number. One operation reduces the
whole tensor, and `tolist()` gives all numbers at once.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.parsed import Function, Loop, root_name
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_single_elements"]

_REDUCES = {"argmax": "argmax(-1)", "argmin": "argmin(-1)", "sum": "sum(-1)", "mean": "mean(-1)",
            "max": "amax(-1)", "min": "amin(-1)"}  # fmt: skip
"""Methods without arguments, and the method that does the same along the last axis."""
_NAMES = ("values", "numbers", "all_values")


def find_single_elements(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the reduction on a stack that loops do for each element of a tensor.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    level = levels[-1]
    node = level.node
    if node is None or "torch" not in level.function.module.imports.values():
        return None
    for call in _items(level):
        if node not in ast.walk(call):
            continue
        found = _reduced(call)
        if found is None:
            continue
        part, method = found
        loops = [one for one in level.loops() if one.is_statement]
        places = _loops_of(part, loops)
        if not places or not _stays(part, places[0], level.function, purity):
            continue
        return _found(call, part, method, places[0], level)
    return None


def _items(level: Level) -> list[ast.Call]:
    """Return the calls `….item()` of the active line."""
    return [
        one
        for one in level.function.nodes
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr == "item"
        and not one.args
        and one.lineno <= level.frame.line <= (one.end_lineno or 0)
    ]


def _reduced(call: ast.Call) -> tuple[ast.Subscript, str] | None:
    """Return `x[i, j]` and `argmax` of `x[i, j].argmax().item()`."""
    match call.func:
        case ast.Attribute(
            value=ast.Call(
                func=ast.Attribute(value=ast.Subscript(value=ast.Name()) as part, attr=method),
                args=[],
                keywords=[],
            )
        ) if method in _REDUCES:
            return part, method
    return None


def _loops_of(part: ast.Subscript, loops: Sequence[Loop]) -> list[Loop]:
    """Return the loops whose numbers are the indices of a part, the outermost first.

    Empty if an index is something else than the number of a loop over `range(…)`.
    """
    indices = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    found: list[Loop] = []
    for index in indices:
        if not isinstance(index, ast.Name):
            return []
        of_index = [one for one in loops if _number_of(one) == index.id]
        if not of_index:
            return []
        found.append(of_index[-1])
    return sorted(found, key=lambda one: one.line)


def _number_of(loop: Loop) -> str:
    """Return the name of the number of a loop over `range(…)`; empty for another loop."""
    match loop.node:
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"))):
            return name
    return ""


def _stays(part: ast.Subscript, loop: Loop, function: Function, purity: Purity) -> bool:
    """Return whether a tensor stays the same in a loop."""
    name = root_name(part)
    given = function.assigned.get(name, [])
    if any(loop.line <= one.line <= loop.last for one in given) or not function.binds(name):
        return False
    for node in purity.program.all_nodes(loop.node, getattr(loop.node, "body", [])):
        match node:
            case ast.Subscript(ctx=ast.Store() | ast.Del()) if root_name(node) == name:
                return False
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                if root_name(value) == name and method.endswith("_"):
                    return False
            case ast.Call(args=arguments):
                if any(isinstance(one, ast.Name) and one.id == name for one in arguments):
                    return False  # the function may change it
    return True


def _found(
    call: ast.Call, part: ast.Subscript, method: str, loop: Loop, level: Level
) -> CostlyOption:
    frame = level.frame
    indices = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    name = next((one for one in _NAMES if not level.function.knows(one)), _NAMES[-1])
    tensor = ast.unparse(part.value)
    text = level.file.text_of(call)
    return CostlyOption(
        name="elements_reduced_singly",
        at=Frame(frame.file, frame.function, call.lineno, text),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "loop": str(loop.line),
            "before": f"{name} = {tensor}.flatten({len(indices)}).{_REDUCES[method]}.tolist()",
            "new": name + "".join(f"[{ast.unparse(one)}]" for one in indices),
        },
    )
