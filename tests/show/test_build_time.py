"""Tables of a Python program's time."""

from __future__ import annotations

import msgspec
import pytest

from teho.explain.program import program_of
from teho.model.program import Doing
from teho.model.stack import Frame, Seen, State
from teho.model.watched import Progress, WatchedProcess
from teho.show.build.report.time import time_tables
from teho.show.text.table import table_lines


def process(phases: dict[str, float]) -> WatchedProcess:
    frame = Frame("/home/ann/a.py", "f", 3, "g()")
    return WatchedProcess(
        node="n1",
        pid=7,
        python="3.11.7",
        began_s=0.0,
        until_s=10.0,
        stacks=(Seen(frames=(frame,), state=State.PYTHON, samples=200, wall_s=10.0),),
        phases=phases,
    )


def test_phases_add_up_to_all_of_the_time() -> None:
    *_, table = time_tables(program_of([process({"epoch": 1.0, "epoch/augment": 6.0})]), 1)
    assert (table.key, table.title) == ("phases", "Phases")
    assert [(row["phase"], row["wall_s"]) for row in table.rows] == [
        ("epoch/augment", 6.0),
        ("epoch", 1.0),
        ("outside", 3.0),
    ]
    shares = [row["share_percent"] for row in table.rows]
    assert sum(one for one in shares if isinstance(one, float)) == pytest.approx(100)


def test_a_program_without_phases_has_no_table_of_them() -> None:
    assert [table.key for table in time_tables(program_of([process({})]), 1)] == [
        "time",
        "lines",
    ]


def test_what_it_did_is_shown_in_full_on_a_terminal_of_80_columns() -> None:
    table, _ = time_tables(program_of([process({})]), 1)
    rows = tuple({**table.rows[0], "doing": doing.value} for doing in Doing)
    lines = table_lines(msgspec.structs.replace(table, rows=rows), 80)
    text = "\n".join(line.plain for line in lines)
    assert [doing.value for doing in Doing if doing.value not in text] == []


def test_a_process_of_several_is_marked_as_one_of_them() -> None:
    alone, _ = time_tables(program_of([process({})]), 1)
    table, _ = time_tables(program_of([process({})]), 2)
    assert alone.note.startswith("Python 3.11.7, process 7: 200 samples of the main thread")
    assert table.note.startswith("Python 3.11.7, process 7 (one of 2): 200 samples")


def test_each_share_has_its_interval() -> None:
    shared = msgspec.structs.replace(process({}), independent_samples=100.0)
    other = Frame("/home/ann/a.py", "f", 4, "time.sleep(1)")
    rest = Seen(frames=(other,), state=State.SLEEPING, samples=60, wall_s=6.0)
    first = msgspec.structs.replace(shared.stacks[0], wall_s=4.0)
    shared = msgspec.structs.replace(shared, stacks=(rest, first))
    table, lines = time_tables(program_of([shared]), 1)
    assert [(row["doing"], row["interval"]) for row in table.rows] == [
        ("sleeping", "50–69"),
        ("running Python code", "31–50"),
    ]
    assert [(row["line"], row["interval"]) for row in lines.rows] == [
        ("program", ""),
        ("  a.py:4", "50–69"),
        ("  a.py:3", "31–50"),
    ]
    assert {column.decimals for column in table.columns if column.unit == "%"} <= {0, None}


def test_a_process_sampled_by_its_own_thread_has_no_interval_and_says_why() -> None:
    why = "its Python is pypy"
    inside = msgspec.structs.replace(process({}), from_outside=False, why_inside=why)
    table, lines = time_tables(program_of([inside]), 1)
    assert all("interval" not in row for row in table.rows)
    assert all(not row["interval"] for row in lines.rows)
    assert table.note == (
        "Python 3.11.7, process 7, sampled by a thread inside the process: its Python is pypy. "
        "Lines that take less than 5 ms cannot be measured separately: the time of such a line "
        "may be counted for the next line."
    )


def test_what_leads_to_several_sections_is_left_out() -> None:
    main = Frame("/home/ann/a.py", "<module>", 40, "main()")
    own = [Frame("/home/ann/a.py", name, line, "f()") for name, line in (("f", 3), ("evaluate", 9))]
    stacks = tuple(
        Seen(frames=(frame, main), state=State.NATIVE, samples=50, wall_s=5.0) for frame in own
    )
    _, table = time_tables(program_of([msgspec.structs.replace(process({}), stacks=stacks)]), 1)
    assert [row["line"] for row in table.rows] == [
        "program", "  a.py:3", "evaluation", "  a.py:9",
    ]  # fmt: skip


def test_the_table_is_of_who_trains_and_not_of_a_worker_that_is_busier() -> None:
    trainer = process({})
    idle = msgspec.structs.replace(trainer.stacks[0], state=State.SLEEPING)
    steps = Progress(steps=9, first_s=1.0, last_s=9.0)
    trainer = msgspec.structs.replace(trainer, stacks=(idle,), progress=(steps,))
    worker = msgspec.structs.replace(process({}), pid=8, parent_pid=7)
    table, _ = time_tables(program_of([trainer, worker]), 2)
    assert "process 7 (one of 2)" in table.note
