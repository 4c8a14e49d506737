"""The document of one frame of `teho top`."""

from __future__ import annotations

import msgspec
import pytest

from teho.show.build.top import top_document
from top.frames import REPORT, frame


@pytest.mark.parametrize(
    ("state", "age_s", "keys"),
    [
        ("running", 1.0, ["gpus_now", "nodes_now"]),
        ("running", 900.0, ["gpus_now", "nodes_now"]),  # a node that does not answer is shown
        ("finished", 1.0, ["gpus_now", "nodes_now"]),  # the last values
        ("finished", 900.0, []),
    ],
)
def test_a_run_that_ended_some_time_ago_has_no_values(state, age_s, keys):
    nodes = frame({"g001": [90.0]}, ages_s={"g001": age_s}).nodes
    report = msgspec.structs.replace(REPORT, state=state)
    shown = top_document(report, nodes)
    assert [table.key for table in shown.tables] == keys
    assert bool(shown.notes) is not bool(keys)
