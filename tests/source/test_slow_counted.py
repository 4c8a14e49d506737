"""Loops that count elements one at a time, and loops that look like them."""

from __future__ import annotations

import numpy as np
import pytest

from source.test_slow_calls import found

LOOP = """
def validate(net, images, masks, count):
    {made}
    guess = net(images).argmax(1)
    truth = torch.from_numpy(masks)
    for {loop}:
        {body}
    return table
"""
MADE = "table = torch.zeros(3, 3)"
TENSORS = "t, p in zip(truth.view(-1), guess.view(-1))"
PLAIN = "a, b in zip(truth, guess)"
PAIRS = "table += torch.bincount({} * table.shape[1] + {}, minlength=table.numel()).view_as(table)"
ARRAYS = "np.asarray(truth, dtype=int)", "np.asarray(guess, dtype=int)"
ARRAY = (
    f"table += np.bincount({ARRAYS[0]} * table.shape[1] + {ARRAYS[1]}, "
    "minlength=table.size).reshape(table.shape)"
)


def counted(made, loop, body, active=None):
    source = LOOP.format(made=made, loop=loop, body=body)
    return found(source, active or body).get("counted_singly")


@pytest.mark.parametrize(
    ("made", "loop", "body", "new"),
    [
        (MADE, TENSORS, "table[t.long(), p.long()] += 1",
         PAIRS.format("truth.view(-1).long()", "guess.view(-1).long()")),
        (MADE, TENSORS, "table[t][p] += 1.0",
         PAIRS.format("truth.view(-1).long()", "guess.view(-1).long()")),
        (MADE, PLAIN, "table[b, a] += 1",
         PAIRS.format("torch.as_tensor(guess).long()", "torch.as_tensor(truth).long()")),
        ("table = np.zeros((3, 3), int)", PLAIN, "table[int(a)][int(b)] += 1", ARRAY),
        ("table = np.zeros((3, 3))", "k in range(len(truth))", "table[truth[k], guess[k]] += 1",
         ARRAY),
        ("table = np.zeros(9)", "one in masks.ravel()", "table[int(one)] += 1",
         "table += np.bincount(np.asarray(masks.ravel(), dtype=int), minlength=table.size)"),
    ],
)  # fmt: skip
def test_counted_elements(made, loop, body, new):
    words = counted(made, loop, body)
    assert (words["new"], words["loop"], words["table"]) == (new, "13", "table")
    assert counted(made, loop, body, loop.partition(" in ")[2]) == words


@pytest.mark.parametrize(
    ("made", "loop", "body"),
    [
        ("table = {}", PLAIN, "table[a, b] += 1"),
        ("table = [[0] * 3 for _ in range(3)]", PLAIN, "table[a][b] += 1"),
        ("table = count", PLAIN, "table[a, b] += 1"),
        (f"{MADE}\n    if count: table = {{}}", PLAIN, "table[a, b] += 1"),
        (MADE, PLAIN, "table[a, b] += count"),
        (MADE, PLAIN, "table[a, b] -= 1"),
        (MADE, PLAIN, "table[a, b] = 1"),
        (MADE, PLAIN, "table[a, count] += 1"),
        (MADE, PLAIN, "table[a, b] += 1; a = next(masks)"),
        (MADE, PLAIN, "table[a, b, 0] += 1"),
        ("table = np.zeros(9)", "one in (0, 1, 2)", "table[int(one)] += 1"),
        (MADE, "a in range(len(truth))", "table[a, guess[count]] += 1"),
        # The item may have two indices, or be an array of them.
        ("table = np.zeros(count)", "one in masks", "table[one] += 1"),
        # An array of numbers in a row needs no counting.
        ("table = np.zeros(9)", "one in range(9)", "table[int(one)] += 1"),
    ],
)
def test_other_loops(made, loop, body):
    assert counted(made, loop, body) is None


def test_an_attribute_that_one_method_makes():
    source = """
class Confusion:
    def __init__(self, count):
        self.table = np.zeros((count, count))
    def update(self, truth, guess):
        for t, p in zip(truth, guess):
            self.table[t, p] += 1
class Votes:
    def __init__(self, count):
        self.table = {}
    def update(self, truth, guess):
        for t, p in zip(truth, guess):
            self.table[p, t] += 1
"""
    assert "counted_singly" in found(source, "self.table[t, p] += 1")
    assert "counted_singly" not in found(source, "self.table[p, t] += 1")


def test_the_code_gives_the_same_counts():
    rng = np.random.default_rng(1)
    truth, guess = rng.integers(0, 3, 200), rng.integers(0, 4, 200).astype(np.uint8)
    counts, table = np.zeros((3, 4), int), np.ones((3, 4), int)
    for t, p in zip(truth, guess, strict=True):
        counts[t, p] += 1
    exec(ARRAY, {"np": np, "table": table, "truth": truth, "guess": guess})
    assert (table == counts + 1).all()
