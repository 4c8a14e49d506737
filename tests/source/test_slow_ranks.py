"""Code that gives each rank one block of neighbouring items, and code that looks like it."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
import os
import torch.distributed as dist
def main(items, begin):
    rank, world = dist.get_rank(), dist.get_world_size()
    size = len(items) // world
    start = rank * size
    mine = {part}
    for one in mine:
        train(one)
"""


@pytest.mark.parametrize(
    ("part", "new"),
    [
        ("items[rank * size:(rank + 1) * size]", "items[rank:size * world:world]"),
        ("items[size * rank:size * rank + size]", "items[rank:size * world:world]"),
        ("items[start:start + size]", "items[rank:size * world:world]"),
        ("np.array_split(items, world)[rank]", "items[rank::world]"),
        # ---- which look like it ----
        ("items[rank::world]", None),
        ("items[rank:size * world:world]", None),
        ("items[begin:begin + size]", None),
        ("items[begin * size:(begin + 1) * size]", None),
        ("np.array_split(items, 8)[rank]", None),
        ("items[:size]", None),
    ],
)
def test_blocks(part, new):
    words = found(SOURCE.format(part=part), "train(one)")
    assert words == ({"block_of_rank": {"new": new, "old": part}} if new else {})
