"""The outliers of a table, and the rows that are shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teho.explain.policy import load_policy
from teho.explain.shared_thresholds import OUTLIERS
from teho.model.document import Column, Table
from teho.model.missing import Missing, Reason
from teho.show.build.report.ranking import Judged, ranked

LIMITS = load_policy().thresholds[OUTLIERS]


def table(values, unit="%"):
    rows = tuple({"name": f"n{i}", "x": value} for i, value in enumerate(values))
    columns = (Column(key="name", label="Name"), Column(key="x", label="GPU busy", unit=unit))
    return Table(key="t", title="T", columns=columns, rows=rows)


def ranks_of(values, **given):
    return ranked(table(values), "node", [Judged("x", "less busy", "busier")], LIMITS, **given)


def test_the_farthest_comes_first_and_says_why():
    found = ranks_of([90.0, 92.0, 91.0, 12.0, 60.0, 91.0, 90.0])
    assert found.outliers == (3, 4)
    assert [row["stands_out"] for row in found.rows[2:5]] == [None, "less busy", "less busy"]
    assert found.columns[-1].key == "stands_out"
    assert (found.shown, found.rest) == ((), "")


def test_if_all_are_alike_nothing_is_added():
    assert ranks_of([90.0, 92.0, 91.0]) == table([90.0, 92.0, 91.0])


@pytest.mark.parametrize(("count", "folds"), [(16, False), (17, True)])
def test_few_rows_are_all_shown(count, folds):
    found = ranks_of([90.0] * count)
    assert bool(found.shown) is folds
    assert bool(found.rest) is folds


def test_of_many_a_few_represent_all():
    values = [91.0 + i % 3 for i in range(64)]
    values[40], values[7] = 3.0, 20.0
    found = ranks_of(values)
    assert found.shown == (40, 7, 0, 1)
    assert found.rest == "and 60 more similar nodes: GPU busy 91 % to 93 %"
    assert len(found.rows) == 64


def test_too_many_outliers_are_not_called_alike():
    found = ranks_of([90.0] * 40 + [10.0] * 15)
    assert len(found.shown) == 12
    assert found.rest == "and 43 more nodes, of which 3 stand out: GPU busy 10 % to 90 %"


def test_missing_cells_among_the_rest_are_counted():
    missing = Missing(Reason.FAILED)
    found = ranks_of([90.0] * 30 + [missing] * 2)
    assert found.rest == "and 28 more similar nodes: GPU busy 90 % and GPU busy missing in 2 nodes"
    found = ranks_of([missing] * 20)
    assert found.rest == "and 16 more similar nodes: GPU busy missing in 16 nodes"


def test_rows_that_must_come_first_do():
    found = ranks_of([90.0] * 20 + [10.0], first=(5, 3))
    assert found.outliers == (5, 3, 20)
    assert found.rows[5]["stands_out"] is None


@settings(deadline=None)
@given(st.lists(st.none() | st.floats(0, 100), max_size=80))
def test_no_row_is_lost_and_none_comes_twice(values):
    found = ranks_of(values)
    assert [row["x"] for row in found.rows] == values
    for places in (found.outliers, found.shown):
        assert len(set(places)) == len(places)
        assert set(places) <= set(range(len(values)))
    left = re.match(r"and (\d+) more", found.rest)
    assert len(found.shown or values) + (int(left.group(1)) if left else 0) == len(values)
