"""Writes operations on a whole batch instead of a loop over its samples, if the source is clear."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from teho.source.parsed import Loop, dotted_name, root_name
from teho.source.slow_calls.loop_parts import imported_name, names_in
from teho.source.stack import Level

__all__ = ["code_for_batch"]

_WITH_SIZE = {"uniform": 2, "normal": 2, "integers": 2, "random": 0, "standard_normal": 0}
"""Methods of NumPy's generators, and the number of arguments before the size."""
_OF_NUMPY = frozenset(
    ("sin", "cos", "tan", "exp", "log", "sqrt", "radians", "floor", "ceil", "fabs", "tanh")
)
_OF_MATRICES = frozenset(
    ("inv", "det", "cholesky", "eigh", "eigvalsh", "svd", "svdvals", "qr", "pinv", "slogdet")
)
_SAME_FOR_ALL = frozenset(
    (
        *("exp", "log", "log1p", "sqrt", "abs", "sigmoid", "tanh", "relu", "sin", "cos", "square"),
        *("float", "half", "clamp", "clip", "pow", "contiguous", "round"),
    )
)
"""Functions and methods that compute each element by itself."""


class _UnclearError(Exception):
    """A part of the loop for which the code is not known."""


def code_for_batch(
    loop: Loop,
    batch: str,
    item: str,
    iterables: Mapping[str, str],
    result: ast.Call,
    level: Level,
) -> list[str]:
    """Return lines that compute a whole batch at once; empty: the code is not known.

    Args:
        loop: the loop over the samples.
        batch: what it goes through.
        item: what its body has of it.
        iterables: the other names of the loop, and what they go through.
        result: the call that joins the results.
        level: the function with the loop.
    """
    if not isinstance(loop.node, ast.For) or not batch.isidentifier():
        return []
    joined = _statement_after(loop, result, level)
    if joined is None:
        return []
    writer = _Writer(batch, item, iterables, loop, level)
    try:
        for one in loop.node.body:
            writer.add(one)
        text = writer.joined(result)
    except _UnclearError:
        return []
    whole = " ".join(ast.unparse(joined).split())
    return [*writer.lines, whole.replace(ast.unparse(result), text)]


def _statement_after(loop: Loop, result: ast.Call, level: Level) -> ast.stmt | None:
    """Return the statement that joins the results, if it is the next one after the loop."""
    for node in ast.walk(level.function.node):
        body = getattr(node, "body", None)
        if isinstance(body, list) and loop.node in body:
            place = body.index(loop.node) + 1
            after = body[place] if place < len(body) else None
            is_there = after is not None and result in ast.walk(after)
            return after if is_there and isinstance(after, (ast.Assign, ast.Return)) else None
    return None


class _OfAll(ast.NodeTransformer):
    """Makes numbers of all samples of an expression for the numbers of one sample."""

    def __init__(self, numpy: str, size: str) -> None:
        self._numpy, self._size = numpy, size

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Let a function of `math` be one of NumPy, and a generator return a number per sample."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and root_name(node.func) == "math":
            node.func = ast.Attribute(ast.Name(self._numpy), node.func.attr)
        else:
            node.args.append(ast.parse(self._size, mode="eval").body)
        return node


class _Writer:
    """Writes one statement of a loop after the other, for the whole batch."""

    def __init__(
        self, batch: str, item: str, iterables: Mapping[str, str], loop: Loop, level: Level
    ) -> None:
        self._batch, self._loop, self._level = batch, loop, level
        self._torch = imported_name("torch", level.function, "torch")
        self._numpy = imported_name("numpy", level.function, "np")
        self._samples = {item: batch}
        """What the loop has of a sample -> the name of the whole batch."""
        self._single: set[str] = set()
        """Samples with a first axis of length 1."""
        self._columns: dict[str, str] = {}
        """Names that get one number of a pair -> the column of their numbers."""
        self._vectors = self._of_iterables(iterables)
        """Names with one number for each sample, and the array or list of all numbers."""
        self._appended: tuple[str, bool] | None = None
        self.lines: list[str] = []

    def _of_iterables(self, iterables: Mapping[str, str]) -> dict[str, str]:
        found: dict[str, str] = {}
        by_source: dict[str, list[str]] = {}
        for name, source in iterables.items():
            by_source.setdefault(source, []).append(name)
        for source, names in by_source.items():
            if source.startswith("range("):
                continue
            pairs = _pairs_of(self._loop, names)
            if len(names) == 1 and not pairs:
                found[names[0]] = source
            elif pairs:
                for number, name in enumerate(pairs):
                    found[name] = source
                    self._columns[name] = f"[:, {number}]"
        return found

    def add(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value)
            case ast.Assign(targets=[ast.Tuple() as target], value=ast.Tuple() as value):
                if not self._is_of_numbers(value):
                    raise _UnclearError
                self._add_numbers(target, value)
            case ast.If(test=ast.Name(id=flag), body=[ast.Assign() as inner], orelse=[]):
                self._add_choice(flag, inner)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append"), args=[value])):
                if self._appended is not None:
                    raise _UnclearError
                self._appended = self._array(value)
            case _:
                raise _UnclearError

    def joined(self, result: ast.Call) -> str:
        if self._appended is None or len(result.args) > 1 or result.keywords:
            raise _UnclearError
        text, is_single = self._appended
        joins_axis = dotted_name(result.func).rpartition(".")[2] in ("cat", "concat", "concatenate")
        if joins_axis != is_single:
            raise _UnclearError
        return text

    def _assign(self, name: str, value: ast.expr) -> None:
        if self._is_of_numbers(value):
            self._add_numbers(ast.Name(name), value)
            return
        if self._add_roll(name, value):
            return
        text, is_single = self._array(value)
        target = self._samples.get(name, name)
        self._samples[name] = target
        if is_single:
            self._single.add(name)
        else:
            self._single.discard(name)
        self.lines.append(f"{target} = {text}")

    # ---- numbers of each sample ----

    def _is_of_numbers(self, node: ast.expr) -> bool:
        """Return whether an expression has one number for each sample, on the host."""
        for one in ast.walk(node):
            match one:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=method)):
                    if method not in _OF_NUMPY:
                        return False
                case ast.Call(func=ast.Attribute(attr=method), args=args):
                    if _WITH_SIZE.get(method) != len(args) or one.keywords:
                        return False
                    if not self._has_generator():
                        return False
                case ast.Call() | ast.Subscript() | ast.List() | ast.Compare():
                    return False
                case ast.Name(id=name) if name in self._samples:
                    return False
        return True

    def _has_generator(self) -> bool:
        """Return whether the file has generators of NumPy, and no others."""
        text = b"\n".join(self._level.file.lines)
        is_numpy = re.search(rb"default_rng\(|\bnp\.random\b|numpy\.random", text) is not None
        return is_numpy and re.search(rb"^(import|from) random\b|random\.Random\(", text) is None

    def _add_numbers(self, target: ast.expr, value: ast.expr) -> None:
        whole = _OfAll(self._numpy, f"len({self._batch})")
        text = ast.unparse(whole.visit(ast.parse(ast.unparse(value), mode="eval").body))
        self.lines.append(f"{_bare(target, ast.unparse(target))} = {_bare(value, text)}")
        for one in _names_in_target(target):
            self._vectors[one] = one

    def _vector(self, node: ast.expr) -> str:
        """Return the numbers of all samples as a tensor that fits the axes of the batch."""
        if not isinstance(node, ast.Name) or node.id not in self._vectors:
            raise _UnclearError
        flat = self._flat(node.id)
        return f"{flat}.view(-1, *[1] * ({self._batch}.dim() - 1))"

    def _flat(self, name: str) -> str:
        whole = f"{self._torch}.as_tensor({self._vectors[name]}, device={self._batch}.device)"
        return f"{whole}{self._columns.get(name, '')}"

    # ---- arrays ----

    def _array(self, node: ast.expr) -> tuple[str, bool]:
        """Return an expression for the whole batch, and whether a sample has a first axis of 1."""
        text = ast.unparse(node)
        if text in self._samples:
            return self._samples[text], text in self._single
        match node:
            case ast.Subscript(value=value, slice=ast.Constant(value=None)):
                return self._array(value)[0], True
            case ast.Call(
                func=ast.Attribute(attr="unsqueeze", value=value), args=[ast.Constant(value=0)]
            ):
                return self._array(value)[0], True
            case ast.BinOp(left=left, op=op, right=right):
                return self._of_operation(left, op, right)
            case ast.Call():
                return self._of_call(node)
        raise _UnclearError

    def _of_operation(self, left: ast.expr, op: ast.operator, right: ast.expr) -> tuple[str, bool]:
        if isinstance(op, ast.MatMult):
            raise _UnclearError
        parts, single = [], False
        for one in (left, right):
            if isinstance(one, ast.Constant):
                parts.append(ast.unparse(one))
            elif isinstance(one, ast.Name) and one.id in self._vectors:
                parts.append(self._vector(one))
            else:
                text, single = self._array(one)
                parts.append(text if text.isidentifier() else f"({text})")
        sign = ast.unparse(ast.BinOp(ast.Name("a"), op, ast.Name("b")))[2:-2]
        return f"{parts[0]} {sign} {parts[1]}", single

    def _of_call(self, call: ast.Call) -> tuple[str, bool]:
        name = dotted_name(call.func)
        last = name.rpartition(".")[2]
        words = "".join(f", {ast.unparse(one)}" for one in call.keywords)
        if last == "tensor" and len(call.args) == 1:
            return self._of_table(call.args[0]), True
        if last == "affine_grid" and len(call.args) == 2:
            theta, _ = self._array(call.args[0])
            return f"{name}({theta}, {self._batch}.shape{words})", True
        if last == "grid_sample" and len(call.args) == 2:
            (image, first), (grid, second) = self._array(call.args[0]), self._array(call.args[1])
            if not (first and second):
                raise _UnclearError
            return f"{name}({image}, {grid}{words})", True
        if isinstance(call.func, ast.Attribute) and last == "flip" and len(call.args) == 1:
            image, single = self._array(call.func.value)
            axis = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
            if single or type(axis) is not int or axis < 0 or call.keywords:
                raise _UnclearError
            return f"{image}.flip({axis + 1})", False
        module = name.rpartition(".")[0]
        if last in _OF_MATRICES and module.endswith("linalg") and len(call.args) == 1:
            text, single = self._array(call.args[0])
            return f"{name}({text}{words})", single
        if last in _SAME_FOR_ALL and all(isinstance(one, ast.Constant) for one in call.args[1:]):
            if module in (self._torch, f"{self._torch}.nn.functional", "F") and call.args:
                text, single = self._array(call.args[0])
                rest = "".join(f", {ast.unparse(one)}" for one in call.args[1:])
                return f"{name}({text}{rest}{words})", single
            if isinstance(call.func, ast.Attribute) and not _have_names(call.args):
                text, single = self._array(call.func.value)
                rest = ", ".join(map(ast.unparse, (*call.args, *call.keywords)))
                return f"{text}.{last}({rest})", single
        raise _UnclearError

    def _of_table(self, table: ast.expr) -> str:
        """Return the tensor with a small table of numbers for each sample."""
        rows: Sequence[ast.expr] = [table]
        shape: list[int] = []
        while rows and all(isinstance(one, (ast.List, ast.Tuple)) for one in rows):
            lengths = {len(one.elts) for one in rows if isinstance(one, (ast.List, ast.Tuple))}
            if len(lengths) != 1:
                raise _UnclearError
            shape += lengths
            rows = [
                inner
                for one in rows
                if isinstance(one, (ast.List, ast.Tuple))
                for inner in one.elts
            ]
        if len(shape) != 3 or shape[0] != 1:
            raise _UnclearError
        if not all(self._is_of_numbers(one) for one in rows):
            raise _UnclearError
        for one in rows:
            if not names_in(one) <= self._vectors.keys():
                raise _UnclearError
        numbers = ", ".join(map(ast.unparse, rows))
        np = self._numpy
        return (
            f"{self._torch}.tensor({np}.stack({np}.broadcast_arrays({numbers}), 1)"
            f".reshape(-1, {shape[1]}, {shape[2]}), dtype={self._torch}.float32, "
            f"device={self._batch}.device)"
        )

    def _add_roll(self, name: str, value: ast.expr) -> bool:
        """Add the lines for `torch.roll` with shifts of its own for each sample."""
        match value:
            case ast.Call(
                func=func,
                args=[image, ast.Tuple(elts=shifts)],
                keywords=[ast.keyword(arg="dims", value=ast.Tuple(elts=dims))],
            ) if dotted_name(func).endswith("roll"):
                if [ast.unparse(one) for one in dims] != ["1", "2"] or len(shifts) != 2:
                    raise _UnclearError
                if self._level.function.knows("rows") or self._level.function.knows("columns"):
                    raise _UnclearError
                text, single = self._array(image)
                if single:
                    raise _UnclearError
                target = self._samples.setdefault(name, name)
                for axis, (shift, part) in enumerate(zip(shifts, ("rows", "columns"), strict=True)):
                    if not isinstance(shift, ast.Name) or shift.id not in self._vectors:
                        raise _UnclearError
                    length = f"{self._batch}.shape[{axis + 2}]"
                    device = f"device={self._batch}.device"
                    begin = f"{self._torch}.arange({length}, {device})"
                    place = "[:, None, :, None]" if axis == 0 else "[:, None, None, :]"
                    self.lines += [
                        f"{part} = ({begin} - {self._flat(shift.id)}[:, None]) % {length}",
                        f"{target} = {text}.take_along_dim({part}{place}, {axis + 2})",
                    ]
                    text = target
                return True
        return False

    def _add_choice(self, flag: str, inner: ast.Assign) -> None:
        """Add the lines for an operation on only some samples: `if mirrored: …`."""
        target = inner.targets[0]
        if not isinstance(target, ast.Name) or target.id not in self._samples:
            raise _UnclearError
        before, single = self._array(target)
        after, other = self._array(inner.value)
        if single != other:
            raise _UnclearError
        chosen = self._vector(ast.Name(flag))
        self.lines.append(f"{before} = {self._torch}.where({chosen}, {after}, {before})")


def _bare(node: ast.expr, text: str) -> str:
    """Return the text of a tuple without its parentheses."""
    return text[1:-1] if isinstance(node, ast.Tuple) else text


def _names_in_target(target: ast.expr) -> list[str]:
    """Return the names that an assignment gives values."""
    return [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]


def _have_names(nodes: Sequence[ast.expr]) -> bool:
    """Return whether some expressions read any names."""
    return any(names_in(one) for one in nodes)


def _pairs_of(loop: Loop, names: Sequence[str]) -> list[str]:
    """Return the names of a pair in the target of a loop: of `a, (dy, dx)`, `dy` and `dx`."""
    target = loop.node.target if isinstance(loop.node, ast.For) else None
    for one in ast.walk(target) if target is not None else ():
        if isinstance(one, ast.Tuple) and one is not target:
            found = [part.id for part in one.elts if isinstance(part, ast.Name)]
            if set(found) == set(names) and len(found) == len(one.elts):
                return found
    return []
