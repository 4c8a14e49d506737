"""Group-bys of pandas with a row for each combination of categories."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

TABLE = """
def monthly(frame, grouped):
    groups = frame.groupby(["road", "species"]{options})
    table = groups.agg(animals=("animals", "sum"))
    {rest}
    return table
"""
PANDAS = "lib:pandas/core/groupby/generic.py:DataFrameGroupBy.aggregate"
AGG = 'groups.agg(animals=("animals", "sum"))'


def names(active=AGG, options=", observed=False", rest="table = table[table['n'] > 0]"):
    return list(found(TABLE.format(options=options, rest=rest), active, PANDAS))


@pytest.mark.parametrize(
    ("options", "rest", "name"),
    [
        (", observed=False", "table = table[table['n'] > 0]", "groups_removed_again"),
        (", observed=False", "table = table.dropna().reset_index()", "groups_removed_again"),
        (", observed=False", "table = table.query('n > 0')", "groups_removed_again"),
        ("", "table = table[table['n'] > 0]", "groups_removed_again"),
        (", observed=False", "pass", "groups_perhaps_not_needed"),
        (", observed=False", "table = table.unstack()", "groups_perhaps_not_needed"),
        (", observed=False", "table = table[table['n'] > 0].unstack()",
         "groups_perhaps_not_needed"),
        # ---- which look like it ----
        (", observed=True", "table = table[table['n'] > 0]", None),
        (", observed=grouped", "table = table[table['n'] > 0]", None),
        (", **grouped", "table = table[table['n'] > 0]", None),
    ],
)  # fmt: skip
def test_the_option_and_what_follows(options, rest, name):
    assert names(options=options, rest=rest) == ([name] if name else [])


@pytest.mark.parametrize(
    ("rest", "active", "is_found"),
    [
        ("table = table[table['n'] > 0]", "table[table['n'] > 0]", True),
        ("rate = table['n'] / 3", "table['n'] / 3", False),  # it is not clear which of the two
        ("rate = table['n'].sum()", "table['n'].sum()", True),
        ("table = table[table['n'] > 0]\n    rate = table['n'].sum()", "table['n'].sum()", False),
        ("rate = grouped['n'].sum()", "grouped['n'].sum()", False),
        ("table = frame.merge(table)", "frame.merge(table)", False),
    ],
)
def test_lines_with_the_whole_table(rest, active, is_found):
    assert bool(names(active=active, rest=rest)) == is_found


@pytest.mark.parametrize(
    ("keys", "is_found"),
    [("['road', 'species']", True), ("KEYS", True), ("'road'", False), ("['road']", False)],
)
def test_several_keys(keys, is_found):
    source = f"def main(table):\n    return table.groupby({keys}, observed=False).size()\n"
    active = f"table.groupby({keys}, observed=False).size()"
    assert bool(found(source, active, PANDAS)) == is_found
