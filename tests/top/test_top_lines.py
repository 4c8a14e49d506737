"""The lines of the screen: what they say, and that they fit."""

from __future__ import annotations

import msgspec
import pytest

from teho.show.top.frame import Frame
from teho.show.top.help import help_view
from teho.show.top.lines import View, gpu_view, head, job_view, node_view, process_view
from top.frames import REPORT, WATCHED, StillSource, frame

WIDTHS = (20, 40, 60, 80, 120, 300)
SHOWN = frame(
    {"n1": [97.0, 96.0, 2.0, None], "a-node-with-a-very-long-name.example.org": [50.0] * 8},
    missing=["n3"],
)


def text_of(view: View) -> str:
    return "\n".join([view.title.plain, *(row.line.plain for row in view.rows)])


def test_each_gpu_is_a_cell() -> None:
    lines = text_of(job_view(SHOWN, 100)).splitlines()
    assert "9 9 0 ·" in next(line for line in lines if line.startswith("n1"))
    assert "5 5 5 5 5 5 5 5" in next(line for line in lines if line.startswith("a-node"))


def test_a_silent_node_says_so_and_has_no_values() -> None:
    shown = frame({"n1": [97.0], "n2": [96.0]}, ages_s={"n2": 75.0}, missing=["n3"])
    lines = text_of(job_view(shown, 100)).splitlines()
    assert "n2    has sent nothing for 1 min 15 s" in lines
    assert "n3    has sent no sample" in lines
    assert "96" not in text_of(node_view(shown, "n2", 100))


def test_the_head_has_the_verdict_and_what_is_left() -> None:
    verdict, facts = (line.plain for line in head(SHOWN, 100))
    assert verdict == "✓ The GPUs were busy 90 % of the time."
    assert facts == "running · 1 min 40 s of 1 h · 58 min 20 s left"


def test_a_node_shows_its_gpus_cores_and_why_a_value_is_missing() -> None:
    text = text_of(node_view(SHOWN, "n1", 100))
    assert "97 %" in text
    assert "40.0 GiB    600 W" in text
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


def test_a_process_shows_the_lines_of_the_last_minute() -> None:
    text = text_of(process_view(SHOWN, "n1", 4711, WATCHED, 100))
    assert "75 %  ━━━━━━━━━━  computing in native code" in text
    assert "25 %  ━━━━━━━━━━  train.py:30  open(path)" in text
    assert "has ended" in text_of(process_view(SHOWN, "n1", 1, None, 100))
    assert "did not record" in text_of(process_view(SHOWN, "n1", 4712, None, 100))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_line_fits(width: int) -> None:
    curves = StillSource(SHOWN).curves("n1", 0)
    shown = [
        job_view(SHOWN, width),
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
