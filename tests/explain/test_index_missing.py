"""Queries for which a table has no index, as a finding."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import own, process, seen, watched
from explain.scenario_parts import figures, found, judged
from explain.scenarios import SCENARIOS
from teho.explain.rules.cpu import index_missing, known_activity
from teho.model.finding import Certainty


def made(in_query_s=60.0, *others, **facts):
    """Return the scenario with another time in the query, and with another query."""
    _, summary = SCENARIOS["queries_without_index"]()
    (main,) = summary.program.mains
    (missing,) = main.process.missing_indexes
    every = [msgspec.structs.replace(missing, **one) for one in (facts, *others)]
    stacks = [seen((one.frame,), in_query_s) for one in every]
    return watched(process(*stacks, progress=(), missing_indexes=tuple(every)))


def test_names_the_table_and_the_index():
    finding = found(index_missing, made())
    assert finding.sentence == (
        "Queries on the table `determinations` took 60 % of the run time, at train.py:60. The "
        "table has no index on `barcode`, so the database reads the whole table in each iteration "
        "of the loop at train.py:55."
    )
    assert (
        "execute once: `CREATE INDEX determinations_barcode ON determinations (barcode)`."
        in finding.action
    )
    assert finding.certainty is Certainty.LIKELY
    assert finding.regain_percent == (pytest.approx(18.0), pytest.approx(58.8))
    assert figures(finding)["table created at"] == "train.py:23"


def test_several_columns_and_many_rows():
    line = own('db.executemany("UPDATE t SET a = ? WHERE b = ? AND c = ?", rows)', 70)
    finding = found(index_missing, made(columns=("b", "c"), table="t", frame=line, loop=line))
    assert "no index on `b` and `c`" in finding.sentence
    assert "reads the whole table for each row of `executemany`." in finding.sentence
    called = found(index_missing, made(loop=own("def of(key)", 9, function="of")))
    assert "reads the whole table in each call of `of`." in called.sentence
    inner = found(index_missing, made(is_inner=True))
    assert "reads the whole table for each row of the outer query." in inner.sentence
    assert finding.action.endswith("`CREATE INDEX t_b_c ON t (b, c)`.")


def test_queries_that_need_the_same_index_are_one_finding():
    again = {"frame": own("db.execute(other)", 64)}
    finding = found(index_missing, made(20.0, again))
    assert "took 40 % of the run time, at train.py:60" in finding.sentence
    other = again | {"columns": ("sheet",)}
    assert len(judged(index_missing, made(20.0, other))) == 2


@pytest.mark.parametrize(("in_query_s", "count"), [(9.9, 0), (10.0, 1)])
def test_only_if_it_takes_enough_time(in_query_s, count):
    assert len(judged(index_missing, made(in_query_s))) == count


def test_the_activity_is_not_named_again():
    run, summary = made()
    (main,) = summary.program.mains
    plain = watched(msgspec.structs.replace(main.process, missing_indexes=()))
    assert judged(known_activity, plain) != []
    assert judged(known_activity, (run, summary)) == []


def test_an_index_of_an_expression():
    finding = found(index_missing, made(columns=("strftime('%Y-%m', at)", "plot"), table="t"))
    assert "no index on `strftime('%Y-%m', at)` and `plot`" in finding.sentence
    assert "An index on the column itself would not help" in finding.sentence
    index = "CREATE INDEX t_strftime_y_m_at_plot ON t (strftime('%Y-%m', at), plot)"
    assert f"execute once: `{index}`." in finding.action
