"""Finds loops of `DistributedDataParallel` in which each rank trains with all data.

Without a `DistributedSampler`, the data loader of each rank goes through the whole data set. An
epoch then has as many steps as with one process, and all ranks together do the work several times.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.parsed import Loop, dotted_name, root_name
from teho.source.program import Place, Program
from teho.source.slow_calls.loop_parts import imported_name
from teho.source.stack import Level, argument

__all__ = ["find_unshared_data"]

_LOADER = "torch.utils.data.DataLoader"
_SAME_ITEMS = frozenset(("tqdm", "enumerate"))
_OTHER_WAYS = lazy_pattern(
    r"DistributedSampler|sampler\s*=|\.shard\(|split_dataset_by_node|split_between_processes|islice"
    r"|\b(accelerat\w*|[lL]ightning\w*|[dD]eepspeed|horovod|hvd|fabric|Fabric|webdataset|wds|dali)\b"
    r"|IterableDataset|device_mesh|DeviceMesh|parallelize_module|new_group|[pP]ipeline"
    r"|max_steps|total_steps|StopIteration"
)
"""Words of programs that divide the data otherwise, or whose ranks may need the same data."""
_OF_RANK = lazy_pattern(
    r"rank|RANK|world|WORLD|PROCID|shard|[sS]ubset|random_split|split_by|partition|scatter"
)
"""Words of an expression that may give each rank other data."""
_WRAPS = lazy_pattern(r"\b(DistributedDataParallel|DDP)\(")
_DEEPEST = 6


class _Made(NamedTuple):
    """A call that makes a data loader."""

    call: ast.Call
    number: int
    """The number of its level."""
    statement: ast.stmt


def find_unshared_data(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the data loader on a stack that gives each rank all data.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the program.
    """
    for number, level in enumerate(levels):
        for loop in level.loops():
            if not isinstance(loop.node, ast.For) or not _trains(loop):
                continue
            made = _made(loop.node.iter, levels, number, program)
            if made is not None:
                is_same = _wraps_model(levels) and _is_same_data(made, levels, program)
                return _found(made, loop, levels, number) if is_same else None
    return None


def _wraps_model(levels: Sequence[Level]) -> bool:
    """Return whether the files use `DistributedDataParallel`, and divide no data by themselves."""
    text = "\n".join({_text(level) for level in levels})
    return _WRAPS.search(text) is not None and _OTHER_WAYS.search(text) is None


def _text(level: Level) -> str:
    return b"\n".join(level.file.lines).decode("utf-8", "replace")


def _trains(loop: Loop) -> bool:
    """Return whether a loop makes an optimizer step in each iteration, until the data end."""
    body = getattr(loop.node, "body", ())
    nodes = [inner for one in body for inner in ast.walk(one)]
    words = {one.attr for one in nodes if isinstance(one, ast.Attribute)}
    ends = any(isinstance(one, (ast.Break, ast.Return)) for one in nodes)
    return {"backward", "step"} <= words and not ends


def _made(
    node: ast.expr, levels: Sequence[Level], number: int, program: Program, depth: int = 0
) -> _Made | None:
    """Return the call that makes the data loader of a loop; None: it is not clear."""
    if depth > _DEEPEST:
        return None
    function = levels[number].function
    match node:
        case ast.Call(func=func, args=[first, *_]) if (
            dotted_name(func).rpartition(".")[2] in _SAME_ITEMS
        ):
            return _made(first, levels, number, program, depth + 1)
        case ast.Name(id=name):
            given = function.assigned.get(name, ())
            if not given:
                outer = argument(levels, number, name)
                if outer is None or not number:
                    return None
                return _made(outer, levels, number - 1, program, depth + 1)
            value = given[0].value
            if len(given) > 1 or not isinstance(value, ast.Call):
                return None
            if program.called(value, levels[number].place) != _LOADER:
                return None
            statement = next(
                (
                    one
                    for one in function.nodes
                    if isinstance(one, ast.Assign) and one.value is value
                ),
                None,
            )
            return _Made(value, number, statement) if statement is not None else None
    return None


def _is_same_data(made: _Made, levels: Sequence[Level], program: Program) -> bool:
    """Return whether the loader of each rank certainly goes through the same whole data set."""
    words = {word.arg for word in made.call.keywords}
    shuffles = any(
        word.arg == "shuffle" and isinstance(word.value, ast.Constant) and word.value.value is True
        for word in made.call.keywords
    )
    if not shuffles or words & {None, "sampler", "batch_sampler"} or not made.call.args:
        return False  # with `shuffle`, the data set has a length: it does not divide itself
    seen: set[str] = set()
    return all(_parts(made.call.args[0], levels, made.number, program, seen))


def _parts(
    node: ast.AST, levels: Sequence[Level], number: int, program: Program, seen: set[str]
) -> Iterator[bool]:
    """Yield, for all parts of an expression, whether they are the same on each rank."""
    level = levels[number]
    yield not isinstance(node, ast.Attribute)  # who made it is not clear
    yield _OF_RANK.search(ast.unparse(node)) is None
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            called = program.called(one, level.place)
            if isinstance(called, Place):
                yield _OF_RANK.search(ast.unparse(called.function.node)) is None
            elif isinstance(called, ast.ClassDef):
                yield _OF_RANK.search(ast.unparse(called)) is None
        if isinstance(one, ast.Name) and f"{number} {one.id}" not in seen:
            seen.add(f"{number} {one.id}")
            given = level.function.assigned.get(one.id, ())
            for each in given:
                yield each.value is not None
                if each.value is not None:
                    yield from _parts(each.value, levels, number, program, seen)
            if not given and one.id in level.function.params:
                outer = argument(levels, number, one.id)
                yield outer is not None
                if outer is not None:
                    yield from _parts(outer, levels, number - 1, program, seen)


def _found(made: _Made, loop: Loop, levels: Sequence[Level], number: int) -> CostlyOption | None:
    at, inside = levels[made.number], levels[number]
    torch = imported_name("torch", at.function, "torch")
    data = ast.unparse(made.call.args[0])
    kept = [
        ast.keyword(arg=word.arg, value=word.value)
        for word in made.call.keywords
        if word.arg not in ("shuffle", "generator")
    ]
    sampler = next((one for one in ("sampler", "shares") if not at.function.knows(one)), "")
    if not sampler or len(made.call.args) > 2:
        return None
    kept.append(ast.keyword(arg="sampler", value=ast.Name(sampler)))
    new = ast.unparse(ast.Call(func=made.call.func, args=made.call.args, keywords=kept))
    epochs = [
        one
        for one in inside.loops()
        if one.line < loop.line
        and isinstance(one.node, ast.For)
        and isinstance(one.node.target, ast.Name)
    ]
    first = ""
    if epochs and isinstance(epochs[-1].node, ast.For):
        counter = root_name(epochs[-1].node.target)
        loader = ast.unparse(loop.iterable) if loop.iterable is not None else ""
        name = f"{loader}.sampler" if made.number != number else sampler
        if loader.isidentifier() or made.number == number:
            first = (
                f" At the begin of the loop at line {epochs[-1].line}, write "
                f"`{name}.set_epoch({counter})`: each epoch then has another order."
            )
    frame = at.frame
    return CostlyOption(
        name="all_data_on_each_rank",
        at=Frame(frame.file, frame.function, made.call.lineno, at.file.text_of(made.call)),
        lines=(inside.frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "line": str(made.statement.lineno),
            "sampler": f"{sampler} = {torch}.utils.data.DistributedSampler({data}, shuffle=True)",
            "new": new,
            "first": first,
        },
    )
