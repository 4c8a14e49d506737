"""The document of one frame of `teho top`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from teho.model.document import Table
from teho.model.live import NodeNow
from teho.model.missing import Reason
from teho.show.build.top import top_document
from top.frames import NO_SM, REPORT, detailed, frame, with_processes


@pytest.mark.parametrize(
    ("state", "age_s", "keys"),
    [
        ("running", 1.0, ["gpus_now", "nodes_now", "processes_now"]),
        ("running", 900.0, ["gpus_now", "nodes_now"]),  # a node that does not answer is shown
        ("finished", 1.0, ["gpus_now", "nodes_now", "processes_now"]),  # the last values
        ("finished", 900.0, []),
    ],
)
def test_a_run_that_ended_some_time_ago_has_no_values(state, age_s, keys):
    nodes = frame({"g001": [90.0]}, ages_s={"g001": age_s}).nodes
    report = msgspec.structs.replace(REPORT, state=state)
    shown = top_document(report, nodes)
    assert [table.key for table in shown.tables] == keys
    assert bool(shown.notes) is not bool(keys)


def table_of(nodes: Sequence[NodeNow], key: str) -> Table:
    document = top_document(REPORT, nodes, owner="ann")
    return next(table for table in document.tables if table.key == key)


def test_each_gpu_has_its_p_state_and_the_facts_of_its_driver():
    nodes = detailed(frame({"g001": [90.0, 80.0]}), p_states=[2, NO_SM]).nodes
    first, second = table_of(nodes, "gpus_now").rows
    assert {key: first[key] for key in ("p_state", "driver", "platform", "compute_mode")} == {
        "p_state": "P2", "driver": "550.54.15", "platform": "CUDA 12.4", "compute_mode": "default"
    }  # fmt: skip
    assert second["p_state"] == NO_SM
    assert first["slice_of"] is None


def test_a_fact_that_was_not_recorded_says_why():
    (row,) = table_of(frame({"g001": [90.0]}).nodes, "gpus_now").rows
    for key in ("driver", "platform", "compute_mode", "p_state"):
        assert row[key].reason is Reason.UNRECORDED
        assert row[key].detail


def test_each_process_has_its_user_and_its_types():
    rows = table_of(with_processes(frame({"g001": [90.0] * 4})).nodes, "processes_now").rows
    assert [(row["pid"], row["user"], row["type"], row["gpus"]) for row in rows] == [
        ("12", "ann", "M+C", "0,1"),
        ("11", "other user", "C", "2"),
        ("13", rows[2]["user"], None, None),
    ]
    assert rows[2]["user"].reason is Reason.UNRECORDED


def test_the_text_has_the_first_processes_and_the_document_many():
    (node,) = frame({"g001": [90.0]}).nodes
    one = node.processes[0]
    many = tuple(msgspec.structs.replace(one, pid=pid, cpu_percent=None) for pid in range(1500))
    busy = msgspec.structs.replace(one, pid=4711, cpu_percent=5.0)
    table = table_of([msgspec.structs.replace(node, processes=(*many, busy))], "processes_now")
    assert len(table.rows) == 1000
    assert table.rows[0]["pid"] == "4711"
    assert len(table.shown) == 20
    assert table.rest == "and 1481 more processes"


def test_values_of_the_recording_say_why_some_are_missing():
    (node,) = frame({"g001": [90.0]}).nodes
    assert top_document(REPORT, [node]).notes == ()
    recorded = msgspec.structs.replace(node, way="recording")
    (note,) = top_document(REPORT, [recorded]).notes
    assert "no P-states and no processes" in note
