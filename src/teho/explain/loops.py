"""Words for a loop, or for a function that is called again and again.

If the loop is in a library, which calls a function of the program, the first line of this function
stands for the loop.
"""

from __future__ import annotations

from teho.explain.rule import Evidence
from teho.model.stack import Frame

__all__ = ["each_pass", "function_name", "is_function", "loop_evidence"]

_FUNCTION = ("def ", "async def ", "lambda")


def is_function(loop: Frame) -> bool:
    """Return whether a function stands for the loop."""
    return loop.text.startswith(_FUNCTION)


def function_name(loop: Frame) -> str:
    """Return the name of the function as a sentence has it: `` `cost` ``."""
    if loop.text.startswith("lambda"):
        return f"the `lambda` at {loop.short_place}"
    return f"`{loop.function.rpartition('.')[2]}`"


def each_pass(loop: Frame) -> str:
    """Return what follows "each": `` call of `cost` `` or `iteration of the loop at fit.py:12`."""
    if is_function(loop):
        return f"call of {function_name(loop)}"
    return f"iteration of the loop at {loop.short_place}"


def loop_evidence(loop: Frame) -> Evidence:
    """Return the loop or the function with its place, as evidence."""
    label = "function" if is_function(loop) else "loop"
    return Evidence(label, f"{loop.short_place}  {loop.short_text}")
