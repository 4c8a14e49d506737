"""Finds classes whose objects have the same hash, although they are not equal.

A set or dictionary finds an object by its hash, and compares it with `__eq__` to each object that
has the same hash. If `__hash__` is `hash(self.x + self.y)`, all points of a diagonal have the same
hash, and each search compares many of them. The stack shows `__eq__` of the program below a search
in a set or dictionary. The source shows that `__hash__` does not distinguish all objects that
`__eq__` distinguishes. Whether many hashes are the same is only seen in the times.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.changes import named_values
from teho.source.parsed import Function, dotted_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.stack import Level, argument

__all__ = ["find_colliding_hash"]

_SEARCHES = frozenset(
    (
        *("add", "discard", "remove", "get", "setdefault", "pop", "update", "union"),
        *("intersection", "difference", "symmetric_difference", "difference_update"),
        *("intersection_update", "issubset", "issuperset", "isdisjoint"),
    )
)
"""Methods of sets and dictionaries that search for objects."""
_MAKES = frozenset(
    (
        *("set", "frozenset", "dict", "dict.fromkeys", "collections.Counter"),
        *("collections.defaultdict", "collections.OrderedDict"),
    )
)
_TYPES = frozenset(
    ("set", "frozenset", "dict", "Set", "FrozenSet", "Dict", "defaultdict", "Counter", "MutableSet")
)
_HASHABLE = frozenset(
    ("int", "float", "str", "bool", "bytes", "complex", "tuple", "frozenset", "Tuple", "round")
)
"""Types whose objects have a hash, and functions that give such an object."""
_SET_OPERATIONS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
_LONGER = 2
"""If `__eq__` compares at most this many times as many attributes as `__hash__` reads, one call of
the two takes about as long: the times then show how often they are called."""
_DEEPEST = 4


class _Hash(NamedTuple):
    """What `__hash__` of a class computes."""

    line: ast.Return
    reads: frozenset[str]
    """The attributes that it reads."""
    kept: frozenset[str]
    """The attributes of which different values certainly have different hashes: `hash((x, y))`."""
    hashed: frozenset[str]
    """The attributes whose values certainly have a hash."""


def find_colliding_hash(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the line of `__hash__` that gives many objects the same hash; None: there is none.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    if len(levels) < 2:
        return None
    level, before = levels[-1], levels[-2]
    owner = level.function.owner
    if owner is None or level.function.name != "__eq__" or level.caller:
        return None
    if not _searches(levels, len(levels) - 2, purity):
        return None
    compared = _compared(level.function)
    own = level.function.module.inner.get(f"{owner.name}.__hash__")
    given = _hash_of(own) if own is not None else None
    if own is None or given is None or not compared or given.kept.issuperset(compared):
        return None
    if not given.reads.issubset(compared):
        return None  # such as a hash that is computed only once
    if given.reads and len(compared) > _LONGER * len(given.reads):
        return None
    for name in compared:
        # A hash must not change while an object is in a set.
        if not purity.is_constant_attribute(name, level.place):
            return None
        if name not in given.hashed and not _is_hashable(name, owner, level.function.module):
            return None
    attributes = [f"self.{one}" for one in compared]
    new = attributes[0] if len(compared) == 1 else f"({', '.join(attributes)})"
    file = level.file
    return CostlyOption(
        name="hashes_collide",
        at=Frame(level.frame.file, own.name, given.line.lineno, file.text_of(given.line)),
        lines=(before.frame,),
        words={"owner": owner.name, "new": f"return hash({new})"},
    )


def _searches(levels: Sequence[Level], number: int, purity: Purity) -> bool:
    """Return whether a level searches in a set or dictionary."""
    match levels[number].node:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[whole]):
            return _is_hashed(levels, number, whole, purity)
        case ast.Call(func=ast.Attribute(value=whole, attr=method)) if method in _SEARCHES:
            return _is_hashed(levels, number, whole, purity)
        case ast.Subscript(value=whole):
            return _is_hashed(levels, number, whole, purity)
        case ast.Call() as call:
            return _makes(call, levels[number].place, purity)
    return False


def _makes(call: ast.Call, at: Place, purity: Purity) -> bool:
    return purity.program.called(call, at) in _MAKES or dotted_name(call.func) == "dict.fromkeys"


def _is_hashed(
    levels: Sequence[Level], number: int, node: ast.expr, purity: Purity, depth: int = 0
) -> bool:
    """Return whether an expression of a level certainly is a set or dictionary."""
    level = levels[number]
    if depth > _DEEPEST:
        return False
    if isinstance(node, ast.Attribute):
        return _is_hashed_attribute(node, level, purity)
    if not isinstance(node, ast.Name):
        return _is_hashed_value(node, level.place, purity)
    function: Function | None = level.function
    while function is not None and not function.binds(node.id):
        function = function.parent
    if function is None:
        return False
    given = function.assigned.get(node.id, [])
    at = Place(level.place.path, function)
    if node.id not in function.params:
        return bool(given) and all(
            one.value is not None and one.loop is None and _is_hashed_value(one.value, at, purity)
            for one in given
        )
    if given:
        return False
    if _is_hashed_type(_annotation(function, node.id)):
        return True
    passed = argument(levels, number, node.id) if function is level.function else None
    return passed is not None and _is_hashed(levels, number - 1, passed, purity, depth + 1)


def _is_hashed_attribute(node: ast.Attribute, level: Level, purity: Purity) -> bool:
    """Return whether each value that the file gives an attribute is a set or dictionary."""
    values: list[bool] = []
    for function in level.function.module.every():
        at = Place(level.place.path, function)
        for one in function.nodes:
            if isinstance(one, ast.AnnAssign) and _names(one.target, node.attr):
                values.append(_is_hashed_type(one.annotation))
                continue
            values += [
                _is_hashed_value(value, at, purity)
                for target, value in named_values(one)
                if _names(target, node.attr)
            ]
    return bool(values) and all(values)


def _names(target: ast.expr, attribute: str) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == attribute


def _is_hashed_value(value: ast.expr, at: Place, purity: Purity, depth: int = 0) -> bool:
    if depth > _DEEPEST:
        return False
    match value:
        case ast.Set() | ast.SetComp() | ast.Dict() | ast.DictComp():
            return True
        case ast.BinOp(left=left, op=op) if isinstance(op, _SET_OPERATIONS):
            return _is_hashed_value(left, at, purity, depth + 1)
        case ast.IfExp(body=body, orelse=orelse):
            return all(_is_hashed_value(one, at, purity, depth + 1) for one in (body, orelse))
        case ast.Call(func=ast.Attribute(value=whole, attr="copy")):
            return _is_hashed_value(whole, at, purity, depth + 1)
        case ast.Name(id=name):
            given = at.function.assigned.get(name, [])
            return bool(given) and all(
                one.value is not None
                and one.loop is None
                and _is_hashed_value(one.value, at, purity, depth + 1)
                for one in given
            )
        case ast.Call():
            return _makes(value, at, purity)
    return False


def _annotation(function: Function, name: str) -> ast.expr | None:
    if isinstance(function.node, (ast.Module, ast.Lambda)):
        return None
    given = function.node.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    return next((one.annotation for one in every if one.arg == name), None)


def _is_hashed_type(annotation: ast.expr | None) -> bool:
    return _type_name(annotation) in _TYPES


def _type_name(annotation: ast.expr | None) -> str:
    """Return the name of a type: `set` of `typing.Set[int]` is `Set`."""
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return dotted_name(annotation).rpartition(".")[2] if annotation is not None else ""


# ---- what `__eq__` compares ----


def _compared(function: Function) -> tuple[str, ...]:
    """Return the attributes that `__eq__` compares, in their order; empty if it is not clear."""
    if len(function.params) != 2 or not isinstance(function.node, ast.FunctionDef):
        return ()
    _, other = function.params
    found: list[str] = []
    for one in function.node.body:
        match one:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.If(test=test, orelse=[], body=[ast.Return()]) if _is_guard(test, other):
                continue
            case ast.Return(value=ast.expr() as value) if one is function.node.body[-1]:
                parts = [value]
                if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And):
                    parts = value.values
                for part in parts:
                    if _is_guard(part, other):
                        continue
                    names = _pairs(part, other)
                    if not names:
                        return ()
                    found += names
            case _:
                return ()
    return tuple(dict.fromkeys(found))


def _is_guard(test: ast.expr, other: str) -> bool:
    """Return whether a condition only asks whether the other object is of the same class."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_guard(test.operand, other)
    if isinstance(test, ast.Call):
        return dotted_name(test.func) == "isinstance"
    if not isinstance(test, ast.Compare):
        return False
    texts = {ast.unparse(one) for one in (test.left, *test.comparators)}
    classes = {"type(self)", f"type({other})", "self.__class__", f"{other}.__class__"}
    return texts <= classes or texts == {"self", other}


def _pairs(part: ast.expr, other: str) -> list[str]:
    """Return `x` of `self.x == other.x`, and `x, y` of `(self.x, self.y) == (other.x, other.y)`."""
    if not isinstance(part, ast.Compare) or not isinstance(part.ops[0], ast.Eq):
        return []
    if len(part.comparators) != 1:
        return []
    sides: list[list[str]] = []
    for one in (part.left, part.comparators[0]):
        parts = one.elts if isinstance(one, ast.Tuple) else [one]
        sides.append([dotted_name(each) for each in parts])
    roots = [{name.partition(".")[0] for name in side} for side in sides]
    names = [[name.partition(".")[2] for name in side] for side in sides]
    is_same = names[0] == names[1] and all(name and "." not in name for name in names[0])
    return names[0] if is_same and roots in ([{"self"}, {other}], [{other}, {"self"}]) else []


# ---- what `__hash__` distinguishes ----


def _hash_of(function: Function) -> _Hash | None:
    """Return what `__hash__` computes; None: it is not a number made of attributes."""
    body = getattr(function.node, "body", [])
    last = body[-1] if body else None
    begin = body[:-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    if not all(isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in begin):
        return None
    value = last.value
    reads = frozenset(_attributes(value))
    kept = frozenset(_kept(value))
    if not _is_number(value):
        return None
    return _Hash(last, reads, kept, kept | frozenset(_calculated(value)))


def _attributes(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and dotted_name(one) == f"self.{one.attr}":
            yield one.attr


def _kept(value: ast.expr) -> Iterator[str]:
    """Yield the attributes that a hash keeps as they are: `hash((self.x, self.y))`."""
    if isinstance(value, ast.Call) and dotted_name(value.func) == "hash" and len(value.args) == 1:
        (given,) = value.args
        for one in given.elts if isinstance(given, ast.Tuple) else [given]:
            if isinstance(one, ast.Attribute) and dotted_name(one) == f"self.{one.attr}":
                yield one.attr


def _calculated(value: ast.expr) -> Iterator[str]:
    """Yield the attributes with which a hash calculates, or of which it takes the hash."""
    for node in ast.walk(value):
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call) and dotted_name(node.func) == "hash":
            parts = node.args
        for one in parts:
            if isinstance(one, ast.Attribute):
                yield one.attr


def _is_number(value: ast.expr) -> bool:
    """Return whether a hash is only made of attributes of `self`, numbers and their hashes."""
    match value:
        case ast.Constant():
            return isinstance(value.value, (int, str))
        case ast.Attribute():
            return dotted_name(value) == f"self.{value.attr}"
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.Tuple(elts=parts):
            return all(map(_is_number, parts))
        case ast.Call(args=arguments, keywords=[]):
            is_known = dotted_name(value.func) in {"hash", "int", "round", "abs", "len"}
            return is_known and all(map(_is_number, arguments))
    return False


def _is_hashable(name: str, owner: ast.ClassDef, module: Function) -> bool:
    """Return whether the values of an attribute certainly have a hash, as far as the file shows."""
    for one in owner.body:
        if isinstance(one, ast.AnnAssign) and dotted_name(one.target) == name:
            return _type_name(one.annotation) in _HASHABLE
    init = module.inner.get(f"{owner.name}.__init__")
    if init is None:
        return False
    values = [
        value
        for node in init.nodes
        for target, value in _pairs_of(node)
        if dotted_name(target) == f"self.{name}"
    ]
    return bool(values) and all(_has_hash(one, owner, init, module) for one in values)


def _pairs_of(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Return the targets of a statement with their values, also of `self.x, self.y = x, y`."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            return list(zip(targets, values, strict=False))
    return named_values(node)


def _has_hash(value: ast.expr, owner: ast.ClassDef, init: Function, module: Function) -> bool:
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Call):
        return dotted_name(value.func) in _HASHABLE
    if not isinstance(value, ast.Name) or value.id not in init.params:
        return False
    if _type_name(_annotation(init, value.id)) in _HASHABLE:
        return True
    place = init.params_of_call.index(value.id) if value.id in init.params_of_call else -1
    for function in module.every():
        for node in function.nodes:
            if isinstance(node, ast.Call) and dotted_name(node.func) == owner.name:
                given = node.args[place] if 0 <= place < len(node.args) else None
                if given is not None and _is_plain(given):
                    return True
    return False


def _is_plain(node: ast.expr) -> bool:
    """Return whether an argument is a number or a text: `3`, `x + 1`."""
    if isinstance(node, ast.BinOp):
        return any(isinstance(one, ast.Constant) for one in (node.left, node.right))
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str))
