"""Loops that compute one pair at a time, and loops that look like them."""

from __future__ import annotations

import textwrap
import types

import numpy as np
import pytest

from source.test_slow_calls import found

HEAD = "SIZE, REACH = 60, 24\ndef mask(chain, x, length):\n"
LISTS = """
rows = []
for i in range(SIZE):
    rows.append([{value} for j in range(SIZE)])
return torch.tensor(rows)
"""
NESTED = """
rows = [[{value} for j in range(SIZE)] for i in range(SIZE)]
return {convert}(rows)
"""
ARRAY = """
out = np.zeros((SIZE, SIZE), {type})
for i in range(SIZE):
    for j in range(SIZE):
        {value}
return out
"""
SEVERAL = """
masks = []
for one in chain:
    rows = []
    for i in range(SIZE):
        rows.append([one[i] == one[j] for j in range(SIZE)])
    masks.append(rows)
return torch.tensor(masks)
"""
NEAR = "i == j or (i < length and j < length and chain[i] == chain[j] and abs(i - j) <= REACH)"


def options(body, active):
    source = HEAD + textwrap.indent(body, "    ") + "mask(1, 2, 3)\n"
    return found(source, "mask(1, 2, 3)", active)


FOUND = {
    "a mask of several conditions": (LISTS.format(value=NEAR), NEAR),
    "the conversion": (LISTS.format(value=NEAR), "torch.tensor(rows)"),
    "of several samples": (SEVERAL, "torch.tensor(masks)"),
    "nested": (NESTED.format(value="not x[i] < x[j]", convert="torch.tensor"), "x[i] < x[j]"),
    "distances": (NESTED.format(value="abs(x[i] - x[j])", convert="np.array"), "x[i] - x[j]"),
    "an array": (ARRAY.format(type="bool", value="out[i, j] = x[i] > x[j]"), "x[i] > x[j]"),
    "an array of rows": (ARRAY.format(type="bool", value="out[i][j] = x[i] > x[j]"), "x[i] > x[j]"),
    "a condition": (
        ARRAY.format(type="int", value="if x[i] > x[j] and i != j:\n            out[i, j] = 1"),
        "x[i] > x[j]",
    ),
    "a name for a part": (
        ARRAY.format(type="float", value="gap = x[i] - x[j]\n        out[i, j] = gap * gap"),
        "gap * gap",
    ),
    "two values": (
        ARRAY.format(type="float", value="out[i, j] = 1.5 if chain[i] == chain[j] else -min(i, j)"),
        "chain[i] == chain[j]",
    ),
}


@pytest.mark.parametrize(("body", "active"), FOUND.values(), ids=[*FOUND])
def test_pairs_one_by_one(body, active):
    words = options(body, active)["pairs_one_by_one"]
    assert words["index"] == "i, j = np.arange(SIZE)[:, None], np.arange(SIZE)[None, :]"
    assert ("np.stack(masks)" in words["after"]) == ("masks" in body)


LOOKALIKES = {
    "a value of the pair before": (
        ARRAY.format(type="int", value="out[i, j] = out[i - 1, j] + 1"), "out[i - 1, j] + 1",
    ),
    "one after the other": (
        ARRAY.format(type="int", value="out[i, j] = x[i] + x[j - 1]"), "x[i] + x[j - 1]",
    ),
    "an own function": (
        ARRAY.format(type="float", value="out[i, j] = similarity(x[i], x[j])"),
        "similarity(x[i], x[j])",
    ),
    "only one number": (ARRAY.format(type="int", value="out[i, j] = x[i]"), "x[i]"),
    "few pairs": (
        ARRAY.replace("(SIZE):", "(3):").format(type="int", value="out[i, j] = x[i] - x[j]"),
        "x[i] - x[j]",
    ),
    "half of the pairs": (
        ARRAY.replace("for j in range(SIZE)", "for j in range(i)").format(
            type="int", value="out[i, j] = x[i] - x[j]"
        ),
        "x[i] - x[j]",
    ),
    "a truth that is a number": (
        NESTED.format(value="x[i] and x[j]", convert="np.array"), "x[i] and x[j]",
    ),
    "lists that are lists": (LISTS.format(value=NEAR).replace("torch.tensor(rows)", "rows"), NEAR),
    "numbers of another type": (
        NESTED.format(value="x[i] - x[j]", convert="torch.tensor"), "x[i] - x[j]",
    ),
    "also a sum": (
        ARRAY.format(type="int", value="total += 1\n        out[i, j] = x[i] - x[j]"),
        "x[i] - x[j]",
    ),
    "an own type of array": (
        ARRAY.replace("np.zeros", "table").format(type="int", value="out[i, j] = x[i] - x[j]"),
        "x[i] - x[j]",
    ),
    "compiled": (
        ARRAY.format(type="int", value="out[i, j] = x[i] - x[j]"), "x[i] - x[j]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKALIKES)
def test_loops_that_are_not_for_all_pairs(name, monkeypatch):
    body, active = LOOKALIKES[name]
    if name == "compiled":
        monkeypatch.setattr(f"{__name__}.HEAD", HEAD.replace("def mask", "@numba.njit\ndef mask"))
    assert "pairs_one_by_one" not in options(body, active)


@pytest.mark.parametrize("name", [one for one in FOUND if one != "of several samples"])
def test_the_code_of_the_advice_computes_the_same(name):
    body, active = FOUND[name]
    words = options(body, active)["pairs_one_by_one"]
    rng = np.random.default_rng(5)
    chain, x = [int(one) for one in rng.integers(0, 3, 40)], rng.normal(size=60)
    if "length" not in body:
        chain = [int(one) for one in rng.integers(0, 3, 60)]

    torch = types.SimpleNamespace(tensor=np.array)
    given = {"np": np, "torch": torch, "chain": chain, "x": x, "length": 40}
    given |= {"SIZE": 60, "REACH": 24}
    old = dict(given)
    exec(HEAD + textwrap.indent(body, "    "), old)
    new = dict(given)
    make = body.strip().split("\n")[0] if "np.zeros" in body else ""
    exec("\n".join((make, words["index"], words["new"])), new)
    got = new["out" if "np.zeros" in body else "rows"]
    np.testing.assert_array_equal(old["mask"](chain, x, 40), got)
