"""What the tables of a report leave out: columns and tables that say nothing."""

from __future__ import annotations

import pytest

from teho.model.document import Cell, Column, Table
from teho.model.missing import Missing, Reason
from teho.show.cells import without_empty

ABSENT = Missing(Reason.ABSENT, "no cgroup")


def table(unit: str, *values: Cell, name: bool = True) -> Table:
    columns = (
        *[Column(key="name", label="Name")] * name,
        Column(key="value", label="Value", unit=unit),
    )
    rows = tuple(
        {"name": f"n{number}", "value": value} if name else {"value": value}
        for number, value in enumerate(values)
    )
    return Table(key="mine", title="Mine", columns=columns, rows=rows)


@pytest.mark.parametrize(
    ("unit", "values"),
    [
        ("bytes", (0, 0.0)),
        ("bytes/s", (0, ABSENT)),
        ("%", (None, ABSENT)),
        ("bytes", (None,)),
    ],
)
def test_figures_that_say_nothing_are_left_out(unit: str, values: tuple[Cell, ...]) -> None:
    # The names of the nodes alone are no table.
    assert without_empty(table(unit, *values)) is None
    assert without_empty(table(unit, *values, name=False)) is None


@pytest.mark.parametrize(
    ("unit", "values"),
    [
        ("%", (0.0, None)),  # a GPU that was never busy
        ("W", (0,)),
        ("", (0,)),  # a number of errors
        ("bytes", (0, 1)),
        ("bytes/s", (ABSENT, 0.5)),
    ],
)
def test_a_zero_that_says_something_stays(unit: str, values: tuple[Cell, ...]) -> None:
    whole = table(unit, *values)
    assert without_empty(whole) is whole


def test_only_the_empty_column_is_left_out() -> None:
    columns = (
        Column(key="name", label="Name"),
        Column(key="read", label="Read", unit="bytes"),
        Column(key="cpu", label="CPU", unit="%"),
    )
    rows = ({"name": "n1", "read": 0, "cpu": 7.0}, {"name": "n2", "read": None, "cpu": ABSENT})
    kept = without_empty(Table(key="mine", title="Mine", columns=columns, rows=rows))
    assert kept is not None
    assert [column.key for column in kept.columns] == ["name", "cpu"]
    assert kept.rows == rows


def test_a_table_of_words_stays() -> None:
    words = table("", "CUDA 12.4", ABSENT)
    assert without_empty(words) is words
