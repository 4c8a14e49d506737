"""Finds batches of small integers that the CPU converts to float32 before they are copied to a GPU.

An image has one byte per value. As float32, it has four. The conversion takes time on one core
while the GPU is idle, and four times as many bytes are copied.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.devices import Devices
from teho.source.parsed import Function, root_name
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import imported_name
from teho.source.stack import Level

__all__ = ["find_converted_before_copy"]

_LOADER = lazy_pattern(r"/torch/utils/data/|/multiprocessing/|/concurrent/futures/")
_FLOAT = lazy_pattern(r"(np\.|numpy\.|torch\.|')?float(32)?'?")
_DEEPEST = 6
_BYTE = ("255", "255.0", "256", "256.0", "127.5", "128.0")
_ELEMENTWISE = frozenset(("div", "div_", "sub", "sub_", "mul", "mul_"))
"""Methods of tensors that compute with each element."""


class _Chain(NamedTuple):
    """How a batch is converted, from the statement with the copy back to the integers."""

    statements: tuple[ast.stmt, ...]
    """In the order of the file."""
    start: ast.expr
    """The array of integers: `crops` of `crops.astype(np.float32)`."""
    cast: ast.expr
    """`crops.astype(np.float32)`."""
    outer: frozenset[str]
    """Further arrays, such as the mean and the deviation."""
    is_byte: bool
    """Whether the source shows that the integers are bytes."""


def find_converted_before_copy(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the conversion on a stack that the GPU could do after the copy.

    Args:
        levels: the program's functions on the stack, the outermost first.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    if not levels or any(_LOADER.search(frame.file) for frame in frames):
        return None
    level = levels[-1]
    if not any(one.loops() or one.is_called_again for one in levels):
        return None
    for copy, statement in _copies(level.function):
        chain = _chain(copy, statement, level.function)
        if chain is None or not chain.is_byte:
            continue
        lines = {
            line
            for one in chain.statements
            for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)
        }
        if level.frame.line not in lines:
            continue
        if Devices(levels, purity.program).of(chain.start, len(levels) - 1) == "device":
            continue
        return _found(copy, chain, level)
    return None


class _Copy(NamedTuple):
    call: ast.Call
    """The call that copies: `torch.from_numpy(x).to(device)`."""
    value: ast.expr
    """The array that is copied: `x`."""
    to: str
    """The end of the call: `.to(device)`."""


def _copies(function: Function) -> Iterator[tuple[_Copy, ast.stmt]]:
    """Yield the calls of a function that copy a NumPy array to a device, as tensors of PyTorch."""
    for statement in function.nodes:
        if not isinstance(statement, (ast.Assign, ast.Return, ast.AnnAssign)):
            continue
        for node in ast.walk(statement):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="tensor" | "as_tensor"),
                    args=[array],
                    keywords=[ast.keyword(arg="device", value=device)],
                ) if ast.unparse(device) != "'cpu'":
                    yield _Copy(node, array, f".to({ast.unparse(device)})"), statement
                case ast.Call(func=ast.Attribute(attr="to" | "cuda" as how, value=made), args=args):
                    if how == "to" and not args:
                        continue
                    text = ast.unparse(args[0]) if args else ""
                    if "float" in text or "half" in text or text == "'cpu'":
                        continue
                    value = _made_of(made, function)
                    given = [*args, *(word for word in node.keywords)]
                    end = f".{how}({', '.join(map(ast.unparse, given))})"
                    if value is not None:
                        yield _Copy(node, value, end), statement


def _made_of(made: ast.expr, function: Function, depth: int = 0) -> ast.expr | None:
    """Return the array that a tensor is made of; the tensor itself if the CPU computes it."""
    match made:
        case ast.Call(func=ast.Attribute(attr="from_numpy" | "as_tensor" | "tensor"), args=[one]):
            if not made.keywords:
                return one
        case ast.Call(func=ast.Attribute(attr="contiguous" | "pin_memory", value=value)):
            return _made_of(value, function, depth)
        case ast.Name(id=name) if depth == 0:
            given = function.assigned.get(name, [])
            only = given[0].value if len(given) == 1 and given[0].loop is None else None
            found = _made_of(only, function, 1) if only is not None else None
            return made if found is None or found is only else found
        case ast.Name() | ast.BinOp():
            return made
        case ast.Call(func=ast.Attribute(attr=method)) if method in _ELEMENTWISE | {"float"}:
            return made
    return None


def _chain(copy: _Copy, statement: ast.stmt, function: Function) -> _Chain | None:
    """Return the conversion of the array that is copied; None: it is not only a conversion."""
    statements: list[ast.stmt] = [statement]
    arrays: set[str] = set()
    value: ast.expr | None = copy.value
    is_byte = False
    line = statement.lineno
    for _ in range(_DEEPEST):
        inner: ast.expr | None = value
        while inner is not None and not isinstance(inner, ast.Name):
            step = _step(inner)
            if step is not None:
                inner, right, is_division = step
                is_byte = is_byte or (is_division and ast.unparse(right) in _BYTE)
                if not _is_plain(right):
                    return None
                arrays |= _arrays_in(right)
                continue
            start = _start(inner)
            if start is None:
                return None
            is_byte = is_byte or _is_bytes(start, function)
            ordered = tuple(sorted(statements, key=lambda one: one.lineno))
            return _Chain(ordered, start, inner, frozenset(arrays), is_byte)
        if inner is None:
            return None
        before = _assignment(inner.id, line, function)
        if before is None:
            return None
        statements.append(before)
        line = before.lineno
        if isinstance(before, ast.Assign):
            value = before.value
            continue
        is_byte = is_byte or (isinstance(before.op, ast.Div) and ast.unparse(before.value) in _BYTE)
        if not _is_plain(before.value):
            return None
        arrays |= _arrays_in(before.value)
        value = before.target
    return None


def _step(node: ast.expr) -> tuple[ast.expr, ast.expr, bool] | None:
    """Return what an operation on each element gets, and whether it is a division."""
    match node:
        case ast.BinOp(left=left, right=right, op=ast.Div() | ast.Sub() | ast.Mult()):
            return left, right, isinstance(node.op, ast.Div)
        case ast.Call(func=ast.Attribute(attr=method, value=value), args=[right], keywords=[]):
            if method in _ELEMENTWISE:
                return value, right, method.startswith("div")
    return None


def _start(cast: ast.expr) -> ast.expr | None:
    """Return the integers of a conversion to float32; None: it is no conversion."""
    match cast:
        case ast.Call(func=ast.Attribute(attr="astype", value=start), args=[kind]):
            return start if _FLOAT.fullmatch(ast.unparse(kind)) else None
        case ast.Call(func=ast.Attribute(attr="float", value=made), args=[], keywords=[]):
            return made
        case ast.Call(
            func=ast.Attribute(attr="tensor" | "as_tensor"),
            args=[made],
            keywords=[ast.keyword(arg="dtype", value=kind)],
        ):
            return made if _FLOAT.fullmatch(ast.unparse(kind)) else None
        case ast.Call(func=ast.Attribute(attr="to", value=made), args=[kind], keywords=[]):
            return made if _FLOAT.fullmatch(ast.unparse(kind)) else None
    return None


def _assignment(name: str, line: int, function: Function) -> ast.Assign | ast.AugAssign | None:
    """Return the statement that gives a name its value before a line, or changes it."""
    found: list[ast.Assign | ast.AugAssign] = []
    for one in function.nodes:
        match one:
            case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
                found.append(one)
            case ast.AugAssign(
                target=ast.Name(id=target), op=ast.Div() | ast.Sub() | ast.Mult()
            ) if target == name:
                found.append(one)
    before = [one for one in found if one.lineno < line]
    return max(before, key=lambda one: one.lineno, default=None)


def _is_plain(node: ast.expr) -> bool:
    return all(
        isinstance(
            one,
            (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Slice, ast.Tuple, ast.BinOp,
             ast.expr_context, ast.operator, ast.UnaryOp, ast.unaryop),
        )
        for one in ast.walk(node)
    )  # fmt: skip


def _arrays_in(node: ast.expr) -> set[str]:
    """Return the arrays of an expression by name: `MEAN` of `MEAN[:, None]`."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - {"np", "numpy"}


def _is_bytes(node: ast.expr, function: Function) -> bool:
    """Return whether an array certainly has bytes, such as decoded images."""
    text = ast.unparse(node)
    if isinstance(node, ast.Name):
        name = root_name(node)
        values = [one.value for one in function.assigned.get(name, []) if one.value is not None]
        text = " ".join(map(ast.unparse, values))
    return re.search(r"uint8|\bimread\(|\bImage\.open\(|\bimdecode\(", text) is not None


def _found(copy: _Copy, chain: _Chain, level: Level) -> CostlyOption:
    frame, short = level.frame, level.frame.file.rpartition("/")[2]
    torch = imported_name("torch", level.function, "torch")
    start = ast.unparse(chain.start)
    how = _attribute(chain.cast) if isinstance(chain.cast, ast.Call) else ""
    made = f"{torch}.from_numpy({start})" if how == "astype" else start
    if how in ("tensor", "as_tensor"):
        made = f"{torch}.as_tensor({start})"
    fast = f"{made}{copy.to}.float()"
    code: list[str] = []
    for one in chain.statements:
        text = " ".join(ast.unparse(one).split())
        text = text.replace(ast.unparse(copy.call), ast.unparse(copy.value))
        code.append(text.replace(ast.unparse(chain.cast), fast))
    code = [one for one in code if not _is_same(one)]
    lines = sorted({one.lineno for one in chain.statements})
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
    names = sorted(chain.outer)
    constants = [name for name in names if not level.function.binds(name)]
    device = copy.to.removeprefix(".to(").removesuffix(")") if copy.to.startswith(".to(") else ""
    on_device = f"device={device}" if device and "," not in device else 'device="cuda"'
    # Other lines may need the constants in host memory, so the copies get names of their own.
    made = "; ".join(
        f"`{_there(one)} = {torch}.as_tensor({one}, {on_device})`" for one in constants
    )
    code = [_with_copies(one, constants) for one in code]
    after = " and ".join(f"`{one}`" for one in constants)
    before = f" Write once, outside of all functions, after {after}: {made}." if made else ""
    return CostlyOption(
        name="converted_before_copy",
        at=Frame(frame.file, frame.function, chain.cast.lineno, level.file.text_of(chain.cast)),
        lines=(frame,),
        words={
            "file": short,
            "where": where,
            "code": "; ".join(f"`{one}`" for one in code),
            "before": before,
        },
    )


def _there(constant: str) -> str:
    """Return the name of a constant's copy on the GPU: `MEAN_ON_GPU`, `mean_on_gpu`."""
    return f"{constant}_ON_GPU" if constant.isupper() else f"{constant}_on_gpu"


def _with_copies(code: str, constants: Sequence[str]) -> str:
    for one in constants:
        code = re.sub(rf"(?<![\w.]){re.escape(one)}(?!\w)", _there(one), code)
    return code


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_same(text: str) -> bool:
    """Return whether a statement only gives a name its own value."""
    target, equals, value = text.partition(" = ")
    return bool(equals) and target == value
