"""The screen of a process: the line in which it is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from teho.model.live import LineNow
from teho.model.stack import Frame as CodeFrame
from teho.model.stack import State
from teho.show.build.top import top_document
from teho.show.top.process import process_view
from teho.show.top.rows import View
from top.frames import WATCHED, frame

SHOWN = frame({"n1": [97.0]})
INNER = CodeFrame("/lib/python3.11/threading.py", "Condition.wait", 327, "waiter.acquire()")
OWN = CodeFrame("/home/ann/train.py", "main", 30, "batch = next(batches)")
LOADS = CodeFrame(
    "/x/site-packages/torch/utils/data/dataloader.py", "_BaseDataLoaderIter.__next__", 701, ""
)


def text_of(view: View) -> str:
    return "\n".join([view.title.plain, *(row.line.plain for row in view.rows)])


def at_line(frames: Sequence[CodeFrame], stayed_s: float = 0.3, *, ended: bool = False) -> str:
    """Return the screen of a process whose main thread waits for a lock in a line."""
    line = LineNow(frames=tuple(frames), state=State.LOCK, stayed_s=stayed_s)
    first = SHOWN.nodes[0]
    processes = tuple(
        msgspec.structs.replace(one, line=line) if one.pid == 4711 else one
        for one in first.processes
    )
    changed = msgspec.structs.replace(first, processes=processes, has_ended=ended)
    return text_of(
        process_view(SHOWN._replace(nodes=(changed, *SHOWN.nodes[1:])), "n1", 4711, WATCHED, 100)
    )


def test_a_process_shows_the_line_in_which_it_is() -> None:
    text = at_line([INNER, OWN], 12.4)
    assert "Line now    train.py:30  batch = next(batches)\n" in text
    does = "waiting for a lock, in Condition.wait (threading.py), in this line for 12.0 s"
    assert f"\n            {does}\n" in text


@pytest.mark.parametrize(
    ("frames", "shown"),
    [
        ([OWN], "train.py:30  batch = next(batches)\n            waiting for a lock\n"),
        ([LOADS, OWN], "            waiting for data, in _BaseDataLoaderIter.__next__ ("),
        ([INNER], "threading.py:327  waiter.acquire()\n            waiting for a lock\n"),
    ],
)
def test_what_a_process_does_in_its_line(frames: Sequence[CodeFrame], shown: str) -> None:
    text = at_line(frames)
    assert shown in text
    assert "in this line for" not in text


def test_the_line_of_a_process_that_has_none() -> None:
    assert "Line now" not in at_line([])  # Python begins or ends
    assert "Line now" not in text_of(process_view(SHOWN, "n1", 4711, WATCHED, 100))
    assert "Last line   train.py:30" in at_line([OWN], ended=True)


def test_a_process_whose_line_is_not_sent_says_why() -> None:
    line = LineNow(frames=(OWN,), state=State.LOCK, stayed_s=1.0)
    first = SHOWN.nodes[0]
    other = msgspec.structs.replace(first.processes[1], line=line)
    changed = msgspec.structs.replace(first, processes=(first.processes[0], other))
    shown = SHOWN._replace(nodes=(changed, *SHOWN.nodes[1:]))
    assert "Line now    not sent: " in text_of(process_view(shown, "n1", 4711, WATCHED, 100))
    # The report comes later than the first samples.
    without = text_of(process_view(shown, "n1", 4712, None, 100))
    assert "Line now    train.py:30" in without
    assert "follow with the next report" in without


def test_the_document_has_the_lines() -> None:
    line = LineNow(frames=(INNER, OWN), state=State.LOCK, stayed_s=1.0)
    first = SHOWN.nodes[0]
    changed = msgspec.structs.replace(first.processes[0], line=line)
    node = msgspec.structs.replace(first, processes=(changed, first.processes[1]))
    (table,) = (
        one for one in top_document(SHOWN.report, [node]).tables if one.key == "processes_now"
    )
    assert [row["line"] for row in table.rows] == ["train.py:30 batch = next(batches)", None]
    (table,) = (
        one for one in top_document(SHOWN.report, [first]).tables if one.key == "processes_now"
    )
    assert "line" not in [column.key for column in table.columns]
