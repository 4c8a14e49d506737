"""The exception at the end of what a program printed."""

from __future__ import annotations

import msgspec
import pytest

from explain.scenario_parts import NodePart, scenario, step, task
from teho.explain.exception import exception_in, last_exceptions
from teho.model.watched import Raised, WatchedProcess
from teho.store.layout import output_file


def process(pid, parent_pid=99, *, raised=None, until_s=100.0, node="a", began_s=0.0):
    end = Raised(text=raised, at=None, at_s=until_s) if raised else None
    return WatchedProcess(
        node=node, pid=pid, parent_pid=parent_pid, python="3.11.7", began_s=began_s,
        until_s=until_s, stacks=(), raised=end,
    )  # fmt: skip


def failed_run():
    run, _ = scenario(NodePart("a"))
    return msgspec.structs.replace(run, end=msgspec.structs.replace(run.end, exit_code=1))


def texts(found):
    return {rank: raised.text for rank, raised in found.items()}


TRACE = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
    ^^^^^^
"""


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("epoch 1\n" + TRACE + "MemoryError\n", "MemoryError"),
        (TRACE + "torch.OutOfMemoryError: CUDA out of memory. Tried\n", None),
        (TRACE + "KeyError: 1\n\nDuring handling of the above exception, another exception "
         "occurred:\n\n" + TRACE + "ValueError: two\n", "ValueError: two"),
        (TRACE + "ValueError: two\n" + "step\n" * 20, "ValueError: two"),
        (TRACE + "ValueError: two\n" + "step\n" * 21, ""),
        ("epoch 1\n", ""),
        ("", ""),
        (TRACE, ""),
        (TRACE + "ValueError: " + "x" * 200, "ValueError: " + "x" * 67 + "…"),
        (TRACE + "ValueError: token=hf_" + "a" * 34, "ValueError: token=•••"),
    ],
)  # fmt: skip
def test_the_last_line_of_the_last_traceback(printed, found):
    expected = "torch.OutOfMemoryError: CUDA out of memory. Tried" if found is None else found
    assert exception_in(printed) == expected


def test_from_what_a_program_printed(tmp_path):
    run = failed_run()
    assert last_exceptions(run, tmp_path, []) == {}
    output_file(tmp_path).write_bytes(b"\xff\n" + TRACE.encode() + b"MemoryError\n")
    assert texts(last_exceptions(run, tmp_path, [])) == {None: "MemoryError"}
    # What its process left is better: it has a place, and does not depend on the output.
    assert texts(last_exceptions(run, tmp_path, [process(1, raised="KeyError: 1")])) == {
        None: "KeyError: 1"
    }
    well = msgspec.structs.replace(run, end=msgspec.structs.replace(run.end, exit_code=0))
    assert last_exceptions(well, tmp_path, [process(1, raised="KeyError: 1")]) == {}


LAUNCHER = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "


@pytest.mark.parametrize(
    ("processes", "found"),
    [
        # Its own, also if a child failed before.
        ([process(1, raised="A"), process(2, 1, raised="B", until_s=90.0)], "A"),
        # A launcher's says nothing: the first of those below.
        ([process(1, raised=LAUNCHER), process(2, 1, raised="B", until_s=99.0),
          process(3, 1, raised="C", until_s=98.0)], "C"),
        ([process(1), process(2, 1, raised="B", until_s=99.0)], "B"),
        # It went on for long after that.
        ([process(1), process(2, 1, raised="B", until_s=69.0)], None),
        ([process(1, raised=LAUNCHER)], LAUNCHER),
        # A script's programs, one after the other.
        ([process(1, raised="A", until_s=50.0), process(2, 7, until_s=100.0)], None),
        ([process(1, until_s=50.0), process(2, 7, raised="B")], "B"),
        ([process(1), process(2, 1, raised="B", node="b")], None),
    ],
)  # fmt: skip
def test_the_process_whose_exception_ended_the_program(tmp_path, processes, found):
    expected = {None: found} if found else {}
    assert texts(last_exceptions(failed_run(), tmp_path, processes)) == expected


def test_each_rank_s_own(tmp_path):
    tasks = [task(0, "a", after_s=60.0, exit_code=1), task(1, "b", after_s=60.0, exit_code=1),
             task(2, "b", after_s=60.0)]  # fmt: skip
    tasks = [msgspec.structs.replace(one, pid=10 + one.rank) for one in tasks]
    run, _ = scenario(NodePart("a"), NodePart("b"), step=step(3, "a", "b"), tasks=tasks)
    processes = [
        process(10, raised="A"),
        process(11, raised="of another node"),
        # Bash is the task, Python its child's child.
        process(21, 11, node="b"),
        process(22, 21, raised="B", node="b", began_s=1.0),
        process(12, raised="of one that ended well", node="b"),
    ]
    assert texts(last_exceptions(run, tmp_path, processes)) == {0: "A", 1: "B"}
