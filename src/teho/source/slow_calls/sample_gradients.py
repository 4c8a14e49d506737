"""Finds gradients that a loop computes for one sample at a time.

Private training, Fisher information and influence functions need the gradient of each sample. With
a loop, each sample has a forward pass and a backward pass of its own, whose operations are tiny.
`torch.func.vmap(torch.func.grad(f))` computes the gradients of all samples at once.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.parsed import Function, Loop, dotted_name, root_name
from teho.source.program import is_imported
from teho.source.slow_calls.loop_parts import imported_name, names_in
from teho.source.stack import Level, argument

__all__ = ["find_sample_gradients"]

_LEAST_SAMPLES = 4
_DEEPEST = 5
_OTHER_STEPS = frozenset(("step", "create_graph", "retain_graph", "register_hook", "manual_seed"))
"""Words in a loop whose iterations may depend on each other, or that need the graphs later."""
_ZEROES = frozenset(("zero_grad", "zero_"))
_LISTS = (ast.List, ast.Tuple, ast.ListComp, ast.Dict, ast.DictComp, ast.GeneratorExp)
_MAKES_LISTS = frozenset(("list", "tuple", "sorted", "zip", "split", "chunk", "unbind"))
_PARAMETERS = lazy_pattern(r"(?:list|tuple)?\(?([\w.]+)\.parameters\(\)\)?")
_NAMES = ("values", "weights", "values_of_model")
_GRADIENTS = ("all_grads", "grads_of_samples")
_FUNCTIONS = ("loss_of_one", "loss_of_one_sample")


class _Samples(NamedTuple):
    """The samples of a loop."""

    batches: Mapping[str, str]
    """The name of one sample in the new code, and the tensor with all samples."""
    number: str
    """The name of the sample's number; empty if the loop has none."""


def find_sample_gradients(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the loop on a stack that computes the gradient of one sample at a time.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    for number in range(len(levels) - 1, -1, -1):
        level = levels[number]
        for loop in reversed(level.loops()):
            if not isinstance(loop.node, ast.For):
                continue
            if not may_iterate(loop, level.function, _LEAST_SAMPLES):
                continue
            found = _of_loop(loop, levels, number)
            if found is not None:
                return found
    return None


def _of_loop(loop: Loop, levels: Sequence[Level], number: int) -> CostlyOption | None:
    level = levels[number]
    nodes = [inner for one in getattr(loop.node, "body", ()) for inner in ast.walk(one)]
    if any(_word(one) in _OTHER_STEPS for one in nodes):
        return None
    passes = [
        (call, loss)
        for call in nodes
        if isinstance(call, ast.Call) and (loss := _loss(call, level)) is not None
    ]
    if len(passes) != 1:
        return None
    call, loss = passes[0]
    whole = _inlined(loss, loop, level.function)
    model = _model(whole, level.function) if whole is not None else None
    if whole is None or model is None or not _is_of_model(call, model, levels, number, nodes):
        return None
    new = _Renamed(loop, level.function)
    body = new.visit(copy.deepcopy(whole))
    samples = new.samples
    if samples is None or not new.is_whole or not _is_one_sample(model, new):
        return None
    if not all(_is_tensor(one, levels, number) for one in samples.batches.values()):
        return None
    return _found(call, body, samples, loop, level)


def _word(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return (node.arg or "") if isinstance(node, ast.keyword) else ""


def _loss(node: ast.AST, level: Level) -> ast.expr | None:
    """Return the loss of `torch.autograd.grad(loss, …)` or `loss.backward()`."""
    match node:
        case ast.Call(func=ast.Attribute(value=loss, attr="backward"), args=[], keywords=[]):
            return loss
        case ast.Call(func=function, args=[loss, ast.expr()], keywords=[]):
            is_grad = dotted_name(function).endswith(("autograd.grad", "torch.grad"))
            return loss if is_grad and is_imported(root_name(function), level.function) else None
    return None


def _inlined(node: ast.expr, loop: Loop, function: Function) -> ast.expr | None:
    """Return an expression without the names that the loop gives a value; None: not clear."""

    class Inline(ast.NodeTransformer):
        depth = 0
        is_clear = True

        def visit_Name(self, name: ast.Name) -> ast.expr:
            inside = [
                one
                for one in function.assigned.get(name.id, ())
                if loop.first <= one.line <= loop.last and one.loop != loop
            ]
            if not inside:
                return name
            value = inside[0].value
            if len(inside) > 1 or value is None or inside[0].loop or self.depth > _DEEPEST:
                self.is_clear = False
                return name
            self.depth += 1
            result: ast.expr = self.visit(copy.deepcopy(value))
            self.depth -= 1
            return result

    inline = Inline()
    result: ast.expr = inline.visit(copy.deepcopy(node))
    return result if inline.is_clear else None


def _model(loss: ast.expr, function: Function) -> ast.Call | None:
    """Return the only call of a model in a loss: of an object that is no function of a library."""
    calls = [
        one
        for one in ast.walk(loss)
        if isinstance(one, ast.Call)
        and dotted_name(one.func)
        and not is_imported(root_name(one.func), function)
        and one.args
        and not one.keywords
        and (isinstance(one.func, ast.Name) or dotted_name(one.func).startswith("self."))
    ]
    calls = [one for one in calls if not hasattr(builtins, dotted_name(one.func))]
    return calls[0] if len(calls) == 1 else None


def _is_of_model(
    call: ast.Call,
    model: ast.Call,
    levels: Sequence[Level],
    number: int,
    nodes: Sequence[ast.AST],
) -> bool:
    """Return whether the gradients are those of the model's parameters, and are read one by one."""
    name = ast.unparse(model.func)
    if len(call.args) == 2:
        wanted = _resolved(call.args[1], levels, number)
        found = _PARAMETERS.fullmatch(wanted)
        return found is not None and found[1] == _resolved(model.func, levels, number)
    reads = [one for one in nodes if isinstance(one, ast.Attribute) and one.attr == "grad"]
    is_read = any(isinstance(one.ctx, ast.Load) for one in reads)
    if not any(_word(one) in _ZEROES for one in nodes):
        return False  # the gradients of all samples are added
    has_model = any(_PARAMETERS.fullmatch(ast.unparse(one)) for one in nodes if _is_call(one))
    own = any(ast.unparse(one) == f"{name}.parameters()" for one in nodes if _is_call(one))
    return is_read and (own or not has_model)


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


def _resolved(node: ast.expr, levels: Sequence[Level], number: int) -> str:
    """Return an expression as the outermost function has it, as text."""
    for _ in range(_DEEPEST):
        if not isinstance(node, ast.Name):
            break
        function = levels[number].function
        given = function.assigned.get(node.id, ())
        if node.id in function.params and not given:
            outer = argument(levels, number, node.id)
            if outer is None:
                break
            node, number = outer, number - 1
        elif len(given) == 1 and isinstance(given[0].value, ast.expr) and not given[0].loop:
            value = given[0].value
            if not _PARAMETERS.fullmatch(ast.unparse(value)) and not isinstance(value, ast.Name):
                break
            node = value
        else:
            break
    text = ast.unparse(node)
    found = _PARAMETERS.fullmatch(text)
    if found and isinstance(parsed := ast.parse(found[1], mode="eval").body, ast.Name):
        return text.replace(
            f"{found[1]}.parameters", f"{_resolved(parsed, levels, number)}.parameters"
        )
    return text


def _is_tensor(text: str, levels: Sequence[Level], number: int, depth: int = 0) -> bool:
    """Return whether a collection of samples may be a tensor, as far as the source shows it."""
    node, level = ast.parse(text, mode="eval").body, levels[number]
    if not isinstance(node, ast.Name):
        return isinstance(node, (ast.Attribute, ast.Subscript, ast.Call))
    function = level.function
    grows = f"{node.id}.append"
    if any(isinstance(one, ast.Call) and dotted_name(one.func) == grows for one in function.nodes):
        return False
    given = function.assigned.get(node.id, ())
    if not given:
        outer = argument(levels, number, node.id)
        if outer is None or depth >= _DEEPEST:
            return False
        return _is_tensor(ast.unparse(outer), levels, number - 1, depth + 1)
    return not any(
        isinstance(one.value, _LISTS)
        or (isinstance(one.value, ast.Call) and _last_name(one.value) in _MAKES_LISTS)
        for one in given
        if one.loop is None
    )


def _last_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else root_name(call.func)


class _Renamed(ast.NodeTransformer):
    """Gives the parts of one sample names, and lets the model compute with other parameters."""

    def __init__(self, loop: Loop, function: Function) -> None:
        self._function = function
        self.index, self.items = _targets(loop)
        self.batches: dict[str, str] = {}
        self.is_whole = True
        """Whether the code needs the sample's number for nothing else."""

    @property
    def samples(self) -> _Samples | None:
        """The samples."""
        return _Samples(self.batches, self.index) if self.batches else None

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if self.index and isinstance(node.value, (ast.Name, ast.Attribute)):
            part = ast.unparse(node.slice)
            if part in (self.index, f"{self.index}:{self.index} + 1"):
                batch = ast.unparse(node.value)
                name = f"{batch.rpartition('.')[2]}_i"
                self.batches[name] = batch
                return ast.Name(name if part == self.index else f"{name}[None]", ast.Load())
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == self.index:
            self.is_whole = False
        elif node.id in self.items:
            self.batches[node.id] = self.items[node.id]
        return node


def _targets(loop: Loop) -> tuple[str, dict[str, str]]:
    """Return the number of a sample, and the items with the tensors that have them."""
    node = loop.node
    if not isinstance(node, ast.For):
        return "", {}
    index, target, values = "", node.target, node.iter
    match target, values:
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[_]):
            return name, {}
        case ast.Tuple(elts=[ast.Name(id=name), inner]), ast.Call(
            func=ast.Name(id="enumerate"), args=[items]
        ):
            index, target, values = name, inner, items
    match target, values:
        case ast.Tuple(elts=names), ast.Call(func=ast.Name(id="zip"), args=batches) if len(
            names
        ) == len(batches):
            pairs = zip(names, batches, strict=True)
            return index, {
                it.id: ast.unparse(items) for it, items in pairs if isinstance(it, ast.Name)
            }
        case ast.Name(id=name), ast.Name() | ast.Attribute():
            return index, {name: ast.unparse(values)}
    return index, {}


def _is_one_sample(model: ast.Call, new: _Renamed) -> bool:
    """Return whether the model gets a batch with one sample: `x[i : i + 1]`, `x.unsqueeze(0)`."""
    text = ast.unparse(model.args[0])
    if len(model.args) != 1:
        return False
    names = "|".join(map(re.escape, new.items)) or r"(?!)"
    index = re.escape(new.index) or r"(?!)"
    one = rf"(?:{names}|[\w.]+\[{index}\])(?:\[None\]|\.unsqueeze\(0\))"
    return re.fullmatch(rf"[\w.]+\[{index}:{index} \+ 1\]|{one}", text) is not None


def _found(
    call: ast.Call, loss: ast.expr, samples: _Samples, loop: Loop, level: Level
) -> CostlyOption | None:
    model = _model(loss, level.function)
    torch = imported_name("torch", level.function, "torch")
    values, grads, one = (
        next((name for name in names if not level.function.knows(name)), "")
        for names in (_NAMES, _GRADIENTS, _FUNCTIONS)
    )
    if model is None or not (values and grads and one):
        return None
    name = ast.unparse(model.func)
    args = ", ".join(map(ast.unparse, model.args))
    text = ast.unparse(loss).replace(
        ast.unparse(model), f"{torch}.func.functional_call({name}, {values}, ({args},))"
    )
    items = ", ".join(samples.batches)
    axes = ", ".join("0" for _ in samples.batches)
    before = (
        f"`{values} = {{key: p.detach() for key, p in {name}.named_parameters()}}`; "
        f"`def {one}({values}, {items}): return {text}`; "
        f"`{grads} = {torch}.func.vmap({torch}.func.grad({one}), in_dims=(None, {axes}))"
        f"({values}, {', '.join(samples.batches.values())})`"
    )
    statement = next(_statements_with(call, loop), None)
    if statement is None:
        return None
    index, node = samples.number or "i", loop.node
    if not isinstance(node, ast.For):
        return None
    numbered = f"for {index}, {_bracketed(node.target)} in enumerate({ast.unparse(node.iter)}):"
    frame = level.frame
    removed = _only_for_loss(call, loop, level.function)
    new = f"{grads}.values()"
    match statement:
        case ast.Assign(targets=[target]):
            line = f"{ast.unparse(target)} = [g[{index}] for g in {new}]"
        case ast.Expr():
            line = f"for p, g in zip({name}.parameters(), {new}): p.grad = g[{index}]"
        case _:
            return None
    return CostlyOption(
        name="gradients_of_samples",
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "loop": str(loop.line),
            "before": before,
            "line": str(statement.lineno),
            "new": line,
            "removed": f" Remove line {removed}." if removed else "",
            "first": "" if samples.number else f" Write `{numbered}` at line {loop.line}.",
            "grads": grads,
        },
    )


def _only_for_loss(call: ast.Call, loop: Loop, function: Function) -> str:
    """Return the lines of the loop that compute only the loss: `27`, or `27 and 28`."""
    body = getattr(loop.node, "body", ())
    wanted, lines = names_in(call), []
    for one in reversed(body):
        match one:
            case ast.Assign(targets=[ast.Name(id=name)]) if (
                name in wanted and one.value is not call
            ):
                loads = [
                    node
                    for node in function.nodes
                    if isinstance(node, ast.Name)
                    and node.id == name
                    and isinstance(node.ctx, ast.Load)
                ]
                others = [node for node in loads if node not in list(ast.walk(call))]
                if len(loads) - len(others) and all(node.lineno in lines for node in others):
                    lines.append(one.lineno)
                    wanted |= names_in(one.value)
    return " and ".join(map(str, sorted(lines)))


def _bracketed(target: ast.expr) -> str:
    text = ast.unparse(target)
    return f"({text})" if isinstance(target, ast.Tuple) and not text.startswith("(") else text


def _statements_with(call: ast.Call, loop: Loop) -> Iterator[ast.stmt]:
    """Yield the statement of the loop's body that is a call, or gives a name its result."""
    for one in getattr(loop.node, "body", ()):
        if isinstance(one, (ast.Assign, ast.Expr)) and one.value is call:
            yield one
