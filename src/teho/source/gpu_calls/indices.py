"""Finds parameters that a model indexes with a tensor: `self.species[z]`.

The backward pass of this indexing is `index_put_` with `accumulate=True`. It sorts the indices, and
adds the gradients of equal indices one after the other. If many indices are equal, only a few
threads work (PyTorch, issue 41162). The backward passes of
`F.embedding` and `index_select` add them in parallel.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple, Union

from teho.patterns import lazy_pattern
from teho.source.constants import number_of
from teho.source.gpu_calls.call import GpuCall, InFile
from teho.source.options.uses import name_of
from teho.source.parsed import Function, dotted_name
from teho.source.program import Place
from teho.source.slow_calls.loop_parts import imported_name

__all__ = ["find_indexed_parameters"]

_PARAMETER = frozenset(("torch.nn.Parameter", "torch.nn.parameter.Parameter"))
_LAYERS = frozenset(("torch.nn.Embedding",))
_DEEPEST = 4
_MANY_ROWS = 20_000
"""With more rows, few indices are equal."""
_WITH_SIZES = frozenset(
    f"torch.{name}" for name in ("randn", "rand", "zeros", "ones", "empty", "Tensor", "FloatTensor")
)
_OF_TENSORS = lazy_pattern(
    "long|to|cuda|view|reshape|flatten|argmax|argmin|clamp|squeeze|unsqueeze|expand|repeat|ravel"
)
"""Methods whose result is a tensor if their object is one."""
_MAKES = lazy_pattern(
    r"torch\.(tensor|as_tensor|from_numpy|randint|bucketize|searchsorted|argmax|argmin|clamp|where"
    r"|cat|stack|topk|multinomial|LongTensor)"
)
_SINGLE = lazy_pattern(
    r"[ijkln]|.*(layer|level|stage|head|epoch|step|block|rank|depth|fold|seed)(_?(id|idx|index|no))?",
    re.IGNORECASE,
)
"""Names of parameters that are usually numbers of Python."""


_COMPUTES = lazy_pattern(r"forward|model|net|embed|encode|predict|energy|loss|logits|training_step")
"""Names of functions whose arguments are usually tensors."""


class _Table(NamedTuple):
    """A parameter."""

    dimensions: Union[int, None]
    rows: Union[float, None]


def find_indexed_parameters(source: InFile) -> Iterator[GpuCall]:
    """Yield where a training indexes a parameter with a tensor.

    Args:
        source: the file.
    """
    if not source.is_training():
        return
    tables = _tables(source)
    for place in source.places() if tables else ():
        for node in place.function.nodes:
            match node:
                case ast.Subscript(value=owner, slice=index, ctx=ast.Load()):
                    table = tables.get(_name(owner, place.function))
                    if table is None or not _is_tensor(index, place, source):
                        continue
                    yield _found(node, table, place)


def _name(owner: ast.expr, function: Function) -> str:
    """Return `Model:self.species` of `self.species`, and the name of a variable."""
    name = dotted_name(owner)
    if name.startswith("self.") and function.owner is not None:
        return f"{function.owner.name}:{name}"
    return name


def _tables(source: InFile) -> dict[str, _Table]:
    """Return the small parameters of a file."""
    found: dict[str, _Table] = {}
    for place in source.places():
        for node in place.function.nodes:
            match node:
                case ast.Assign(targets=[target], value=ast.Call() as made):
                    name = _name(target, place.function)
                    table = _table(made, place, source) if name else None
                    if table is not None and (table.rows or 0) < _MANY_ROWS:
                        is_layer = name_of(made.func, place, source.purity.program) in _LAYERS
                        found[f"{name}.weight" if is_layer else name] = table
    return found


def _table(made: ast.Call, place: Place, source: InFile) -> _Table | None:
    """Return the parameter that a call makes; None if it makes something else."""
    name = name_of(made.func, place, source.purity.program)
    values: ast.expr | None = None
    if name in _PARAMETER and made.args:
        if any(word.arg == "requires_grad" for word in made.keywords):
            return None
        values = made.args[0]
    elif name in _LAYERS and made.args:
        rows = number_of(made.args[0], place, source.purity)
        return _Table(2, rows.value if rows else None)
    elif any(_is_true(word) for word in made.keywords if word.arg == "requires_grad"):
        values = made
    elif isinstance(made.func, ast.Attribute) and made.func.attr == "requires_grad_":
        values = made.func.value if not made.args and not made.keywords else None
    return _sizes(values, place, source) if values is not None else None


def _is_true(word: ast.keyword) -> bool:
    return isinstance(word.value, ast.Constant) and word.value.value is True


def _sizes(values: ast.expr, place: Place, source: InFile) -> _Table:
    """Return the sizes of a parameter, as far as the source shows them."""
    while isinstance(values, (ast.BinOp, ast.Attribute)):  # `torch.randn(20, width) * 0.1`
        is_call = isinstance(values, ast.BinOp) and isinstance(values.left, ast.Call)
        if isinstance(values, ast.Attribute):
            values = values.value
        else:
            values = values.left if is_call else values.right
    if not isinstance(values, ast.Call):
        return _Table(None, None)
    if isinstance(values.func, ast.Attribute) and isinstance(values.func.value, ast.Call):
        return _sizes(values.func.value, place, source)  # `torch.randn(20, width).to(device)`
    if name_of(values.func, place, source.purity.program) not in _WITH_SIZES:
        return _Table(None, None)
    match values.args:
        case [ast.Tuple(elts=sizes) | ast.List(elts=sizes)]:
            pass
        case sizes:
            pass
    if not sizes or any(isinstance(one, ast.Starred) for one in sizes):
        return _Table(None, None)
    rows = number_of(sizes[0], place, source.purity)
    return _Table(len(sizes), rows.value if rows else None)


def _is_tensor(index: ast.expr, place: Place, source: InFile, depth: int = 0) -> bool:
    """Return whether an index is a tensor of integers, as far as the source shows it."""
    function = place.function
    match index:
        case ast.Name(id=name):
            given = function.assigned.get(name, [])
            if not given and name in function.params:
                return _may_be_tensor(name, function)
            if len(given) != 1 or given[0].loop is not None or name in function.params:
                return False
            value = given[0].value
            return (
                value is not None
                and depth < _DEEPEST
                and _is_tensor(value, place, source, depth + 1)
            )
        case ast.Attribute():
            return dotted_name(index).startswith("self.") and _is_buffer(index, place)
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if _OF_TENSORS.fullmatch(
            method
        ):
            name = name_of(index.func, place, source.purity.program)
            is_function = bool(name) and not name.startswith(".")
            return _MAKES.fullmatch(name) is not None if is_function else _may_hold(owner)
        case ast.Call():
            return _MAKES.fullmatch(name_of(index.func, place, source.purity.program)) is not None
    return False


def _may_hold(owner: ast.expr) -> bool:
    return not isinstance(owner, ast.Constant)


def _may_be_tensor(name: str, function: Function) -> bool:
    """Return whether a parameter of `forward` may be a tensor."""
    if not _COMPUTES.search(function.name):
        return False
    if name == "self" or _SINGLE.fullmatch(name) or function.default(name) is not None:
        return False
    given = function.node.args if isinstance(function.node, ast.FunctionDef) else None
    kinds = [one.annotation for one in given.args if one.arg == name] if given else []
    return not any(kind is not None and ast.unparse(kind) in ("int", "slice") for kind in kinds)


def _is_buffer(index: ast.Attribute, place: Place) -> bool:
    """Return whether `self.NAME` is a buffer of the model."""
    owner = place.function.owner
    for node in ast.walk(owner) if owner is not None else ():
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="self"), attr="register_buffer"),
                args=[ast.Constant(value=name), ast.expr(), *_],
            ) if name == index.attr:
                return True
    return False


def _found(node: ast.Subscript, table: _Table, place: Place) -> GpuCall:
    owner, index = ast.unparse(node.value), ast.unparse(node.slice)
    torch = imported_name("torch", place.function, "torch")
    functions = imported_name("torch.nn.functional", place.function, f"{torch}.nn.functional")
    match table.dimensions:
        case 2:
            new = f"{functions}.embedding({index}, {owner})"
        case 1:
            new = f"{functions}.embedding({index}, {owner}[:, None]).squeeze(-1)"
        case _:
            shape = f"{index}.shape + {owner}.shape[1:]"
            new = f"{owner}.index_select(0, {index}.reshape(-1)).reshape({shape})"
    return GpuCall("parameter_indexed", node, {"old": f"{owner}[{index}]", "new": new})
