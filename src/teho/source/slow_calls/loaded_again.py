"""Finds language models and other large models that a function loads for each item of a loop.

`from_pretrained` reads the weights and builds the model. If a function does this for each item,
the computation with the model is only a small part of its time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.counts import may_iterate
from teho.source.parsed import Function, Loop
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.slow_calls.loop_parts import names_in, statements_of
from teho.source.stack import Level, argument

__all__ = ["find_loaded_again"]

_LOADS = lazy_pattern(
    r"(transformers|diffusers|sentence_transformers|peft|open_clip|timm|tokenizers)\.[\w.]*"
    r"(from_pretrained|from_file)|transformers\.pipeline|sentence_transformers\.SentenceTransformer|"
    r"spacy\.load|whisper\.load_model|torch\.(jit\.load|hub\.load)|timm\.create_model|"
    r"(tensorflow\.)?keras\.(models|saving)\.load_model|onnxruntime\.InferenceSession|"
    r"faster_whisper\.WhisperModel|ultralytics\.YOLO"
)
_CHANGES = frozenset(
    (
        *("backward", "step", "train", "fit", "parameters", "named_parameters", "load_state_dict"),
        *("add_tokens", "add_special_tokens", "resize_token_embeddings", "train_on_batch"),
        *("compile", "requires_grad_", "half", "add_adapter", "load_adapter", "merge_and_unload"),
        *("add_pipe", "update", "set_weights", "enable_truncation", "enable_padding"),
        *("save_pretrained", "generate_", "config", "generation_config", "past_key_values"),
    )
)
"""Attributes with which a function changes a model, or may do so."""
_LEAST_ITEMS = 3


def find_loaded_again(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the call on a stack that loads the same model for each item of a loop.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for number, level in enumerate(levels):
        call = level.node
        if not isinstance(call, ast.Call):
            continue
        called = purity.program.called(call, level.place)
        if not isinstance(called, str) or not _LOADS.fullmatch(called):
            continue
        inner = [one for one in level.loops() if one.is_statement]
        if inner:
            return _in_loop(call, inner[-1], level, purity)
        if number == 0:
            return None
        before = levels[number - 1]
        if level.loops() or level.caller or level.function.owner is not None:
            return None
        loop = next(iter(before.loops()), None)
        if loop is None or not may_iterate(loop, before.function, _LEAST_ITEMS):
            return None
        model = _model(call, level.function)
        if model is None or not _stays(model, level.function.nodes, level, purity):
            return None
        names = _arguments(call, level)
        if names is None:
            return None
        given = [_given(levels, number, one) for one in names]
        if any(one is None or _varies(one, loop, before) for one in given):
            return None
        return _found(call, names, level)
    return None


def _model(call: ast.Call, function: Function) -> str | None:
    """Return the name of `model = X.from_pretrained(folder)`, also with `.to(...)` after it."""
    for node in function.nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        value: ast.expr = node.value
        while isinstance(value, ast.Call) and value is not call:
            inner = value.func
            if not isinstance(inner, ast.Attribute) or inner.attr not in ("to", "eval", "cuda"):
                break
            value = inner.value
        target = node.targets[0]
        if value is call and isinstance(target, ast.Name):
            is_once = len(function.assigned.get(target.id, ())) == 1
            return target.id if is_once and function.binds(target.id) else None
    return None


def _stays(model: str, nodes: Sequence[ast.AST], level: Level, purity: Purity) -> bool:
    """Return whether some code only computes with a model, and keeps it nowhere."""
    for node in nodes:
        match node:
            case ast.Attribute(attr=name) if name in _CHANGES:
                return False
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                return False
            case ast.Return(value=ast.Name(id=name)) if name == model:
                return False
            case ast.Return(value=ast.Tuple() as value) if model in names_in(value):
                return False
            case ast.Yield() | ast.YieldFrom() | ast.Global() | ast.Nonlocal():
                return False
            case ast.Assign(value=ast.Name(id=name)) if name == model:
                return False
            case ast.Call(args=args, keywords=words) if any(
                isinstance(one, ast.Name) and one.id == model
                for one in (*args, *(word.value for word in words))
            ):
                inner = purity.program.called(node, level.place)
                if not isinstance(inner, Place) or _may_change(inner.function):
                    return False
    return True


def _in_loop(call: ast.Call, loop: Loop, level: Level, purity: Purity) -> CostlyOption | None:
    """Return a call that loads the same model in each iteration of a loop."""
    body = getattr(loop.node, "body", ())
    model, frame = _model(call, level.function), level.frame
    statement = next(
        (
            one
            for one in statements_of(body)
            if isinstance(one, ast.Assign) and any(node is call for node in ast.walk(one))
        ),
        None,
    )
    nodes = purity.program.all_nodes(loop.node, body)
    if model is None or statement is None or not _stays(model, nodes, level, purity):
        return None
    given = [*call.args, *(word.value for word in call.keywords)]
    is_open = any(isinstance(one, ast.Starred) for one in call.args)
    is_open = is_open or any(word.arg is None for word in call.keywords)
    if is_open or any(_varies(one, loop, level) for one in given):
        return None
    if not may_iterate(loop, level.function, _LEAST_ITEMS):
        return None
    return CostlyOption(
        name="model_loaded_in_loop",
        at=Frame(frame.file, frame.function, call.lineno, level.file.text_of(call)),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "line": str(statement.lineno),
            "loop": str(loop.line),
            "statement": ast.unparse(statement),
        },
    )


def _may_change(function: Function) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _CHANGES)
        or (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
        for node in function.nodes
    )


def _arguments(call: ast.Call, level: Level) -> list[str] | None:
    """Return the parameters of the function with which it loads; None: it is not clear."""
    function = level.function
    given = [*call.args, *(word.value for word in call.keywords)]
    names = {name for one in given for name in names_in(one)}
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if any(word.arg is None for word in call.keywords):
        return None
    own = {name for name in names if function.binds(name)}
    if not own <= set(function.params) or any(function.assigned.get(name) for name in own):
        return None
    is_plain = all(isinstance(one, (ast.Name, ast.Constant, ast.JoinedStr)) for one in given)
    return [name for name in function.params if name in own] if is_plain or not own else None


def _given(levels: Sequence[Level], number: int, name: str) -> ast.expr | None:
    """Return the expression for a parameter, or its default value; None if it is not clear."""
    value, call = argument(levels, number, name), levels[number - 1].node
    if value is not None or not isinstance(call, ast.Call):
        return value
    is_open = any(isinstance(one, ast.Starred) for one in call.args)
    is_open = is_open or any(word.arg is None for word in call.keywords)
    return None if is_open else levels[number].function.default(name)


def _varies(value: ast.expr, loop: Loop, level: Level) -> bool:
    """Return whether an argument may differ between the iterations of a loop."""
    names = set(_targets(loop))
    names |= {
        name
        for name, given in level.function.assigned.items()
        if loop.is_statement and any(loop.line <= one.line <= loop.last for one in given)
    }
    is_plain = isinstance(value, (ast.Name, ast.Constant, ast.Attribute))
    return not is_plain or bool(names_in(value) & names)


def _targets(loop: Loop) -> Iterator[str]:
    node = loop.node
    targets = [one.target for one in getattr(node, "generators", ())]
    if isinstance(node, (ast.For, ast.AsyncFor)):
        targets.append(node.target)
    for target in targets:
        yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def _found(call: ast.Call, names: Sequence[str], level: Level) -> CostlyOption:
    frame, function = level.frame, level.function
    text = level.file.text_of(call)
    made = ast.unparse(call)
    new = "load_once"
    first = min(
        (one.lineno for one in getattr(function.node, "decorator_list", ())),
        default=getattr(function.node, "lineno", 0),
    )
    return CostlyOption(
        name="model_loaded_for_each",
        at=Frame(frame.file, frame.function, call.lineno, text),
        lines=(frame,),
        words={
            "file": frame.file.rpartition("/")[2],
            "define": str(first),
            "function": function.name,
            "new": f"{new}({', '.join(names)})",
            "made": f"@functools.cache\ndef {new}({', '.join(names)}): return {made}",
        },
    )
