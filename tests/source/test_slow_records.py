"""Loops over the rows of tables, and loops that NumPy cannot replace."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

CALLS = """
import pyarrow.parquet as pq
def cell_sums(path, scale):
    count = np.zeros((480, 480))
    late = np.zeros(24)
    for call in pq.read_table(path).to_pylist():
        i = min(int(call["north"] * scale), 479)
        j = min(int(call["east"] * scale), 479)
        count[i, j] += call["wait"]
        if call["grade"] <= 2 and call["wait"] > 420.0:
            late[call["second"] // 3600] += 1
    return count, late
"""


def words_of(*changes, active='int(call["north"] * scale)'):
    source = CALLS
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source, active = source.replace(old, new), active.replace(old, new)
    return found(source, active).get("records_one_by_one")


@pytest.mark.parametrize(
    "active", ['int(call["north"] * scale)', "pq.read_table(path).to_pylist()"]
)
def test_the_words(active):
    assert words_of(active=active) == {
        "code": (
            "`table = pq.read_table(path)` and `north, east, wait, grade, second = "
            '(table[c].to_numpy() for c in ("north", "east", "wait", "grade", "second"))`'
        ),
        "new": "np.add.at(count, (i, j), wait)",
        "old": "count[i, j] += call['wait']",
    }


def test_a_column_with_the_name_of_an_array():
    words = words_of('"wait"', '"count"')
    assert words["new"] == "np.add.at(count, (i, j), count_values)"


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        (("pq.read_table(path).to_pylist()", "table.to_dict('records')"), True),
        (("pq.read_table(path).to_pylist()", "table.iter_rows(named=True)"), True),
        (("    for call in pq.read_table(path).to_pylist()",
          "    rows = pq.read_table(path).to_pylist()\n    for call in rows"), True),
        # ---- which look like it ----
        (("pq.read_table(path).to_pylist()", "calls"), False),
        (("pq.read_table(path).to_pylist()", "table.to_dict()"), False),
        (("count[i, j] += call", "count[i, j] = 2 * count[i, j] + call"), False),
        (("count[i, j] += call", "count[i, j] *= call"), False),
        (("count = np.zeros((480, 480))", "count = {}"), False),
        (("count = np.zeros((480, 480))", "count = torch.zeros((480, 480))"), False),
        (("        count[i, j]", "        rows.append(call)\n        count[i, j]"), False),
        (("        count[i, j]", "        if i > j: break\n        count[i, j]"), False),
        (("        i = min(", "        k = j\n        i = min("), False),  # of the row before
        (('call["wait"]\n', 'step(call["wait"])\n'), False),
        (('call["wait"]\n', "call[name]\n"), False),
        (('call["wait"]\n', "call.get('wait')\n"), False),
        (('call["wait"]\n', "total[i, j]\n"), True),
        (('and call["wait"] > 420.0', "and count[i, j] > 420.0"), False),
    ],
)  # fmt: skip
def test_loops(changes, is_found):
    assert bool(words_of(*changes)) is is_found
