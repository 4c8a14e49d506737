"""Finds whole arrays that are converted although the program then uses only a part of them.

The stack says which operation on the elements of an array took the time. If the source shows that
all that is used of its result is a part that is cut out of it, the program can cut first, and then
compute with the part: the result is the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from teho.model.in_source import Need, Unneeded
from teho.model.stack import Frame
from teho.source.known import fits, known
from teho.source.parsed import Function
from teho.source.program import Program
from teho.source.stack import Level
from teho.source.uses import LOOPS, Uses
from teho.source.windows import is_window

__all__ = ["find_cut"]

_OF_ARRAYS = (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow)
"""Operations that texts and lists do not have."""
_ELEMENTWISE = (*_OF_ARRAYS, ast.Add, ast.Mult, ast.Mod)
_DEEPEST = 4
_SHAPES = frozenset(("shape", "ndim", "dtype", "size", "device", "itemsize"))
_SAME_DATA = frozenset(("numpy", "copy", "clone", "contiguous", "detach", "cpu", "cuda", "to"))
_SAME_FUNCTIONS = frozenset(
    ("torch.from_numpy", "torch.as_tensor", "numpy.asarray", "numpy.ascontiguousarray")
)
"""Methods and functions that give an array with the same elements."""


def find_cut(level: Level, uses: Uses, program: Program) -> Unneeded | None:
    """Return the operation that a function executes, if only a part of its result is used.

    Args:
        level: the innermost function of the program on a stack.
        uses: the uses in this function.
        program: the files of the program.
    """
    node = level.node
    if not isinstance(node, (ast.Call, ast.BinOp)):
        return None
    search = _Cuts(level, uses, program)
    if not search.is_elementwise(node) or not search.is_of_array(node):
        return None
    cuts = search.after(node)
    if not cuts or not search.are_one(cuts, node):
        return None
    file, first = level.file, min(cuts, key=lambda one: (one.lineno, one.col_offset))
    function = level.function.node
    line = getattr(function, "lineno", 1)
    return Unneeded(
        calls=(level.frame,),
        need=Need.PART,
        at=(_frame(level, first.lineno, file.text_of(first)),),
        loop=_frame(level, line, file.line_text(line).rstrip(":")),
        last=getattr(function, "end_lineno", 0) or 0,
    )


class _Cuts:
    """Follows the result of an operation through a function.

    Args:
        level: the function.
        uses: the uses in it.
        program: the files of the program.
    """

    def __init__(self, level: Level, uses: Uses, program: Program) -> None:
        self._place, self._uses, self._program = level.place, uses, program
        self._function: Function = level.function
        self._seen: set[ast.AST] = set()

    def is_elementwise(self, node: ast.AST) -> bool:
        """Return whether an operation computes each element from those at the same place."""
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, _ELEMENTWISE)
        if not isinstance(node, ast.Call) or any(word.arg == "out" for word in node.keywords):
            return False
        called = self._program.called(node, self._place)
        if isinstance(called, str):
            return fits("elementwise", called)
        if called is not None or not isinstance(node.func, ast.Attribute):
            return False
        return node.func.attr in known().methods.elementwise

    def is_of_array(self, node: ast.AST, depth: int = 0) -> bool:
        """Return whether an operation is certainly one on an array, not on a text or a list."""
        if isinstance(node, ast.Call):
            return self.is_elementwise(node)
        if isinstance(node, ast.UnaryOp):
            return self.is_of_array(node.operand, depth)
        if isinstance(node, ast.Constant):
            return isinstance(node.value, float)
        if isinstance(node, ast.Name) and depth < _DEEPEST:
            given = self._function.assigned.get(node.id, [])
            values = [one.value for one in given if one.value is not None and one.loop is None]
            return any(self.is_of_array(one, depth + 1) for one in values)
        if not isinstance(node, ast.BinOp):
            return False
        return isinstance(node.op, _OF_ARRAYS) or any(
            self.is_of_array(one, depth) for one in (node.left, node.right)
        )

    def after(self, node: ast.AST) -> list[ast.Subscript] | None:
        """Return the expressions that cut a part out of a value; None: the rest is used too."""
        if node in self._seen:
            return []
        self._seen.add(node)
        parent = self._uses.parent(node)
        match parent:
            case ast.Subscript() if parent.value is node:
                return [parent] if isinstance(parent.ctx, ast.Load) else None
            case ast.Attribute():
                return self._after_attribute(parent)
            case ast.BinOp() if isinstance(parent.op, _ELEMENTWISE):
                return self.after(parent)
            case ast.UnaryOp(op=ast.USub()):
                return self.after(parent)
            case ast.Call() if node in parent.args:
                called = self._program.called(parent, self._place)
                is_same = isinstance(called, str) and called in _SAME_FUNCTIONS
                if called == "len":
                    return []
                return self.after(parent) if is_same or self.is_elementwise(parent) else None
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                return self._after_name(parent, name)
            case ast.AugAssign(target=ast.Name(id=name)) if isinstance(parent.op, _ELEMENTWISE):
                # The uses of the name after this statement are also those of its value before.
                return [] if node is parent.target else self._after_name(parent, name)
        return None

    def _after_attribute(self, node: ast.Attribute) -> list[ast.Subscript] | None:
        if node.attr in _SHAPES:
            return []
        call = self._uses.parent(node)
        if not isinstance(call, ast.Call) or call.func is not node:
            return None
        is_same = node.attr in _SAME_DATA
        return self.after(call) if is_same or self.is_elementwise(call) else None

    def _after_name(self, statement: ast.AST, name: str) -> list[ast.Subscript] | None:
        uses = self._uses.of(statement, name)
        return self._together(uses) if uses is not None else None

    def _together(self, nodes: Iterable[ast.AST]) -> list[ast.Subscript] | None:
        found: list[ast.Subscript] = []
        for node in nodes:
            cuts = self.after(node)
            if cuts is None:
                return None
            found += cuts
        return found

    def are_one(self, cuts: list[ast.Subscript], node: ast.AST) -> bool:
        """Return whether cuts give one small part of an array, each time that it is computed."""
        loops = self._uses.loops_around(node)
        if any(self._uses.loops_around(one) != loops for one in cuts):
            return False  # the parts together may be the whole array
        texts = {ast.dump(one.slice) for one in cuts}
        return len(texts) == 1 and self._is_small(cuts[0].slice, loops)

    def _is_small(self, part: ast.expr, loops: list[ast.AST]) -> bool:
        """Return whether a subscript gives a window, such as `[top : top + 64]`, or one item."""
        parts = part.elts if isinstance(part, ast.Tuple) else [part]
        return any(
            is_window(one, self._function)
            if isinstance(one, ast.Slice)
            else self._is_item(one, loops)
            for one in parts
        )

    def _is_item(self, part: ast.expr, loops: list[ast.AST]) -> bool:
        """Return whether a subscript is the number of one item, which differs each time."""
        if not isinstance(part, ast.Name):
            return False
        if self._function.name == "__getitem__" and part.id in self._function.params[1:2]:
            return not self._function.assigned.get(part.id)
        given = self._function.assigned.get(part.id, [])
        return len(given) == 1 and any(
            isinstance(one, LOOPS) and one is given[0].loop.node and _counts(one)
            for one in loops
            if given[0].loop is not None
        )


def _counts(loop: ast.AST) -> bool:
    """Return whether a loop goes through numbers: `for i in range(n)`."""
    values = getattr(loop, "iter", None)
    return (
        isinstance(values, ast.Call)
        and isinstance(values.func, ast.Name)
        and (values.func.id == "range")
    )


def _frame(level: Level, line: int, text: str) -> Frame:
    return Frame(level.frame.file, level.frame.function, line, text)
