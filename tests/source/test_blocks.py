"""Requests in blocks that wait for their slowest request, and programs that look like it."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.in_turn import find_in_turn

SOURCE = """
import asyncio
import itertools
SIZE, COUNT = 8, 560
async def fetch(port, record):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    return await reader.readline()
async def run(port, records, options):
    results, token = [], None
    {loop}
        {before}
        {gather}
        {after}
    return results
"""
GATHER = "asyncio.gather(*(fetch(port, record) for record in records[i:i + SIZE]))"


def found(loop="for i in range(0, len(records), SIZE):", call=GATHER, **lines):
    gather = lines.get("gather", f"results += await {call}")
    before, after = lines.get("before", "pass"), lines.get("after", "")
    before = "" if before == "pass" else before
    source = SOURCE.format(loop=loop, before=before, gather=gather, after=after)
    stack = stack_of(source, f"await {call}", "lib:<task>:only", "await reader.readline()")
    one = find_in_turn(*stack)
    return one.block if one is not None else None


OUTER = "for i in range(0, len(records), SIZE)"


@pytest.mark.parametrize(
    ("changes", "every"),
    [
        ({}, f"{OUTER} for record in records[i:i + SIZE]"),
        ({"before": "block = records[i : i + SIZE]", "call": GATHER.replace(
            "records[i:i + SIZE]", "block")}, f"{OUTER} for record in records[i:i + SIZE]"),
        ({"loop": "for i in range(0, COUNT, 8):", "before": "block = range(i, min(i + 8, COUNT))",
          "call": "asyncio.gather(*[fetch(port, one) for one in block])"},
         "for i in range(0, COUNT, 8) for one in range(i, min(i + 8, COUNT))"),
        ({"loop": "for block in itertools.batched(records, SIZE):",
          "call": "asyncio.gather(*(fetch(port, one) for one in block if one))"},
         "for block in itertools.batched(records, SIZE) for one in block if one"),
        ({"gather": f"rows = await {GATHER}", "after": "results.extend(rows)"},
         f"{OUTER} for record in records[i:i + SIZE]"),
        ({"gather": f"await {GATHER}"}, f"{OUTER} for record in records[i:i + SIZE]"),
        # ---- which look like it ----
        ({"after": "await asyncio.sleep(1)"}, None),  # the server limits the rate
        ({"before": "time.sleep(1)"}, None),
        ({"after": "await options.limiter.wait()"}, None),
        ({"call": GATHER.replace("port, record)", "token, record)"),
          "after": "token = results[-1]"}, None),  # needs an answer of the block before
        ({"call": GATHER.replace("port, record)", "port, results[-1])")}, None),
        ({"gather": f"rows = await {GATHER}", "after": "if not rows: break"}, None),
        ({"gather": f"rows = await {GATHER}", "after": "np.save(f'{i}.npy', rows)"}, None),
        ({"gather": f"rows = await {GATHER}", "after": "await store(rows)"}, None),
        ({"call": "asyncio.gather(*(fetch(port, record) for record in records))"}, None),
        ({"call": "asyncio.gather(fetch(port, i), fetch(port, i + 1))"}, None),
        ({"loop": "for i in records:",
          "call": "asyncio.gather(*(fetch(port, one) for one in i.parts))"}, None),
        ({"loop": "for i in range(0, len(records), 2 * SIZE):"}, None),
        ({"loop": "for i in range(0, len(records), 1):",
          "call": GATHER.replace("SIZE", "1")}, None),
        ({"loop": "if port:", "before": "i = 0"}, None),
    ],
)  # fmt: skip
def test_blocks(changes, every):
    block = found(**changes)
    assert (block.every if block is not None else None) == every


def test_the_parts_of_the_advice():
    block = found(call=GATHER[:-1] + ", return_exceptions=True)")
    assert block.size == "SIZE"
    assert block.request == "fetch(port, record)"
    assert block.options == ", return_exceptions=True"
