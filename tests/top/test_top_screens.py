"""Screens: the first line, the way of the values, cells of other devices, and the help."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from teho.model.document import Fact
from teho.model.missing import Missing, Reason
from teho.show.build.top import top_document
from teho.show.top.head import head, run_facts
from teho.show.top.help import TERMS, help_view
from teho.show.top.job import JobLines
from teho.show.top.node import node_view
from teho.show.top.rows import View, ways
from top.frames import NO_SM, REPORT, frame

SHOWN = frame({"n1": [97.0, 96.0, 2.0, None]})


def text_of(view: View) -> str:
    return "\n".join([view.title.plain, *(row.line.plain for row in view.rows)])


def test_what_is_wrong_now_is_the_first_line_and_the_verdict_follows() -> None:
    shown = SHOWN._replace(alert="GPU 3 on g2 has been idle for 4 min.")
    now, verdict, facts = (line.plain for line in head(shown, 100))
    assert now == "! GPU 3 on g2 has been idle for 4 min."
    assert verdict == "✓ The GPUs were busy 90 % of the time."
    assert facts.startswith("running")
    (line,) = head(shown, 100, 1)
    assert line.plain == now
    assert shown.headed.verdict == f"{now[2:]} {verdict[2:]}"  # as text and as JSON
    assert SHOWN.headed.verdict == SHOWN.report.verdict
    long = msgspec.structs.replace(REPORT, verdict="GPU 3 on g1 was never used. " * 5)
    lines = [line.plain for line in head(shown._replace(report=long), 40)]
    assert len(lines) == 3
    assert lines[1].endswith("…")


def test_the_time_until_the_limit_is_a_fact_of_the_document() -> None:
    (left,) = SHOWN.headed.facts
    assert (left.key, left.value, left.unit) == ("until_limit_s", 3500.0, "s")
    assert SHOWN._replace(limit_s=None).headed is SHOWN.report
    ended = msgspec.structs.replace(REPORT, state="finished")
    assert SHOWN._replace(report=ended).headed is ended
    over = SHOWN._replace(limit_s=50.0).headed.facts
    assert [fact.value for fact in over] == [0.0]


def test_the_facts_fill_the_lines_that_the_verdict_leaves() -> None:
    cost = Fact("cost", "Cost", 12.0, "units")
    report = msgspec.structs.replace(REPORT, facts=(cost,))
    lines = [line.plain for line in head(SHOWN._replace(report=report), 80)]
    assert lines == [
        "✓ The GPUs were busy 90 % of the time.",
        "running · 1 min 40 s · 58 min 20 s until the time limit · cost 12 units ·",
        "  values by connection",
    ]
    alarmed = SHOWN._replace(report=report, alert="GPU 3 on g2 has been idle for 4 min.")
    *_, last = (line.plain for line in head(alarmed, 80))
    assert last.endswith("cost 12 units · value…")
    assert len(head(alarmed, 80)) == 3


JOB = msgspec.structs.replace(
    REPORT,
    facts=(
        Fact("job_id", "Job", "4711"),
        Fact("steps_per_s", "Pace", 26.2, "steps/s", "over 12,000 steps"),
        Fact("steps_per_s_now", "Pace of the last minute", 29.3, "steps/s", "+12 %"),
        Fact("left_s", "Expected time left", 11_520.0, "s", "45 % done, from tqdm"),
        Fact("cost", "Cost", 3.2, "BU", "16 BU an hour"),
        Fact("cost_left", "Cost from now until the time limit", 12.8, "BU"),
        Fact("cost_unused", "Not used", 1.1, "BU", "the cost of the time of idle GPUs"),
        Fact("gpu_energy_j", "GPU energy", 4.32e6, "J", "± 0.1 %"),
    ),
)
IN_THE_HEAD = (
    "running", "1 min 40 s", "58 min 20 s until the time limit", "expected end in 3 h 12 min",
    "pace 26.2 steps/s", "now 29.3 steps/s (+12 %)", "cost 3.20 BU",
    "12.8 BU more until the limit", "1.10 BU not used", "GPU energy 1.20 kWh",
    "values by connection", "job 4711",
)  # fmt: skip


@pytest.mark.parametrize(("width", "height"), [(80, 5), (100, 4), (120, 4)])
def test_the_facts_of_a_job_have_room(width: int, height: int) -> None:
    text = "\n".join(line.plain for line in head(SHOWN._replace(report=JOB), width, height))
    assert "…" not in text
    assert [fact for fact in IN_THE_HEAD if fact not in text] == []


def test_the_help_has_the_facts_for_which_the_head_has_no_room() -> None:
    shown = SHOWN._replace(report=JOB, notes=("2 nodes have no recorder",))
    text = text_of(help_view(100, ["gpu_busy_percent"], run_facts(shown)))
    assert text.index("Selected") < text.index("Keys") < text.index("This run")
    for line in (
        "State                        running",
        "Until the time limit         58 min 20 s",
        "Expected time left           3 h 12 min (45 % done, from tqdm)",
        "Pace                         26.2 steps/s (over 12,000 steps)",
        "Pace of the last minute      29.3 steps/s (+12 %)",
        "Cost                         3.20 BU (16 BU an hour)",
        "Not used                     1.10 BU (the cost of the time of idle GPUs)",
        "GPU energy                   1.20 kWh (± 0.1 %)",
        "Job                          4711",
        "Values                       by connection",
        "Note                         2 nodes have no recorder",
    ):
        assert line in text.splitlines()
    why = Missing(Reason.UNRECORDED, "the program does not say how many steps it makes")
    unknown = msgspec.structs.replace(
        REPORT, facts=(Fact("left_s", "Expected time left", why, "s", aside=True),)
    )
    lines = text_of(help_view(100, (), run_facts(SHOWN._replace(report=unknown)))).splitlines()
    (line,) = (one for one in lines if one.startswith("Expected time left"))
    assert line.endswith("not known: the program does not say how many steps it makes")


def test_the_way_of_the_values_is_named() -> None:
    nodes = frame({"n1": [1.0], "n2": [1.0], "n3": [1.0]}, missing=["n4"]).nodes
    assert ways(nodes) == "values by connection"
    mixed = [
        msgspec.structs.replace(node, way=way)
        for node, way in zip(nodes, ("connection", "file", "recording"), strict=False)
    ]
    assert ways(mixed) == "values: 1 by connection, 1 from files, 1 from the recording"
    assert ways(mixed[1:2]) == "values from files"
    assert ways(nodes[3:]) == ""
    document = top_document(REPORT, (*mixed, nodes[3]))
    (table,) = (table for table in document.tables if table.key == "nodes_now")
    found = [row["way"] for row in table.rows]
    assert found[:3] == ["connection", "file", "recording"]
    assert not isinstance(found[3], str)


def test_a_node_that_the_recording_does_not_have_says_why() -> None:
    (_, node) = frame({"n1": [1.0]}, missing=["n2"]).nodes
    absent = msgspec.structs.replace(node, is_recorded=False)
    (row,) = JobLines().view([absent], 100).rows
    assert row.line.plain == "n2    has no recorder yet, or no access to this recording"
    (table,) = (one for one in top_document(REPORT, [absent]).tables if one.key == "nodes_now")
    why = table.rows[0]["cpu"]
    assert isinstance(why, Missing)
    assert "no access to this recording" in why.detail


def test_cells_of_cores_if_there_are_no_gpus() -> None:
    shown = frame({"n1": []})
    title, line = text_of(JobLines().view(shown.nodes, 80)).splitlines()
    assert re.split(" {2,}", title) == [
        "NODE", "CORES, ×10 %", "CORES", "MEMORY", "MEM %", "AGE"
    ]  # fmt: skip
    assert line.split() == ["n1", "77777777", "75", "%", "50.0", "GiB", "50", "%", "now"]


def test_a_mig_slice_shows_its_sm_activity() -> None:
    (node,) = frame({"n1": [None, None]}).nodes
    slices = tuple(
        msgspec.structs.replace(gpu, values={**gpu.values, "gpu_sm_active_percent": 35.0})
        if gpu.position == 0
        else gpu
        for gpu in node.gpus
    )
    sliced = msgspec.structs.replace(node, gpus=slices)
    _, line = text_of(JobLines().view([sliced], 100)).splitlines()
    assert line.split()[1:3] == ["3", "·"]
    text = text_of(node_view(SHOWN._replace(nodes=(sliced,)), "n1", 100)).splitlines()
    assert text[2].split()[:5] == ["0", "–", "–", "35", "%"]


def test_a_gcd_names_the_gpu_that_reports_the_power_of_its_card() -> None:
    (node,) = frame({"n1": [90.0, 90.0]}).nodes
    pair = tuple(
        msgspec.structs.replace(
            gpu,
            device=msgspec.structs.replace(gpu.device, package_id="card"),
            values=gpu.values if gpu.position == 0 else {**gpu.values, "gpu_power_w": NO_SM},
        )
        for gpu in node.gpus
    )
    card = msgspec.structs.replace(node, gpus=pair)
    lines = text_of(node_view(SHOWN._replace(nodes=(card,)), "n1", 100)).splitlines()
    assert "  600/700 W" in lines[2]
    assert "   with 0" in lines[3]


GLOSSARY = (Path(__file__).parents[2] / "docs/glossary.md").read_text()


@pytest.mark.parametrize("metric", TERMS)
def test_the_help_names_values_as_the_glossary(metric: str) -> None:
    assert f"**{TERMS[metric]}**" in GLOSSARY
    lines = text_of(help_view(100, [metric])).splitlines()
    assert lines[1] == "Selected"
    assert lines[2].startswith(TERMS[metric])


def test_the_help_without_a_selection_begins_with_the_keys() -> None:
    assert text_of(help_view(100)).splitlines()[1] == "Keys"
