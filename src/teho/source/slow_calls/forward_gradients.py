"""Finds gradients of a single number that are computed in forward mode.

`jacfwd` pushes one tangent for each input through a function. If the function returns one number,
`grad` gets all derivatives with one backward pass.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import length
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function
from teho.source.program import Place, Program
from teho.source.stack import Level

__all__ = ["find_forward_gradient"]

_FORWARD = {
    "jax.jacfwd": "jax.grad",
    "torch.func.jacfwd": "torch.func.grad",
    "functorch.jacfwd": "torch.func.grad",
}
_AROUND = lazy_pattern(r"jax\.(jit|block_until_ready)|torch\.compile|equinox\.filter_jit")
_REDUCES = lazy_pattern(
    r"(jax\.numpy|torch)\.(mean|sum|prod|nanmean|nansum|vdot|trace|var|std|linalg\.norm|max|min|"
    r"amax|amin|median|logdet|linalg\.det)|torch\.nn\.functional\.(mse_loss|l1_loss|smooth_l1_loss|"
    r"huber_loss|cross_entropy|binary_cross_entropy\w*|nll_loss|kl_div)"
)
_OF_EACH = lazy_pattern(
    r"(jax\.numpy|torch)\.(sqrt|exp|log|log1p|log10|square|abs|negative|tanh|sin|cos)|float"
)
_METHODS = frozenset(("mean", "sum", "prod", "var", "std", "max", "min", "norm", "trace"))
_FEWEST_INPUTS = 16
_DEEPEST = 5


def find_forward_gradient(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the `jacfwd` of a function that returns one number, whose result a stack computes.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files of the program.
    """
    for level in levels:
        # `speed - slope(x)` waits for the result of the call in it.
        for call in ast.walk(level.node) if level.node is not None else ():
            made = _made(call.func, level.place, program) if isinstance(call, ast.Call) else None
            if made is None or not isinstance(call, ast.Call):
                continue
            forward, at = made
            function = forward.args[0] if len(forward.args) == 1 else None
            named = program.named(function.id, at) if isinstance(function, ast.Name) else None
            if any(word.arg != "argnums" for word in forward.keywords):
                return None
            if not isinstance(named, Place) or not _returns_number(named, program):
                return None
            if not _is_large(call, level):
                return None
            return _found(forward, at, level, program)
    return None


def _made(
    node: ast.expr, at: Place, program: Program, depth: int = 0
) -> tuple[ast.Call, Place] | None:
    """Return the call of `jacfwd` that made a function."""
    match node:
        case ast.Name(id=name) if depth < _DEEPEST:
            found = assigned_value(name, at.function)
            if found is not None:
                return _made(found[0], Place(at.path, found[1]), program, depth + 1)
        case ast.Call(args=args):
            called = program.called(node, at)
            if called in _FORWARD:
                return node, at
            if isinstance(called, str) and _AROUND.fullmatch(called) and args:
                return _made(args[0], at, program, depth + 1)
    return None


def _returns_number(at: Place, program: Program, depth: int = 0) -> bool:
    """Return whether a function of the program certainly returns one number."""
    if isinstance(at.function.node, ast.Lambda):
        return _is_number(at.function.node.body, at, program, depth)
    returned = [one.value for one in at.function.nodes if isinstance(one, ast.Return)]
    return bool(returned) and all(
        one is not None and _is_number(one, at, program, depth) for one in returned
    )


def _is_number(node: ast.expr, at: Place, program: Program, depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=inner):
            return _is_number(inner, at, program, depth)
        case ast.BinOp(left=left, right=right):
            return all(_is_number(one, at, program, depth) for one in (left, right))
        case ast.Name(id=name):
            found = assigned_value(name, at.function)
            if found is None:
                return False
            return _is_number(found[0], Place(at.path, found[1]), program, depth + 1)
        case ast.Call(func=func, args=args, keywords=keywords):
            called = program.called(node, at)
            if isinstance(called, Place):
                return _returns_number(called, program, depth + 1)
            if isinstance(called, str):
                if _OF_EACH.fullmatch(called):
                    return len(args) == 1 and _is_number(args[0], at, program, depth + 1)
                most = 2 if called.endswith(("vdot", "loss", "entropy", "logits", "div")) else 1
                is_whole = not keywords and len(args) <= most
                return is_whole and _REDUCES.fullmatch(called) is not None
            return (
                isinstance(func, ast.Attribute) and func.attr in _METHODS and not (args or keywords)
            )
    return False


def _is_large(call: ast.Call, level: Level) -> bool:
    """Return whether the function has more than a few inputs, as far as the source says."""
    if not call.args or not isinstance(call.args[0], ast.Name):
        return False
    values = list(_values(call.args[0].id, level.function))
    sizes = [size for value in values if (size := _size(value, level)) is not None]
    return bool(sizes) and min(sizes) >= _FEWEST_INPUTS


def _values(name: str, function: Function) -> Iterator[ast.expr]:
    outer: Function | None = function
    while outer is not None and not outer.knows(name):
        outer = outer.parent
    for one in outer.assigned.get(name, ()) if outer is not None else ():
        if one.value is not None:
            yield one.value


def _size(value: ast.expr, level: Level) -> int | None:
    """Return the least number of elements of a new array; None: it is no new array."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    name = value.func.attr
    if name in ("array", "asarray", "tensor"):
        return length(value.args[0], level.function) if value.args else None
    if name not in (
        "zeros",
        "ones",
        "full",
        "empty",
        "linspace",
        "arange",
        "rand",
        "randn",
        "normal",
        "uniform",
    ):
        return None
    given = [*value.args, *(word.value for word in value.keywords)]
    counts = [_count(one, level) for one in given]
    known = [one for one in counts if one is not None]
    return max(known, default=None)


def _count(node: ast.expr, level: Level) -> int | None:
    if isinstance(node, (ast.Tuple, ast.List)):
        return max((n for one in node.elts if (n := _count(one, level)) is not None), default=None)
    count = ast.Call(ast.Name("range", ast.Load()), [node], [])
    return length(count, level.function)


def _found(forward: ast.Call, at: Place, level: Level, program: Program) -> CostlyOption | None:
    file, reverse = program.file(at.path), _FORWARD[str(program.called(forward, at))]
    if file is None:
        return None
    old = file.text_of(forward)
    name = ast.unparse(forward.func)
    own = name.replace("jacfwd", "grad")
    is_plain = "." not in name
    new = (reverse if is_plain else own) + "(" + old.partition("(")[2]
    return CostlyOption(
        name="gradient_in_forward_mode",
        at=Frame(at.path, at.function.name or "<module>", forward.lineno, old),
        lines=(level.frame,),
        words={"new": new, "library": reverse.partition(".")[0]},
    )
