"""Finds many small networks of the same form that a module runs one after the other.

A loop over an `nn.ModuleList` of a hundred small networks runs a few tiny operations for each, and
the optimizer has a few tiny parameters for each. `torch.func` runs all networks at once, with
stacked parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import length
from teho.source.parsed import Function
from teho.source.program import Place, Program
from teho.source.slow_calls.loop_parts import loads_of, names_in
from teho.source.stack import Level

__all__ = ["find_networks_in_turn"]

_LIST = "torch.nn.ModuleList"
_STATEFUL = lazy_pattern(r"\b\w*(BatchNorm|InstanceNorm|Dropout|RNN|LSTM|GRU)\w*|register_buffer")
"""Modules that `torch.func` does not run in this way: they have buffers, or draw numbers."""
_TRAINS = frozenset(("backward", "step", "zero_grad"))
_FEWEST = 20
_MOST_SIZE = 256
"""Largest size of a layer that is small: for larger ones, the calls take little of the time."""


class _Networks(NamedTuple):
    """The statement `self.heads = nn.ModuleList(Head(6, 12) for _ in range(300))`."""

    statement: ast.Assign
    made: ast.Call
    items: ast.expr


class _Run(NamedTuple):
    """The loop that runs the networks, and what comes of it."""

    inputs: ast.expr
    outputs: str
    begin: ast.stmt
    """The statement `outputs = []`."""
    loop: ast.For
    stacked: ast.Call
    """`torch.stack(outputs)`."""


class _Module(NamedTuple):
    """A module with many equal networks."""

    name: str
    """Name of the list, such as `heads`."""
    owner: str
    networks: _Networks
    run: _Run


def find_networks_in_turn(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the loop that runs small networks of the same form in turn.

    The stack is in this loop, or in a backward pass or optimizer step of a function that makes the
    module with the networks.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the files of the program.
    """
    for level in levels:
        function, path = level.function, level.frame.file
        if function.owner is not None and function.name == "forward":
            module = _module(function.owner.name, function.module, path, program)
            if module is not None and any(one.node is module.run.loop for one in level.loops()):
                return _found(module, level, path)
        elif _TRAINS & {_method(level.node)}:
            for name in function.module.classes:
                if _makes(name, level, program):
                    module = _module(name, function.module, path, program)
                    if module is not None:
                        return _found(module, level, path)
    return None


def _method(node: ast.AST | None) -> str:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def _makes(name: str, level: Level, program: Program) -> bool:
    """Return whether a function makes an object of a class."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        and isinstance(program.called(node, level.place), ast.ClassDef)
        for node in level.function.nodes
    )


def _module(owner: str, module: Function, path: str, program: Program) -> _Module | None:
    """Return the networks of a class, and the loop that runs them."""
    set_up, forward = (module.inner.get(f"{owner}.{name}") for name in ("__init__", "forward"))
    if set_up is None or forward is None:
        return None
    for loop in forward.loops:
        name = _list_of(loop.node)
        if not isinstance(loop.node, ast.For) or not name:
            continue
        networks = _networks(name, Place(path, set_up), program)
        run = _run(loop.node, Place(path, forward), program)
        if networks is not None and run is not None and _is_used_once(name, module):
            return _Module(name, owner, networks, run)
    return None


def _list_of(loop: ast.AST) -> str:
    """Return the attribute that has the networks of a loop: `heads` of `self.heads`."""
    node = getattr(loop, "iter", None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        node = node.args[0] if node.func.id in ("enumerate", "zip") else None
    match node:
        case ast.Attribute(value=ast.Name("self"), attr=name):
            return name
    return ""


def _networks(name: str, at: Place, program: Program) -> _Networks | None:
    """Return the statement that makes many equal networks; None: they may differ."""
    given = [
        node
        for node in at.function.nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == f"self.{name}"
    ]
    if len(given) != 1 or not isinstance(given[0].value, ast.Call):
        return None
    call = given[0].value
    if program.called(call, at) != _LIST or len(call.args) != 1 or call.keywords:
        return None
    match call.args[0]:
        case (
            ast.GeneratorExp(elt=ast.Call() as made, generators=[each])
            | ast.ListComp(elt=ast.Call() as made, generators=[each])
        ):
            pass
        case _:
            return None
    if each.ifs or names_in(made) & {
        one.id for one in ast.walk(each.target) if isinstance(one, ast.Name)
    }:
        return None
    count = length(each.iter, at.function)
    if count is None or count < _FEWEST or not _is_small(made, at, program):
        return None
    return _Networks(given[0], made, each.iter)


def _is_small(made: ast.Call, at: Place, program: Program) -> bool:
    """Return whether a network has no state but parameters, and no large layers."""
    called = program.called(made, at)
    text = ast.unparse(called if isinstance(called, ast.ClassDef) else made)
    if isinstance(called, str) and called not in ("torch.nn.Linear", "torch.nn.Sequential"):
        return False
    if called is None or isinstance(called, Place) or _STATEFUL.search(text):
        return False
    sizes = [
        length(ast.Call(ast.Name("range", ast.Load()), [one], []), at.function)
        for one in (*made.args, *(word.value for word in made.keywords))
        if not isinstance(one, ast.Call)
    ]
    numbers = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    known = [one for one in (*sizes, *numbers) if isinstance(one, int)]
    return bool(known) and max(known) <= _MOST_SIZE


def _run(loop: ast.For, at: Place, program: Program) -> _Run | None:
    """Return what a loop gives each network, if it only collects the results in a list."""
    match loop:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=one), ast.Name(id=other)]),
            iter=ast.Call(func=ast.Name(id=kind), args=args, keywords=[]),
            body=[
                ast.Expr(
                    value=ast.Call(
                        func=ast.Attribute(ast.Name(id=outputs), "append"),
                        args=[ast.Call(func=ast.Name(id=network), args=[given], keywords=[])],
                    )
                )
            ],
            orelse=[],
        ):
            pass
        case _:
            return None
    inputs: ast.expr | None = None
    if kind == "enumerate" and len(args) == 1 and network == other:
        match given:
            case ast.Subscript(value=ast.Name() as inputs, slice=ast.Name(id=index)):
                inputs = inputs if index == one else None
    elif kind == "zip" and len(args) == 2 and network == one:
        is_item = isinstance(given, ast.Name) and given.id == other
        inputs = args[1] if is_item and isinstance(args[1], ast.Name) else None
    if inputs is None:
        return None
    begin = next(_empty_lists(outputs, at.function), None)
    uses = [node for node in loads_of(outputs, at.function.nodes) if node.lineno > loop.lineno]
    after = [node for node in uses if node.lineno > (loop.end_lineno or 0)]
    stacked = [
        node
        for node in at.function.nodes
        if isinstance(node, ast.Call)
        and program.called(node, at) == "torch.stack"
        and len(node.args) == 1
        and not node.keywords
        and node.args[0] in after
    ]
    is_only = len(after) == 1 and len(stacked) == 1
    return _Run(inputs, outputs, begin, loop, stacked[0]) if begin and is_only else None


def _empty_lists(name: str, function: Function) -> Iterator[ast.stmt]:
    for node in function.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=given)], value=ast.List(elts=[])):
                if given == name:
                    yield node


def _is_used_once(name: str, module: Function) -> bool:
    """Return whether the file names the list only where it is made, and where the loop runs it."""
    nodes = ast.walk(module.node)
    return sum(isinstance(node, ast.Attribute) and node.attr == name for node in nodes) == 2


def _found(module: _Module, level: Level, path: str) -> CostlyOption:
    name, networks, run = module.name, module.networks, module.run
    made, count = ast.unparse(networks.made), ast.unparse(networks.items)
    inputs = ast.unparse(run.inputs)
    return CostlyOption(
        name="networks_in_turn",
        at=Frame(
            path,
            f"{module.owner}.forward",
            run.loop.lineno,
            f"for {ast.unparse(run.loop.target)} in {ast.unparse(run.loop.iter)}",
        ),
        lines=(level.frame,),
        words={
            "file": path.rpartition("/")[2],
            "line": str(networks.statement.lineno),
            "setup": (
                f"each = [{made} for _ in {count}]; "
                "weights, _ = torch.func.stack_module_state(each); "
                f"self.{name} = torch.nn.ParameterDict({{key.replace('.', '_'): value "
                "for key, value in weights.items()}); "
                f"self.one_of_{name} = [each[0].to('meta')]"
            ),
            "first": str(run.loop.lineno),
            "last": str(run.loop.end_lineno),
            "begin": str(run.begin.lineno),
            "run": (
                f"one = self.one_of_{name}[0]; "
                f"weights = {{key: self.{name}[key.replace('.', '_')] "
                "for key, _ in one.named_parameters()}; "
                f"{run.outputs} = torch.func.vmap(lambda weights, x: "
                f"torch.func.functional_call(one, weights, (x,)))(weights, {inputs})"
            ),
            "stacked": ast.unparse(run.stacked),
            "outputs": run.outputs,
        },
    )
