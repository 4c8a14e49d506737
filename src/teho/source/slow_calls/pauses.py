"""Finds loops that sleep for a long time between two checks whether a result is there.

An example is `while not os.path.exists(path): time.sleep(1.0)`. If the result is there at once
after a check, the program sleeps for the rest of the pause. Whether the program has slept in vain
is not in the source: the rule `checked_seldom` compares the sleep with the work of the program's
other processes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.counts import number_of
from teho.source.program import Place, Program
from teho.source.stack import Level

__all__ = ["find_pause"]

_CHECKS = frozenset(
    ("exists", "isfile", "is_file", "listdir", "scandir", "glob", "iglob", "iterdir", "getsize",
     "stat", "poll", "is_alive", "ready", "done", "empty", "is_set", "isdir", "is_dir")
)  # fmt: skip
"""Functions and methods that say at once whether a result is there."""
_FILE_CHECKS = frozenset(
    ("listdir", "scandir", "glob", "iglob", "iterdir", "exists", "is_file", "isfile")
)
"""Functions and methods with which a process looks for files that another process writes."""
_LEAST_S = 0.05
"""A shorter pause costs little."""


def find_pause(levels: Sequence[Level], program: Program) -> CostlyOption | None:
    """Return the pause between two checks that the innermost function is in; None: it is none.

    Its name is `checked_seldom` if the loop does nothing else and the pause is long, and
    `tasks_awaited` if the loop looks for files, and works if there are some.

    Args:
        levels: the program's functions on the stack, the outermost first.
        program: the program.
    """
    level = levels[-1]
    call = level.node
    if not isinstance(call, ast.Call) or program.called(call, level.place) != "time.sleep":
        return None
    loops = [one for one in level.loops() if isinstance(one.node, ast.While)]
    pause_s = number_of(call.args[0], level.function) if len(call.args) == 1 else None
    loop = loops[-1].node if loops else None
    if not isinstance(loop, ast.While):
        return None
    frame = level.frame
    at = Frame(frame.file, frame.function, frame.line, level.file.text_of(call))
    check = _check(loop, level.place, program)
    if check is None:
        has_files = any(
            _name_of(one) in _FILE_CHECKS for one in ast.walk(loop) if isinstance(one, ast.Call)
        )
        return CostlyOption(name="tasks_awaited", at=at, lines=(frame,)) if has_files else None
    if pause_s is None or pause_s < _LEAST_S:
        return None
    return CostlyOption(
        name="checked_seldom",
        at=at,
        lines=(frame,),
        words={
            "pause": f"{pause_s:g}",
            "check": level.file.text_of(check),
            "checked_at": Frame(frame.file, "", check.lineno, "").short_place,
        },
    )


def _check(loop: ast.While, at: Place, program: Program) -> ast.Call | None:
    """Return the call that decides whether a loop goes on, if the loop does nothing else."""
    conditions = [loop.test]
    for one in loop.body:
        if isinstance(one, ast.If) and isinstance(one.body[-1], (ast.Break, ast.Return)):
            conditions.append(one.test)
        elif not isinstance(one, ast.Expr) or not _is_sleep(one.value, at, program):
            return None
    return next((call for one in conditions for call in _checks(one)), None)


def _is_sleep(node: ast.expr, at: Place, program: Program) -> bool:
    return isinstance(node, ast.Call) and program.called(node, at) == "time.sleep"


def _checks(condition: ast.expr) -> Iterator[ast.Call]:
    for node in ast.walk(condition):
        if isinstance(node, ast.Call) and _name_of(node) in _CHECKS:
            yield node


def _name_of(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))
