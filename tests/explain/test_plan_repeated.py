"""A lazy table that a loop computes again, as a finding."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import of_library, own, process, seen, watched
from explain.scenario_parts import figures, found, judged
from explain.scenarios import SCENARIOS
from teho.explain.rules.cpu import known_activity, plan_repeated
from teho.model.finding import Certainty
from teho.model.stack import Frame, State

COLLECT = of_library("polars/lazyframe/frame.py", "LazyFrame.collect")
THREAD = Frame("<thread>", "", 0, "")
ROWS = of_library("polars/expr/expr.py", "Expr.map_elements")


def made(*stacks, **facts):
    """Return the scenario with other stacks, and with another plan."""
    _, summary = SCENARIOS["reads_a_lazy_table_again"]()
    (main,) = summary.program.mains
    (plan,) = main.process.repeated_plans
    plan = msgspec.structs.replace(plan, **facts)
    frames = main.process.stacks[0].frames
    given = stacks or [seen(frames[:-1], 79.0)]
    return watched(process(*given, progress=(), repeated_plans=(plan,)))


def call():
    return (
        SCENARIOS["reads_a_lazy_table_again"]()[1].program.mains[0].process.repeated_plans[0].call
    )


def test_names_the_call_the_loop_and_the_line_to_add():
    finding = found(plan_repeated, made())
    assert finding.sentence == (
        "The lazy table `records` took 79 % of the run time, at train.py:44: each iteration of the "
        "loop at train.py:43 reads and parses its whole file again."
    )
    assert finding.action.startswith(
        "Keep the rows of the table: add the line `records = records.collect().lazy()` after the "
        "assignment at train.py:41."
    )
    assert finding.certainty is Certainty.SURE
    assert finding.regain_percent == (pytest.approx(23.7), pytest.approx(75.05))
    assert figures(finding)["lazy table"] == "train.py:41  records = pl.scan_csv(path)"


def test_other_plans():
    steps = found(plan_repeated, made(reads_text=False, periods=2))
    assert "computes all its steps again" in steps.sentence
    assert steps.certainty is Certainty.LIKELY
    argument = found(plan_repeated, made(kept=None))
    assert "`records = records.collect().lazy()` before the loop at train.py:43" in argument.action
    inside = found(plan_repeated, made(is_inside=True, kept=None, text="pl.scan_csv(path)"))
    assert inside.action.startswith(
        "Compute `pl.scan_csv(path).collect().lazy()` once, before the loop at train.py:43."
    )
    dask = found(plan_repeated, made(library="dask"))
    assert "`records = records.persist()`" in dask.action
    assert "dask.compute(*results)" in dask.action
    duckdb = found(plan_repeated, made(library="duckdb"))
    assert "execute `records.to_table('rows')` once, after the assignment" in duckdb.action
    assert "use `con.table('rows')` instead of `records`" in duckdb.action
    function = found(plan_repeated, made(loop=own("def cost(weights)", 40, function="cost")))
    assert "each call of `cost` reads" in function.sentence


def test_the_functions_of_the_program_that_the_library_calls_do_not_count():
    function = seen((own("math.exp(x)", 28), ROWS, THREAD, COLLECT, call()), 50.0, State.THREADS)
    given = made(function, seen((COLLECT, call()), 20.0))
    assert "took 20 % of the run time" in found(plan_repeated, given).sentence
    assert judged(known_activity, given) != []  # the function for each row


@pytest.mark.parametrize(("wall_s", "count"), [(9.9, 0), (10.0, 1)])
def test_only_if_it_takes_enough_time(wall_s, count):
    assert len(judged(plan_repeated, made(seen((COLLECT, call()), wall_s)))) == count


@pytest.mark.parametrize(
    ("file", "function"), [("pandas/io/parsers/readers.py", "read_csv"), ("duckdb/a.py", "df")]
)
def test_reading_the_table_is_not_named_again(file, function):
    parse = of_library(file, function)
    given = made(seen((parse, call()), 79.0))
    _, summary = given
    (main,) = summary.program.mains
    plain = watched(msgspec.structs.replace(main.process, repeated_plans=()))
    assert judged(known_activity, given) == []
    assert judged(known_activity, plain) != []
