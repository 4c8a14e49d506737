"""Stacks of programs that go on while they are read."""

from __future__ import annotations

import ast
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support import SOAK
from teho.unwind.memory import UnwindError
from teho.unwind.stack import Unwinder
from unwind.programs import (
    LIMIT_S,
    PRELUDE,
    Program,
    closing,
    each_python,
    places_of,
)

LOOKS = 2000 if SOAK else 1000
BUSY = """
class Tree:
    def __init__(self, depth):
        self.below = [Tree(depth - 1), Tree(depth - 1)] if depth else []
    def walk(self):
        yield self
        for one in self.below:
            yield from one.walk()
    @property
    def size(self):
        return 1 + sum(one.size for one in self.below)
    def apply(self, function):
        return function(self, *map(lambda one: one.apply(function), self.below))
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
def count(*many): return len(many)
def leaf(): pass
def leaves():
    for _ in range(200): leaf()
def make():
    def made(n): return made(n - 1) if n else None
    return made
def fail(n):
    if n == 0: raise KeyError
    try: fail(n - 1)
    finally: leaf()
def main():
    while True:
        fibonacci(9)
        even(300)
        leaves()
        tree = Tree(5)
        for one in tree.walk(): leaf()
        tree.size
        tree.apply(count)
        make()(120)
        try: fail(60)
        except KeyError: leaf()
say("ready")
main()
"""


def functions_of(source: str, *, is_qualified: bool) -> dict[str, list[range]]:
    """Return the lines of each function of a program."""
    tree = ast.parse(source)
    found: dict[str, list[range]] = {"<module>": [range(1, len(source.splitlines()) + 2)]}

    def add(node: ast.AST, outside: str) -> None:
        for one in ast.iter_child_nodes(node):
            name, inside = "", outside
            if isinstance(one, ast.FunctionDef):
                name, inside = one.name, f"{outside}{one.name}.<locals>."
            elif isinstance(one, ast.ClassDef):
                name, inside = one.name, f"{outside}{one.name}."
            elif isinstance(one, ast.Lambda):
                name, inside = "<lambda>", f"{outside}<lambda>.<locals>."
            elif isinstance(one, ast.GeneratorExp):
                name, inside = "<genexpr>", f"{outside}<genexpr>.<locals>."
            if name:
                decorators = getattr(one, "decorator_list", [])
                begin = min([one.lineno, *(each.lineno for each in decorators)])  # type: ignore[attr-defined]
                lines = range(begin, one.end_lineno + 1)  # type: ignore[attr-defined]
                found.setdefault(outside + name if is_qualified else name, []).append(lines)
            add(one, inside)

    add(tree, "")
    return found


@pytest.mark.soak
@each_python
def test_a_program_that_calls_fast_and_deep_is_read(
    program: Callable[..., Program], tmp_path: Path, python: str, version: tuple[int, int]
) -> None:
    running = program(BUSY, python=python)
    running.line()
    known = functions_of(PRELUDE + BUSY, is_qualified=version >= (3, 11))
    good, seen, failed = 0, set(), {}
    until = time.monotonic() + (1 if SOAK else 0.5)
    wanted = {"main", "<module>", "fibonacci", "even", "odd"}
    with closing(Unwinder(running.pid, version)) as unwinder:
        for number in itertools.count():
            is_enough = number >= LOOKS and time.monotonic() > until and wanted <= seen
            if is_enough or time.monotonic() > until + LIMIT_S:
                break
            try:
                stack = unwinder.sample()
            except UnwindError as error:
                failed[str(error)] = failed.get(str(error), 0) + 1
                continue
            good += 1
            for file, name, line in places_of(stack):
                assert file == str(tmp_path / "program.py")
                assert name in known
                seen.add(name)
                # From 3.11 on, an instruction without a line has line 0.
                has_none = line == 0 and version >= (3, 11)
                assert has_none or any(line in lines for lines in known[name]), (name, line)
    assert good > sum(failed.values()), failed
    assert wanted <= seen


@pytest.mark.soak
@each_python
def test_the_innermost_place_of_a_busy_program_is_one_of_its_functions(
    program: Callable[..., Program], tmp_path: Path, python: str, version: tuple[int, int]
) -> None:
    running = program(BUSY, python=python)
    running.line()
    known = functions_of(PRELUDE + BUSY, is_qualified=version >= (3, 11))
    good, until = 0, time.monotonic() + LIMIT_S
    with closing(Unwinder(running.pid, version)) as unwinder:
        # On a busy machine, most frames are gone before they are read.
        for number in itertools.count():
            if (number >= LOOKS and good > 100) or time.monotonic() > until:
                break
            try:
                place = unwinder.place_in(unwinder.innermost())
            except UnwindError:
                continue
            if place is not None:
                good += 1
                assert place[0].file == str(tmp_path / "program.py")
                assert place[0].function in known
    assert good > 100


# ---- memory ----
