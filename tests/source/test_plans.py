"""Lazy tables that a loop computes again, and programs that look like it."""

from __future__ import annotations

import textwrap

import pytest

from source.lazy_lookalikes import CLEAN
from source.lazy_programs import FOUND
from teho.model.stack import Frame
from teho.source.parsed import parsed
from teho.source.plans.search import find_plan
from teho.source.program import Program
from teho.source.purity import Purity

FILE = "/home/ada/a.py"
HEAD = """\
import dask
import dask.dataframe as dd
import polars as pl
import time
"""


def plan_of(source, *calls):
    """Search the stack that is in these calls of a program, the outermost first."""
    text = HEAD + textwrap.dedent(source)
    file = parsed(text.encode())
    assert file is not None
    frames = []
    for call in calls:
        (line,) = (
            number
            for number, one in enumerate(text.split("\n"), 1)
            if call in one and "def " not in one
        )
        frames.append(Frame(FILE, file.function_at(line).name or "<module>", line, call))
    inside = Frame("/env/lib/python3.11/site-packages/polars/lazyframe/frame.py", "collect", 9, "")
    return find_plan([inside, *reversed(frames)], Purity(Program({FILE: file}.get)))


@pytest.mark.parametrize("name", FOUND)
def test_a_plan_is_computed_again(name):
    source, calls, expected = FOUND[name]
    plan = plan_of(source, *calls)
    given = (plan.text, plan.loop.text, plan.reads_text) if plan is not None else None
    assert given == expected


@pytest.mark.parametrize("name", CLEAN)
def test_a_plan_that_is_not_computed_again(name):
    source, call = CLEAN[name]
    assert plan_of(source, call) is None


def test_the_plan_has_its_lines():
    source, calls, _ = FOUND["a step of a Parquet file that needs all rows"]
    plan = plan_of(source, *calls)
    assert plan.made.text == "pl.scan_parquet(path)"
    assert plan.kept.text == "table = landings(path, gears)"
    assert not plan.is_inside
    assert plan.library == "polars"
    source, calls, _ = FOUND["made in the loop from the same file"]
    assert plan_of(source, *calls).is_inside
