"""Finds functions of NumPy, SciPy and scikit-learn that compute with arrays copied from a GPU.

`cdist(query.cpu().numpy(), known.cpu().numpy())` computes on the cores of the node while the GPU is
idle. The same function exists on the GPU, and only its result has to be copied.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.devices import Devices, called_name, items_of
from teho.source.parsed import Function, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import imported_name
from teho.source.stack import Level

__all__ = ["find_computed_on_host"]

_OF_TORCH: Mapping[str, str] = {
    r"scipy\.spatial\.distance\.cdist": "{torch}.cdist({a}, {b})",
    r"scipy\.spatial\.distance_matrix": "{torch}.cdist({a}, {b})",
    r"scipy\.spatial\.distance\.pdist": "{torch}.pdist({a})",
    r"sklearn\.metrics(\.pairwise)?\.(euclidean_distances|pairwise_distances)": (
        "{torch}.cdist({a}, {b})"
    ),
    r"sklearn\.metrics\.pairwise\.cosine_similarity": (
        "{torch}.nn.functional.normalize({a}) @ {torch}.nn.functional.normalize({b}).T"
    ),
    r"numpy\.(?P<f>argmax|argmin|argsort|cumsum|cumprod)": "{torch}.{f}({a}{axis})",
    r"numpy\.(dot|matmul)": "{a} @ {b}",
    r"numpy\.(?P<f>corrcoef|cov|bincount)": "{torch}.{f}({a})",
    r"numpy\.linalg\.(?P<f>svd|eigh|eig|eigvalsh|inv|pinv|det|slogdet|cholesky|qr|matrix_rank)": (
        "{torch}.linalg.{f}({a})"
    ),
    r"scipy\.linalg\.(?P<f>svd|eigh|eig|inv|pinv|det)": "{torch}.linalg.{f}({a})",
    r"(numpy|scipy)\.linalg\.(?P<f>solve)": "{torch}.linalg.{f}({a}, {b})",
    r"(numpy|scipy)\.fft\.(?P<f>i?r?fftn?|i?r?fft2)": "{torch}.fft.{f}({a})",
}
"""Functions on the CPU, and the same functions of PyTorch. `{axis}` is the further argument."""
_SHARED = ("numpy.", "scipy.")
"""Libraries whose functions CuPy has with the same names."""
_TWO = "{b}"
_REDUCES = frozenset(("argmin", "argmax", "argsort", "sum", "mean"))
_ARRAYS = frozenset(("numpy.asarray", "numpy.array", "numpy.ascontiguousarray"))
_JOINS = frozenset(("numpy.concatenate", "numpy.vstack", "numpy.stack", "torch.cat", "torch.stack"))
_SAME = frozenset(
    ("astype", "float", "double", "reshape", "view", "flatten", "squeeze", "ravel", "contiguous")
)
_LIGHT = ("argmax", "argmin", "cumsum", "cumprod", "bincount")
"""Functions that take hardly more time than copying their array to the GPU again."""
_NEED_AXIS = ("cumsum", "cumprod")
_SEVERAL = lazy_pattern(r"linalg\.(svd|eigh|eig|slogdet|qr)\(")
"""Functions that return several arrays."""
_DEEPEST = 5


class _Copied(NamedTuple):
    """An array in host memory that was copied from a device."""

    line: int
    """The line with the copy."""
    copy: str
    """`.cpu().numpy()`, `.get()` or `cp.asnumpy()`."""
    library: str
    """`torch` or `cupy`."""
    text: str
    """The array on the device, if the copy is a part of the call."""
    name: str = ""
    """The name of the copy; empty if the copy is a part of the call."""
    join: str = ""
    """The call that joins several copies: `np.concatenate(parts)`."""
    list_name: str = ""
    """The list of these copies."""
    is_far: bool = False
    """Whether another function, or the loop that collects the copies, makes them."""


def find_computed_on_host(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that computes on the CPU with arrays of a GPU.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    if levels and isinstance(product := levels[-1].node, ast.BinOp):
        return _of_product(product, levels, purity)
    if not levels or not isinstance(call := levels[-1].node, ast.Call):
        return None
    level, program = levels[-1], purity.program
    name = called_name(call, level.place, program)
    pattern = next((one for one in _OF_TORCH if re.fullmatch(one, name)), None)
    if pattern is None or not call.args or len(call.args) > 2:
        return None
    template = _OF_TORCH[pattern]
    arrays = call.args[: 2 if _TWO in template else 1]
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    finder = _Finder(levels, purity)
    copies = [finder.copied(one, level.place) for one in arrays]
    found = [one for one in copies if one is not None]
    if len(found) < len(arrays) or len({one.library for one in found}) > 1:
        return None
    axis = _axis(call, name, template)
    if axis is None:
        return None
    if any(one.join for one in found):
        collected = _of_collected(call, name, found, axis, level)
        if collected is not None:
            return collected
    if any(one.is_far for one in found) and name.endswith(_LIGHT):
        return None
    found = [_sent_back(one) for one in found]
    if found[0].library == "torch":
        given = [*(one.text or one.name for one in found), ""]
        match = re.fullmatch(pattern, name)
        new = template.format(
            torch=imported_name("torch", level.function, "torch"),
            a=given[0],
            b=given[1] or given[0],
            axis=axis,
            **(match.groupdict() if match else {}),
        )
    elif name.startswith(_SHARED):
        new = _of_cupy(name, found, axis, level.function)
    else:
        return None
    return _found(call, new, found, level)


def _sent_back(one: _Copied) -> _Copied:
    """Return an array that is copied to the GPU again, if its copy is made elsewhere."""
    if not one.is_far:
        return one
    is_numpy = one.copy.endswith(".numpy()") or not one.join.startswith("torch.")
    name = one.name or one.text
    text = f"torch.from_numpy({name}).cuda()" if is_numpy else f"{name}.cuda()"
    return one._replace(text=text, name="")


def _of_product(product: ast.BinOp, levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return a product of matrices, `a @ b.T`, of arrays that were copied from a device."""
    if not isinstance(product.op, ast.MatMult):
        return None
    finder = _Finder(levels, purity)
    copies = [finder.copied(one, levels[-1].place) for one in (product.left, product.right)]
    found = [_sent_back(one) for one in copies if one is not None]
    if len(found) < len(copies) or len({one.library for one in found}) > 1:
        return None
    new = " @ ".join(one.text or one.name for one in found)
    return _found(product, new, found, levels[-1])


def _of_collected(
    call: ast.Call, name: str, found: Sequence[_Copied], axis: str, level: Level
) -> CostlyOption | None:
    """Return an `argmax` of results that a loop collects; None: it is another function."""
    (one, *others) = found
    best = name.rpartition(".")[2]
    is_last = axis in (", -1", ", 1")
    if (
        others
        or best not in ("argmax", "argmin")
        or not is_last
        or not (one.text and one.list_name)
    ):
        return None
    if _used_elsewhere(
        [one._replace(name=root_name(call.args[0]) or one.name)], call, level.function
    ):
        return None
    frame, short = level.frame, level.frame.file.rpartition("/")[2]
    return CostlyOption(
        name="collected_for_argmax",
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "line": f"{short}:{one.line}",
            "old": f"{one.text}{one.copy}",
            "new": f"{one.text}.{best}({axis[2:]}){one.copy}",
            "place": f"{short}:{call.lineno}",
            "best": level.file.text_of(call),
            "instead": ast.unparse(call.args[0]),
        },
    )


def _of_cupy(name: str, found: Sequence[_Copied], axis: str, function: Function) -> str:
    module = name.removeprefix("numpy.")
    cupy = imported_name("cupy", function, "cupy")
    whole = f"{cupy}.{module}" if name.startswith("numpy.") else f"cupyx.{name}"
    return f"{whole}({', '.join(one.text or one.name for one in found)}{axis})"


def _axis(call: ast.Call, name: str, template: str) -> str | None:
    """Return further arguments of a call, as PyTorch has them; None: PyTorch does not have them."""
    rest = [*call.args[template.count("{a}") + template.count("{b}") :], *call.keywords]
    if _TWO in template:
        rest = [*call.args[2:], *call.keywords]
    if "{axis}" not in template:
        return None if rest else ""
    match rest:
        case []:
            return "" if "{f}" in template and not name.endswith(_NEED_AXIS) else None
        case [ast.keyword(arg="axis", value=value)]:
            return f", {ast.unparse(value)}"
        case [ast.expr() as value]:
            return f", {ast.unparse(value)}"
    return None


class _Finder:
    """Finds the copies of arrays from a device."""

    def __init__(self, levels: Sequence[Level], purity: Purity) -> None:
        self._levels, self._program = levels, purity.program
        self._devices = Devices(levels, purity.program)

    def copied(self, node: ast.expr, at: Place, depth: int = 0) -> _Copied | None:
        """Return the copy that an expression is; None: it is not certainly one."""
        if depth > _DEEPEST:
            return None
        match node:
            case ast.Name(id=name):
                return self._of_name(name, at, depth)
            case ast.Subscript(value=value):
                found = self.copied(value, at, depth + 1)
                return found._replace(name=ast.unparse(node), text="") if found else None
            case ast.Attribute(attr="T", value=value) | ast.UnaryOp(op=ast.USub(), operand=value):
                found = self.copied(value, at, depth + 1)
                if found is None:
                    return None
                if found.join:
                    return found._replace(name=ast.unparse(node), list_name="")
                text = ast.unparse(node).replace(ast.unparse(value), found.text or found.name)
                return found._replace(text=text) if found.text else found._replace(name=text)
            case ast.Call():
                return self._of_call(node, at, depth)
        return None

    def _of_name(self, name: str, at: Place, depth: int) -> _Copied | None:
        given = at.function.assigned.get(name, [])
        if len(given) != 1 or given[0].loop is not None or given[0].value is None:
            return None
        if name in at.function.params:
            return None
        found = self.copied(given[0].value, at, depth + 1)
        if found is None:
            return None
        return found._replace(name=name, text=found.text if found.join else "")

    def _of_call(self, call: ast.Call, at: Place, depth: int) -> _Copied | None:
        if isinstance(called := self._program.called(call, at), Place):
            return self._of_function(called, depth)
        name = called_name(call, at, self._program)
        if name in ("cupy.asnumpy", "jax.device_get") and len(call.args) == 1:
            copy = f"{ast.unparse(call.func)}()"
            return _copy(call, copy, "cupy", call.args[0]) if "cupy" in name else None
        if name in _ARRAYS and len(call.args) == 1:
            return self.copied(call.args[0], at, depth + 1)
        if name in _JOINS and call.args:
            return self._of_joined(call, at, depth)
        match call.func:
            case ast.Attribute(attr="numpy", value=value) if not call.args:
                inner = self.copied(value, at, depth + 1)
                if inner is None:
                    return None
                return inner._replace(copy=f"{inner.copy}.numpy()") if inner.text else inner
            case ast.Attribute(attr="get", value=value) if not (call.args or call.keywords):
                is_cupy = any(one == "cupy" for one in at.function.module.imports.values())
                return _copy(call, ".get()", "cupy", value) if is_cupy else None
            case ast.Attribute(attr="cpu", value=value) if not call.args:
                return _copy(call, ".cpu()", "torch", value) if self._is_tensor(at) else None
            case ast.Attribute(attr="to", value=value):
                is_host = [ast.unparse(one) for one in call.args] == ["'cpu'"]
                return _copy(call, ".to('cpu')", "torch", value) if is_host else None
            case ast.Attribute(attr=attr, value=value) if attr in _SAME:
                found = self.copied(value, at, depth + 1)
                return found._replace(text="") if found else None
        return None

    def _of_function(self, called: Place, depth: int) -> _Copied | None:
        """Return the copy that a function of the program returns."""
        returned = [one for one in called.function.nodes if isinstance(one, ast.Return)]
        value = returned[0].value if len(returned) == 1 else None
        if value is None:
            return None
        found = self.copied(value, called, depth + 1)
        if found is None or found.library != "torch":
            return None
        return found._replace(is_far=True, text="", join="", name="")

    def _of_joined(self, call: ast.Call, at: Place, depth: int) -> _Copied | None:
        """Return the copies that a function joins: `np.concatenate(parts)`."""
        parts: Sequence[ast.expr] = ()
        match call.args[0]:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                parts = elements
            case ast.ListComp(elt=element):
                parts = [element]
            case ast.Name(id=name):
                parts = items_of(name, at.function)
        found = [self.copied(one, at, depth + 1) for one in parts]
        first = found[0] if found and None not in found else None
        if first is None:
            return None
        join = ast.unparse(call)
        return first._replace(
            name=join, join=join, list_name=root_name(call.args[0]), text=first.text, is_far=True
        )

    @staticmethod
    def _is_tensor(at: Place) -> bool:
        return any(one.partition(".")[0] == "torch" for one in _imports(at.function))


def _imports(function: Function) -> Iterator[str]:
    outer: Function | None = function
    while outer is not None:
        yield from outer.imports.values()
        outer = outer.parent


def _copy(call: ast.Call, copy: str, library: str, value: ast.expr) -> _Copied:
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr != "detach":
            break
        value = value.func.value
    text = ast.unparse(value)
    return _Copied(call.end_lineno or call.lineno, copy, library, text)


def _found(
    call: ast.Call | ast.BinOp, new: str, copies: Sequence[_Copied], level: Level
) -> CostlyOption | None:
    function, frame = level.function, level.frame
    old: ast.expr = call
    for node in function.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if value is call:
                if attr in _REDUCES and len(node.args) + len(node.keywords) <= 1:
                    old = node
                    given = ", ".join(map(ast.unparse, (*node.args, *node.keywords)))
                    new = f"({new}).{attr}({given})" if " @ " in new else f"{new}.{attr}({given})"
    is_torch = copies[0].library == "torch"
    back = ".cpu().numpy()" if is_torch else ".get()"
    whole = f"({new}){back}" if " @ " in new and old is call else f"{new}{back}"
    if old is call and _SEVERAL.search(new):
        whole = f"tuple(one{back} for one in {new})"
    named = [one for one in copies if one.name]
    places = sorted({one.line for one in named})
    short = frame.file.rpartition("/")[2]
    before = ""
    if named:
        lines = " and ".join(f"{short}:{line}" for line in places)
        other = _used_elsewhere(named, call, function)
        before = (
            f"Keep the arrays on the GPU: remove `{named[0].copy}` at {lines}. "
            if not other
            else f"Keep the arrays on the GPU at {lines}, and copy them with `{named[0].copy}` "
            f"only for the other lines that use them. "
        )
    return CostlyOption(
        name="computed_on_host",
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "place": f"{short}:{call.lineno}",
            "before": before,
            "old": level.file.text_of(old),
            "new": whole,
        },
    )


def _used_elsewhere(named: Sequence[_Copied], call: ast.expr, function: Function) -> bool:
    """Return whether other lines use the copies too."""
    inside = set(ast.walk(call))
    names = {root_name(ast.parse(one.name, mode="eval").body) for one in named}
    return any(
        isinstance(node, ast.Name)
        and node.id in names
        and isinstance(node.ctx, ast.Load)
        and node not in inside
        for node in function.nodes
    )
