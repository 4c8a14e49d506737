"""Stacks of small programs, for the searches in the source."""

from __future__ import annotations

import textwrap

from teho.model.stack import Frame
from teho.source.parsed import parsed
from teho.source.program import Program
from teho.source.purity import Purity

PATH = "/home/ada/train.py"
HEAD = """
import functools, random, re, time
import numpy as np
import pandas as pd
import torch
from scipy.linalg import lu_factor, lu_solve
from torch import distributed as dist, nn
"""


def stack_of(source: str, *active: str) -> tuple[list[Frame], Purity]:
    """Return a stack of a program, innermost frame first, and the program.

    Args:
        source: the program, without the usual imports.
        active: the active expression of each function, outermost first. `lib:FILE:FUNCTION` is a
            function of a library, and `lambda:TEXT` an expression of a lambda function. If several
            lines have an expression, the last line counts.
    """
    text = HEAD + textwrap.dedent(source)
    file = parsed(text.encode())
    assert file is not None
    frames = []
    for one in active:
        if one.startswith("lib:"):
            _, path, function = one.split(":")
            frames.append(Frame(f"/lib/python3.11/site-packages/{path}", function, 0, ""))
            continue
        words = one.removeprefix("lambda:")
        *_, line = (number for number, each in enumerate(text.split("\n"), 1) if words in each)
        name = file.function_at(line).name or "<module>"
        name += ".<locals>.<lambda>" * (one != words)
        frames.append(Frame(PATH, name, line, words))
    return frames[::-1], Purity(Program({PATH: file}.get))
