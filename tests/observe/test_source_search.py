"""The program's source is searched at the end of a run, once for stacks that are the same."""

from __future__ import annotations

from collections import Counter

import pytest

from teho.model.watched import Frame
from teho.observe.source_search import source_lines

FILE = "/home/ada/train.py"
SOURCE = b"""import numpy as np
def main(matrix):
    for step in range(100):
        result = np.linalg.inv(matrix)
        fit(result)
"""
CALL = Frame(FILE, "main", 4, "np.linalg.inv(matrix)")
START = Frame(FILE, "<module>", 2, "main(matrix)")
INSIDE = Frame("/lib/python3.11/site-packages/numpy/linalg/_linalg.py", "inv", 600, "")


def test_same_stacks_of_ranks_are_searched_once():
    read = []

    def lines_of(pid, path):
        read.append((pid, path))
        return SOURCE.split(b"\n")

    times = {("rank 0", 100): Counter({0: 400, -1: 600}), ("rank 1", 101): Counter({0: 1000})}
    written = list(source_lines(times, [(INSIDE, CALL)], {CALL: 0, INSIDE: 1}, lines_of))
    assert [line["process"] for line in written] == ["rank 0", "rank 1"]
    (one,) = written[0]["repeated"]
    assert one["calls"] == [0]
    assert one["is_same"] is True
    assert written[1]["repeated"] == [one]
    assert read == [(100, FILE)]  # neither again for rank 1, nor the library's file


@pytest.mark.parametrize(("time_ms", "is_searched"), [(4, False), (5, True)])
def test_rare_stacks_are_not_searched(time_ms, is_searched):
    times = {("rank 0", 100): Counter({0: time_ms, 1: 1000 - time_ms})}
    stacks = [(INSIDE, CALL), (START,)]
    written = source_lines(
        times, stacks, {CALL: 0, INSIDE: 1, START: 2}, lambda *_: SOURCE.split(b"\n")
    )
    assert bool(list(written)) is is_searched
