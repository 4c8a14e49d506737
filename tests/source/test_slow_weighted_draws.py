"""Draws from many weights of which few change, and draws that look like them."""

from __future__ import annotations

import numpy as np
import pytest

from source.test_slow_calls import found

SOURCE = """
CAPACITY, BATCH, ALPHA = 90000, 64, 0.6
class Replay:
    def __init__(self, rng):
        self.rng, self.size, self.head = rng, 0, 0
        self.priority = {made}
    def add(self, index, value):
        {add}
    def update(self, index, priority):
        {update}
    def draw(self):
        weight = {weight}
        {between}
        index = {draw}
        {after}
        return index
def main(net, replay):
    {head}
        {body}index = replay.draw()
        replay.update(index, net(index))
"""
PARTS = {
    "made": "np.zeros(CAPACITY)",
    "add": "self.head += 1",
    "update": "self.priority[index] = priority",
    "weight": "self.priority[:self.size] ** ALPHA",
    "between": "pass",
    "draw": "self.rng.choice(self.size, BATCH, p=weight / weight.sum())",
    "after": "pass",
    "head": "for step in range(6000):",
    "body": "",
}


def options(active="", **changes):
    parts = PARTS | changes
    return found(SOURCE.format(**parts), "replay.draw()", active or parts["draw"])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"active": PARTS["weight"]},
        {"add": "self.priority[self.head] = value"},
        {"between": "p = weight / weight.sum()", "draw": "np.random.choice(self.size, 64, p=p)"},
        {"weight": "self.priority"},
    ],
)
def test_draws_from_all_weights(changes):
    words = options(**changes)["drawn_from_all_weights"]
    assert words["array"] == "self.priority"
    assert words["update"].count("After line") == 1 + ("add" in changes)


LOOKALIKES = {
    "all weights change": {"update": "self.priority = priority"},
    "all weights change in place": {"update": "self.priority[:] = priority"},
    "all weights change at once": {"update": "self.priority *= 0.9"},
    "a mask": {"update": "mask = priority > 0\n        self.priority[mask] = 1.0"},
    "as many draws as weights": {"draw": "self.rng.choice(self.size, self.size, p=weight)"},
    "no weights": {"draw": "self.rng.choice(self.size, BATCH)"},
    "not drawn twice": {"draw": "self.rng.choice(self.size, 9, replace=False, p=weight)"},
    "the weights are needed": {"after": "index = weight.max() + index"},
    "weights from elsewhere": {"weight": "net(self.priority)"},
    "drawn once": {"head": "if net:"},
}


@pytest.mark.parametrize("changes", LOOKALIKES.values(), ids=[*LOOKALIKES])
def test_draws_that_need_all_weights(changes):
    assert "drawn_from_all_weights" not in options(**changes)


def test_the_code_of_the_advice_draws_with_the_weights():
    words = options()["drawn_from_all_weights"]

    class Replay:
        priority, size = np.zeros(300), 300
        rng = np.random.default_rng(7)

    names = {"np": np, "self": Replay, "BATCH": 200_000, "ALPHA": 0.6}
    update = words["update"].partition(": ")[2].rstrip(".")
    _run(words["tree"], names)
    Replay.priority[:] = np.arange(300)
    _run(update, names | {"index": np.arange(300)})
    Replay.priority[[5, 8]] = 400.0, 0.0
    _run(update, names | {"index": np.array([5, 8, 5])})
    _run(words["draw"], names)
    drawn = eval(words["new"], names)
    wanted = Replay.priority**0.6 / (Replay.priority**0.6).sum()
    share = np.bincount(drawn, minlength=300) / 200_000
    assert np.abs(share - wanted).max() < 0.001


def _run(lines, names):
    for line in lines.strip("`").split("`; `"):
        exec(line, names)
