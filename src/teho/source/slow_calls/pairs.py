"""Finds double loops that compare each value with each other value, and only count.

`for a in high: for b in low: wins += a > b` compares all pairs. If one list is sorted, a binary
search finds how many of its values are smaller than a value of the other list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import may_iterate
from teho.source.parsed import Function, Loop, root_name
from teho.source.stack import Level

__all__ = ["find_compared_pairs"]

_LEAST = 100
"""With fewer values in a list, the double loop is fast."""

_LESS, _EQUAL, _GREATER = "less", "equal", "greater"
_RELATIONS: dict[type[ast.cmpop], frozenset[str]] = {
    ast.Lt: frozenset((_LESS,)),
    ast.LtE: frozenset((_LESS, _EQUAL)),
    ast.Gt: frozenset((_GREATER,)),
    ast.GtE: frozenset((_GREATER, _EQUAL)),
    ast.Eq: frozenset((_EQUAL,)),
}
_SWAPPED = {_LESS: _GREATER, _GREATER: _LESS, _EQUAL: _EQUAL}
_COUNTS = {
    (_GREATER,): "below",
    (_EQUAL,): "(at_most - below)",
    (_LESS,): "(len(ordered) - at_most)",
    (_EQUAL, _GREATER): "at_most",
    (_EQUAL, _LESS): "(len(ordered) - below)",
}
"""How the value of the outer loop compares with those of the inner loop -> their number."""


class _Pairs(NamedTuple):
    """A double loop over two lists."""

    outer: Loop
    first: ast.expr
    """The list of the outer loop."""
    name: str
    """The item of the outer loop."""
    second: ast.expr
    """The list of the inner loop."""
    other: str
    """The item of the inner loop."""


class _Count(NamedTuple):
    """A total to which each pair adds a number, if its values compare in one of these ways."""

    total: str
    weight: Union[int, float]
    relations: frozenset[str]


def find_compared_pairs(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the double loop on a stack that only counts how pairs of values compare.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    level = levels[-1]
    for loop in level.function.loops_at(level.frame.line):
        pairs = _pairs(loop)
        if pairs is None or not _is_large(pairs, level.function):
            continue
        node = loop.node
        if isinstance(node, ast.For) and isinstance(node.body[0], ast.For):
            found = _of_statements(pairs, node.body[0], level)
        elif isinstance(node, ast.GeneratorExp):
            found = _of_sum(pairs, node, level)
        else:
            continue
        if found is not None:
            return found
    return None


def _pairs(loop: Loop) -> _Pairs | None:
    match loop.node:
        case ast.For(
            target=ast.Name(id=name),
            iter=first,
            body=[ast.For(target=ast.Name(id=other), iter=second, orelse=[])],
            orelse=[],
        ):
            return _Pairs(loop, first, name, second, other)
        case ast.GeneratorExp(
            generators=[
                ast.comprehension(target=ast.Name(id=name), iter=first, ifs=[]),
                ast.comprehension(target=ast.Name(id=other), iter=second),
            ]
        ) if loop.iterable is first:
            return _Pairs(loop, first, name, second, other)
    return None


def _is_large(pairs: _Pairs, function: Function) -> bool:
    """Return whether the lists may be long, and the second is the same in each iteration."""
    changing = {pairs.name, pairs.other}
    for node in ast.walk(pairs.second):
        match node:
            case ast.Name(id=name) if name in changing:
                return False
            case ast.Call(func=ast.Attribute(attr="tolist"), args=[], keywords=[]):
                pass
            case ast.Call() | ast.NamedExpr() | ast.Await() | ast.Yield() | ast.Lambda():
                return False
    inner = Loop(pairs.outer.node, 0, 0, 0, pairs.second)
    return all(may_iterate(one, function, _LEAST) for one in (pairs.outer, inner))


def _of_statements(pairs: _Pairs, inner: ast.For, level: Level) -> CostlyOption | None:
    counts = list(_counts(inner.body, pairs, frozenset()))
    if not counts or None in counts:
        return None
    sure = [one for one in counts if one is not None]
    if {root_name(pairs.second), root_name(pairs.first)} & {one.total for one in sure}:
        return None
    adds = "; ".join(
        f"{total} += {_sum_of([one for one in sure if one.total == total])}"
        for total in dict.fromkeys(one.total for one in sure)
    )
    return _found("pairs_compared", pairs, level, {"adds": adds, "auc": _auc_words(sure)})


def _of_sum(pairs: _Pairs, generator: ast.GeneratorExp, level: Level) -> CostlyOption | None:
    call = next(
        (
            node
            for node in ast.walk(level.function.node)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and (node.func.id, node.args) == ("sum", [generator])
        ),
        None,
    )
    if call is None:
        return None
    value, ifs = generator.elt, generator.generators[1].ifs
    if isinstance(value, ast.Constant) and len(ifs) == 1:
        weight, test = value.value, ifs[0]
    elif not ifs:
        weight, test = 1, value
    else:
        return None
    relations = _relations(test, pairs)
    if not relations or isinstance(weight, bool) or not isinstance(weight, (int, float)):
        return None
    counts = [_Count("", weight, relations)]
    new = f"sum({_sum_of(counts)} for {pairs.name} in {ast.unparse(pairs.first)})"
    new = new.replace("at_most", f"bisect_right(ordered, {pairs.name})")
    new = new.replace("below", f"bisect_left(ordered, {pairs.name})")
    return _found("pairs_compared_in_sum", pairs, level, {"new": new, "old": ast.unparse(call)})


def _counts(
    body: Sequence[ast.stmt], pairs: _Pairs, before: frozenset[str]
) -> Iterator[_Count | None]:
    """Yield what the statements of the inner loop add; None: a statement does something else.

    Args:
        body: the statements.
        pairs: the loop.
        before: how the values of a pair do not compare if a pair gets here.
    """
    rest = frozenset((_LESS, _EQUAL, _GREATER)) - before
    for statement in body:
        match statement:
            case ast.AugAssign(
                target=ast.Name(id=total),
                op=ast.Add(),
                value=ast.Constant(value=(int() | float()) as weight),
            ) if rest and before:
                yield _Count(total, weight, rest)
            case ast.AugAssign(target=ast.Name(id=total), op=ast.Add(), value=ast.Compare()):
                relations = _relations(statement.value, pairs)
                yield _Count(total, 1, relations & rest) if relations & rest else None
            case ast.If(test=test, body=then, orelse=orelse):
                relations = _relations(test, pairs)
                everything = frozenset((_LESS, _EQUAL, _GREATER))
                if not relations:
                    yield None
                    continue
                yield from _counts(then, pairs, before | (everything - relations))
                yield from _counts(orelse, pairs, before | relations)
            case _:
                yield None


def _relations(test: ast.expr, pairs: _Pairs) -> frozenset[str]:
    """Return how the outer value compares with the inner one if a test is true; empty: unclear."""
    match test:
        case ast.Compare(
            left=ast.Name(id=left), ops=[operator], comparators=[ast.Name(id=right)]
        ) if {left, right} == {pairs.name, pairs.other} and left != right:
            relations = _RELATIONS.get(type(operator), frozenset())
            if left == pairs.other:
                relations = frozenset(_SWAPPED[one] for one in relations)
            return relations
    return frozenset()


def _sum_of(counts: Sequence[_Count]) -> str:
    terms = []
    for one in counts:
        count = _COUNTS[tuple(sorted(one.relations))]
        if one.weight == 1:
            is_alone = len(counts) == 1 and count.startswith("(")
            terms.append(count[1:-1] if is_alone else count)
        else:
            terms.append(f"{one.weight} * {count}")
    return " + ".join(terms)


def _auc_words(counts: Sequence[_Count]) -> str:
    """Return the advice for the area under the ROC curve, which counts ties half."""
    weights = {one.relations: one.weight for one in counts}
    one_side = [frozenset((_GREATER,)), frozenset((_LESS,))]
    half = weights.get(frozenset((_EQUAL,)))
    if half is None or not any(weights.get(side) == 2 * half for side in one_side):
        return ""
    return " For the area under the ROC curve, you can also use `roc_auc_score` of scikit-learn."


def _found(name: str, pairs: _Pairs, level: Level, words: dict[str, str]) -> CostlyOption:
    frame = level.frame
    file = frame.file.rpartition("/")[2]
    inner = pairs.second
    text = f"for {pairs.other} in {ast.unparse(inner)}"
    at = Frame(frame.file, frame.function, inner.lineno, text)
    return CostlyOption(
        name=name,
        at=at,
        lines=(frame,),
        words={
            "item": pairs.name,
            "items": ast.unparse(inner),
            "loop": f"{file}:{pairs.outer.line}",
            "inner": f"{file}:{inner.lineno}",
            **words,
        },
    )
