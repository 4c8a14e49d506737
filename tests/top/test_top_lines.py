"""The lines of the screen: what they say, and that they fit."""

from __future__ import annotations

import msgspec
import pytest

from teho.model.document import Fact
from teho.model.missing import Missing, Reason
from teho.show.build.top import top_document
from teho.show.top.frame import Frame
from teho.show.top.gpu import gpu_view
from teho.show.top.head import head
from teho.show.top.help import help_view
from teho.show.top.job import JobLines
from teho.show.top.node import node_view
from teho.show.top.orders import NODE_ORDERS
from teho.show.top.process import process_view
from teho.show.top.rows import View, bar
from teho.units import GIB
from top.frames import (
    NO_SM,
    REPORT,
    WATCHED,
    StillSource,
    detailed,
    frame,
    process,
    with_processes,
)

WIDTHS = (20, 40, 60, 80, 120, 300)
SHOWN = frame(
    {"n1": [97.0, 96.0, 2.0, None], "a-node-with-a-very-long-name.example.org": [50.0] * 8},
    missing=["n3"],
)


def text_of(view: View) -> str:
    return "\n".join([view.title.plain, *(row.line.plain for row in view.rows)])


def test_each_gpu_is_a_cell() -> None:
    lines = text_of(JobLines().view(SHOWN.nodes, 100)).splitlines()
    assert "9 9 0 ·" in next(line for line in lines if line.startswith("n1"))
    assert "5 5 5 5 5 5 5 5" in next(line for line in lines if line.startswith("a-node"))


def test_a_silent_node_says_so_and_has_no_values() -> None:
    shown = frame({"n1": [97.0], "n2": [96.0]}, ages_s={"n2": 75.0}, missing=["n3"])
    lines = text_of(JobLines().view(shown.nodes, 100)).splitlines()
    assert "n2    has sent nothing for 1 min 15 s" in lines
    assert "n3    has sent no sample" in lines
    assert "96" not in text_of(node_view(shown, "n2", 100))


def test_the_head_has_the_verdict_and_what_is_left() -> None:
    verdict, facts = (line.plain for line in head(SHOWN, 100))
    assert verdict == "✓ The GPUs were busy 90 % of the time."
    assert facts == (
        "running · 1 min 40 s · 58 min 20 s until the time limit · values by connection"
    )


def test_the_head_has_the_expected_end_the_trend_of_the_pace_and_the_units_that_are_left() -> None:
    facts = (
        Fact("steps_per_s", "Pace", 26.2, "steps/s", "over 12,000 steps"),
        Fact("steps_per_s_now", "Pace of the last minute", 29.3, "steps/s", "+12 %"),
        Fact("left_s", "Expected time left", 11_520.0, "s", "45 % done, from tqdm"),
        Fact("cost", "Cost", 3.2, "BU", "16 BU an hour"),
        Fact("cost_at_limit", "Cost at the time limit", 16.0, "BU"),
        Fact("cost_left", "Cost from now until the time limit", 12.8, "BU"),
    )
    _, line = head(SHOWN._replace(report=msgspec.structs.replace(REPORT, facts=facts)), 300)
    assert line.plain == (
        "running · 1 min 40 s · 58 min 20 s until the time limit · expected end in 3 h 12 min · "
        "pace 26.2 steps/s · now 29.3 steps/s (+12 %) · cost 3.20 BU · "
        "12.8 BU more until the limit · values by connection"
    )
    steady = Fact("steps_per_s_now", "Pace of the last minute", 26.2, "steps/s", "")
    unknown = Fact("left_s", "Expected time left", Missing(Reason.UNRECORDED, "why"), "s", "", True)
    report = msgspec.structs.replace(REPORT, facts=(steady, unknown))
    assert head(SHOWN._replace(report=report), 300)[-1].plain.endswith(
        " · now 26.2 steps/s · values by connection"
    )
    # Programs get the reason.
    assert top_document(report, SHOWN.nodes).facts == (steady, unknown)


def test_a_long_verdict_ends_with_an_ellipsis() -> None:
    report = msgspec.structs.replace(REPORT, verdict="GPU 3 on g1 was never used. " * 5)
    shown = Frame(report, SHOWN.nodes)
    assert [line.plain for line in head(shown, 40)][:2] == [
        "✓ GPU 3 on g1 was never used. GPU 3 on",
        "  g1 was never used. GPU 3 on g1 was ne…",
    ]
    (line,) = head(shown, 20, 1)
    assert line.plain == "✓ GPU 3 on g1 was n…"


def test_a_narrow_line_has_the_age_and_not_the_share_of_the_memory() -> None:
    shown = frame({"gpu-node-01": [50.0] * 8})
    for width, heading in ((78, "MEMORY     AGE"), (100, "MEMORY  MEM %     AGE")):
        title, line = text_of(JobLines().view(shown.nodes, width)).splitlines()
        assert title.endswith(heading)
        assert line.endswith("now")
        assert len(title) == len(line) <= width


def test_a_bar_can_be_read_without_colour() -> None:
    assert bar(0.5, 4).plain == "━━──"


def test_a_node_shows_its_gpus_cores_and_why_a_value_is_missing() -> None:
    text = text_of(node_view(SHOWN, "n1", 100))
    assert "97 %" in text
    assert "40.0 GiB    600/700 W" in text
    assert "Each core, ×10 %                77777777" in text
    assert "Memory                          50.0 GiB of 100 GiB" in text


def test_a_gpu_shows_all_its_values() -> None:
    curves = StillSource(SHOWN).curves("n1", 0)
    text = text_of(gpu_view(SHOWN, "n1", 0, curves, 100, 40))
    assert "GPU power                       600 W of 700 W" in text
    assert "GPU memory used                 40.0 GiB of 80.0 GiB" in text
    assert "not offered: not offered under MIG: SM activity" in text


def test_a_node_lists_its_processes() -> None:
    text = text_of(node_view(SHOWN, "n1", 100))
    assert "   4711   250 %   3.00 GiB        9  python train.py" in text
    assert "   4712       –   1.00 GiB        1  python worker" in text


def test_a_node_lists_ranks_and_gpus_of_its_processes() -> None:
    text = text_of(node_view(with_processes(SHOWN), "n1", 100))
    assert text.splitlines()[-4:] == [
        "    PID  USER        RANK     CPU     MEMORY    GPU    GPU MEM  THREADS  COMMAND",
        "     12  ann            1    90 %   1.00 GiB    0,1   30.0 GiB        1  python train.py",
        "     11  other user     0    80 %   2.00 GiB      2          –        1  python train.py",
        "     13  –              –   1.0 %   3.00 GiB                          1  cp big /scratch",
    ]
    filtered = text_of(node_view(with_processes(SHOWN), "n1", 100, "cpu", "TRAIN"))
    assert "python train.py" in filtered
    assert "cp big" not in filtered
    shown = text_of(process_view(with_processes(SHOWN), "n1", 12, None, 100))
    assert "Rank        1" in shown
    assert "GPUs        0,1, memory 30.0 GiB" in shown
    assert "Type        MPS and compute (GPU 0); compute (GPU 1)" in shown
    assert "User        ann" in shown


def test_a_wide_screen_has_the_types_of_a_nodes_processes() -> None:
    text = text_of(node_view(with_processes(SHOWN), "n1", 118))
    heading, *lines = text.splitlines()[-4:]
    assert heading == (
        "    PID  USER        RANK     CPU     MEMORY  TYPE     GPU    GPU MEM  THREADS  COMMAND"
    )
    assert [line[:69].rstrip() for line in lines] == [
        "     12  ann            1    90 %   1.00 GiB  M+C      0,1   30.0 GiB",
        "     11  other user     0    80 %   2.00 GiB  C          2          –",
        "     13  –              –   1.0 %   3.00 GiB",
    ]


def test_a_narrow_screen_has_no_users_if_all_processes_are_ones_own() -> None:
    shown = frame({"n1": [50.0]})
    own = [msgspec.structs.replace(one, owner="own") for one in shown.nodes[0].processes]
    node = msgspec.structs.replace(shown.nodes[0], processes=tuple(own))
    shown = shown._replace(nodes=(node,), owner="a-user-with-a-long-name")
    assert "USER" not in text_of(node_view(shown, "n1", 78))
    wide = text_of(node_view(shown, "n1", 118))
    assert "   4711  a-user-with…   250 %" in wide


def test_a_gpu_lists_its_processes_with_user_type_and_memory() -> None:
    shown = with_processes(SHOWN)
    lines = text_of(gpu_view(shown, "n1", 0, (), 78, 20)).splitlines()
    assert lines[2:4] == [
        "    PID  USER  TYPE     GPU MEM     CPU  RANK  COMMAND",
        "     12  ann   M+C     10.0 GiB    90 %     1  python train.py",
    ]
    lines = text_of(gpu_view(shown, "n1", 2, (), 78, 20)).splitlines()
    assert lines[3] == "     11  other user  C              –    80 %     0  python train.py"


def test_a_process_that_draws_only_is_on_its_gpu_too() -> None:
    shown = frame({"n1": [50.0, 50.0]})
    gpu = shown.nodes[0].gpus[1].device.id
    draws = process(
        9, 1.0, 1, gpu_memory_bytes={gpu: 5 * GIB}, gpu_types={gpu: ("graphics",)}, owner=0
    )
    node = msgspec.structs.replace(shown.nodes[0], processes=(draws,))
    shown = shown._replace(nodes=(node,))
    (line,) = [
        line
        for line in text_of(gpu_view(shown, "n1", 1, (), 78, 20)).splitlines()
        if "5.00" in line
    ]
    assert line == "      9  root  G       5.00 GiB   1.0 %  python train.py"
    assert "Type        graphics" in text_of(process_view(shown, "n1", 9, None, 78))


def test_the_facts_of_equal_gpus_are_one_line() -> None:
    text = text_of(node_view(detailed(SHOWN, p_states=[0, 8, NO_SM]), "n1", 100))
    assert "Driver                          550.54.15\n" in text
    assert "CUDA version                    12.4\n" in text
    assert "Compute mode                    default\n" in text
    lines = text.splitlines()
    assert "Model" not in text
    narrow = text_of(node_view(detailed(SHOWN), "n1", 78))
    assert "Model                           NVIDIA H100\n" in narrow
    states = [line.split("NVIDIA H100")[0].split()[-1] for line in lines if "NVIDIA H100" in line]
    assert states == ["P0", "P8", "–", "P0"]


def test_the_facts_of_different_gpus_have_their_numbers() -> None:
    shown = detailed(frame({"n1": [50.0] * 3}), driver=NO_SM)
    (node,) = shown.nodes
    other = msgspec.structs.replace(
        node.gpus[1],
        device=msgspec.structs.replace(
            node.gpus[1].device, compute_mode="prohibited", parent_id="GPU-whole",
            pci_bus_id="0000:07:00.0",
        ),
    )  # fmt: skip
    node = msgspec.structs.replace(node, gpus=(node.gpus[0], other, node.gpus[2]))
    shown = shown._replace(nodes=(node,))
    text = text_of(node_view(shown, "n1", 200))
    assert "Compute mode                    prohibited (GPU 1); default (GPUs 0 and 2)\n" in text
    assert "Driver                          not offered: not offered under MIG\n" in text
    assert "MIG slice of                    0000:07:00.0, GPU-whole (GPU 1)\n" in text


def test_a_gpu_has_the_facts_of_its_driver_or_why_they_are_missing() -> None:
    shown = detailed(SHOWN, p_states=[8], pci_bus_id="0000:17:00.0")
    lines = text_of(gpu_view(shown, "n1", 0, (), 100, 40)).splitlines()
    for line in (
        "P-state                         P8",
        "Compute mode                    default",
        "Driver                          550.54.15",
        "CUDA version                    12.4",
        "PCI address                     0000:17:00.0",
    ):
        assert line in lines
    text = text_of(gpu_view(SHOWN, "n1", 0, (), 300, 40))
    assert "made this recording, or it is from a log: Driver, Platform, Compute mode" in text
    assert "P-state" in text
    gpu = msgspec.structs.replace(shown.nodes[0].gpus[0], unlisted={"MPS": NO_SM})
    node = msgspec.structs.replace(shown.nodes[0], gpus=(gpu,))
    text = text_of(gpu_view(shown._replace(nodes=(node,)), "n1", 0, (), 300, 40))
    assert "not offered: not offered under MIG: processes of the type MPS, SM activity" in text


@pytest.mark.parametrize(
    ("order", "pids"),
    [("cpu", "12 11 13"), ("memory", "13 11 12"), ("gpu_memory", "12 11 13"), ("rank", "11 12 13")],
)
def test_orders_of_processes(order: str, pids: str) -> None:
    view = node_view(with_processes(SHOWN), "n1", 100, order)
    keys = [row.key.partition(" ")[2] for row in view.rows if row.key.startswith("process")]
    assert " ".join(keys) == pids


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("worst", "n3 n1 n2"),
        ("name", "n1 n2 n3"),
        ("power", "n2 n1 n3"),  # the sum, and a silent node is last
        ("gpu_memory", "n1 n2 n3"),
        ("cores", "n1 n2 n3"),
        ("memory", "n1 n2 n3"),
    ],
)
def test_orders_of_nodes(order: str, names: str) -> None:
    busy = {"n1": [5.0], "n2": [90.0, 90.0], "n3": [90.0] * 3}
    shown = frame(busy, ages_s={"n3": 20.0})
    found = NODE_ORDERS[order].sorted(shown.nodes)
    assert " ".join(node.node.name for node in found) == names


def test_a_line_is_made_again_only_if_it_has_changed() -> None:
    lines = JobLines()
    before, after = frame({"n1": [50.0]}), frame({"n1": [60.0]})
    (first,) = lines.view(before.nodes, 100).rows
    (again,) = lines.view(before.nodes, 100).rows
    assert again is first
    (narrow,) = lines.view(before.nodes, 20).rows
    assert narrow.line.cell_len == 20
    (changed,) = lines.view(after.nodes, 100).rows
    assert "6 " in changed.line.plain
    old = msgspec.structs.replace(after.nodes[0], age_s=5.0)
    (older,) = lines.view([old], 100).rows
    assert older.line.plain.endswith("   5 s")


def test_a_process_shows_the_lines_of_the_last_minute() -> None:
    text = text_of(process_view(SHOWN, "n1", 4711, WATCHED, 100))
    assert "75 %  ━━━━━━━━──  computing in native code" in text
    assert "25 %  ━━────────  train.py:30  open(path)" in text
    assert "has ended" in text_of(process_view(SHOWN, "n1", 1, None, 100))
    assert "did not record" in text_of(process_view(SHOWN, "n1", 4712, None, 100))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_line_fits(width: int) -> None:
    curves = StillSource(SHOWN).curves("n1", 0)
    full = with_processes(detailed(SHOWN))
    shown = [
        node_view(full, "n1", width),
        gpu_view(full, "n1", 0, curves, width, 30),
        process_view(full, "n1", 12, None, width),
        JobLines().view(SHOWN.nodes, width),
        node_view(SHOWN, "n1", width),
        node_view(SHOWN, "n3", width),
        gpu_view(SHOWN, "n1", 2, curves, width, 30),
        help_view(width),
        process_view(SHOWN, "n1", 4711, WATCHED, width),
    ]
    lines = [line for view in shown for line in (view.title, *(row.line for row in view.rows))]
    lines += head(SHOWN, width)
    assert max(line.cell_len for line in lines) <= width


def test_a_name_with_control_characters_is_only_text() -> None:
    report = msgspec.structs.replace(REPORT, verdict="bad \x1b[31m name")
    shown = Frame(report, SHOWN.nodes)
    assert "\x1b" not in head(shown, 80)[0].plain


def test_a_process_that_has_just_started_has_no_shares_yet() -> None:
    """Its probe has written the first line, and no sample."""
    new = msgspec.structs.replace(WATCHED, until_s=WATCHED.began_s, at_end=())
    text = text_of(process_view(SHOWN, "n1", 4711, new, 100))
    assert "Main thread since its start" in text
    assert "━" not in text
