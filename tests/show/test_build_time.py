"""Where a Python program's time went, as tables."""

from __future__ import annotations

import pytest

from teho.model.watched import Frame, Seen, WatchedProcess
from teho.show.build_time import time_tables


def process(phases: dict[str, float]) -> WatchedProcess:
    frame = Frame("/home/ann/a.py", "f", 3, "g()")
    return WatchedProcess(
        node="n1",
        pid=7,
        python="3.11.7",
        began_s=0.0,
        until_s=10.0,
        stacks=(Seen(frames=(frame,), wall_s=10.0, cpu_s=10.0, held_s=10.0),),
        phases=phases,
    )


def test_phases_add_up_to_all_of_the_time() -> None:
    _, table = time_tables([process({"epoch": 1.0, "epoch/augment": 6.0})])
    assert (table.key, table.title) == ("phases", "Phases")
    assert [(row["phase"], row["wall_s"]) for row in table.rows] == [
        ("epoch/augment", 6.0),
        ("epoch", 1.0),
        ("outside", 3.0),
    ]
    shares = [row["share_percent"] for row in table.rows]
    assert sum(one for one in shares if isinstance(one, float)) == pytest.approx(100)


def test_a_program_without_phases_has_no_table_of_them() -> None:
    assert [table.key for table in time_tables([process({})])] == ["time"]
