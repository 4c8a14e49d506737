"""Finds results that a hook of Lightning computes in each step, although an epoch needs only one.

The hook stores the result in an attribute, and the next step overwrites it. Only a hook at the end
of an epoch reads the attribute.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.parsed import Function, dotted_name
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_overwritten_record"]

_LIGHTNING = lazy_pattern(r"/(lightning|pytorch_lightning)/")
_OF_STEPS = frozenset(
    (
        *("training_step", "on_before_zero_grad", "on_before_backward", "on_after_backward"),
        *("on_before_optimizer_step", "on_train_batch_start", "on_train_batch_end"),
    )
)
_OF_EPOCHS = frozenset(
    (
        *("on_train_epoch_end", "on_validation_epoch_start", "on_validation_epoch_end"),
        *("on_train_end", "on_fit_end"),
    )
)
_BEFORE = frozenset(("__init__", "setup", "on_fit_start", "on_train_start", "on_train_epoch_start"))
"""Methods that may make the attribute."""


def find_overwritten_record(levels: Sequence[Level], purity: Purity) -> CostlyOption | None:
    """Return the result on a stack that each step computes, and only the end of an epoch uses.

    Args:
        levels: the program's functions on the stack, the outermost first.
        purity: the program.
    """
    for level in levels:
        function = level.function
        if function.name not in _OF_STEPS or function.owner is None:
            continue
        if level.node is None or not _LIGHTNING.search(level.caller):
            continue
        statement = _statement(level.node, function)
        if statement is None:
            return None
        target = statement.targets[0]
        stored = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(target, ast.Subscript) and not _is_same_in_each_step(target.slice, function):
            return None
        if not dotted_name(stored).startswith("self.") or not isinstance(stored, ast.Attribute):
            return None
        readers = _readers(stored, function)
        calls = [one for one in ast.walk(statement.value) if isinstance(one, ast.Call)]
        if not readers or not all(purity.keeps_all(one, level.place) for one in calls):
            return None
        frame, whole = level.frame, _whole(statement, function)
        text = level.file.text_of(statement.value)
        return CostlyOption(
            name="record_overwritten",
            at=Frame(frame.file, frame.function, statement.lineno, text),
            lines=(frame,),
            words={
                "file": frame.file.rpartition("/")[2],
                "hook": function.name,
                "record": dotted_name(stored),
                "reader": min(readers),
                "trainer": "trainer" if "trainer" in function.params else "self.trainer",
                "lines": _lines(whole),
            },
        )
    return None


def _statement(node: ast.expr, function: Function) -> ast.Assign | None:
    """Return the statement that stores the value of an expression in one place."""
    for one in function.nodes:
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and node in ast.walk(one.value):
            return one
    return None


def _is_same_in_each_step(key: ast.expr, function: Function) -> bool:
    """Return whether the keys are those of the step before, such as the names of parameters."""
    if isinstance(key, ast.Constant):
        return True
    given = function.assigned.get(key.id, []) if isinstance(key, ast.Name) else []
    return bool(given) and all(one.loop is not None for one in given)


def _readers(stored: ast.Attribute, hook: Function) -> set[str]:
    """Return the hooks at the end of an epoch that read an attribute; empty: others may read it."""
    readers: set[str] = set()
    for function in hook.module.every():
        for node in function.nodes:
            if not isinstance(node, ast.Attribute) or node.attr != stored.attr or node is stored:
                continue
            if function.name in _OF_EPOCHS and function.owner is hook.owner:
                if isinstance(node.ctx, ast.Load):
                    readers.add(function.name)
            elif function.name not in _BEFORE or isinstance(node.ctx, ast.Load):
                return set()
    return readers


def _whole(statement: ast.stmt, function: Function) -> ast.stmt:
    """Return the loop around a statement if it does nothing else, or else the statement."""
    for one in function.nodes:
        if not isinstance(one, ast.For):
            continue
        if statement in one.body and all(isinstance(each, ast.Assign) for each in one.body):
            return one
    return statement


def _lines(statement: ast.stmt) -> str:
    """Return the lines of a statement in words."""
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    return f"line {first}" if first == last else f"lines {first} to {last}"
