from __future__ import annotations

import re

import pytest
import views
from golden import FOLDER, check
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from teho.model.document import Column, Table
from teho.model.finding import Abstention, Lack
from teho.model.missing import Missing, Reason
from teho.show.cells import column_text
from teho.show.text.document import render_text

ESCAPE = re.compile(r"\x1b\[[\d;]*m")


def render(view, width=80, *, color=False, full=True, detail=None):
    detail = detail or ("default" if full else "brief")
    return render_text(view, width=width, color=color, detail=detail)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", views.SOUND)
def test_full_report_is_as_it_was(name, width):
    check(FOLDER / f"{name}-{width}.txt", render(views.SOUND[name](), width))


@pytest.mark.parametrize("name", views.SOUND)
def test_report_at_the_end_of_a_run_is_as_it_was(name):
    check(FOLDER / f"{name}-brief.txt", render(views.SOUND[name](), full=False))


@pytest.mark.parametrize("name", views.SOUND)
def test_everything_is_as_it_was(name):
    check(FOLDER / f"{name}-why.txt", render(views.SOUND[name](), detail="why"))


@pytest.mark.parametrize("name", [*views.SOUND, "hostile"])
def test_report_fits_a_screen(name):
    assert render(getattr(views, name)()).count("\n") <= 40


@pytest.mark.parametrize("name", views.SOUND)
def test_short_report_is_the_verdict(name):
    view = views.SOUND[name]()
    text = render(view, detail="short")
    assert " ".join(text[2:].split()) == view.verdict


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", views.SOUND)
def test_colour_adds_escape_codes_and_nothing_else(name, full):
    view = views.SOUND[name]()
    colored = render(view, color=True, full=full)
    assert "\x1b[" in colored
    assert ESCAPE.sub("", colored) == render(view, full=full)


def test_environment_does_not_decide_about_colour(monkeypatch):
    view = views.one_gpu()
    expected = render(view), render(view, color=True)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"):
        monkeypatch.setenv(name, "33")
    assert (render(view), render(view, color=True)) == expected


def test_verdict_is_the_first_line_and_marked_by_severity():
    first = render(views.eight_gpus(), 120).splitlines()[0]
    assert first.startswith("✗ Seven of eight GPUs")
    assert render(views.one_gpu(), color=True).startswith("\x1b[1;32m✓")


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["hostile", "fleet", *views.SOUND]), st.integers(24, 200), st.booleans())
def test_only_commands_are_longer_than_a_line(name, width, full):
    view = views.fleet(2, 3, 2) if name == "fleet" else getattr(views, name)()
    for line in render(view, width, full=full).splitlines():
        if "`" not in line and "teho report" not in line:
            assert cell_len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("full", [True, False])
def test_hostile_text_cannot_steer_the_terminal(full):
    text = render(views.hostile(), full=full)
    assert r"\x1b]0;owned\x07" in text
    assert all(char == "\n" or char.isprintable() for char in text)
    text.encode()


def test_command_stays_whole_so_that_it_can_be_copied():
    command = views.eight_gpus().findings[1].action.split("`")[3]
    text = render(views.eight_gpus(), 60, detail="why")
    assert any(command in line for line in text.splitlines())


def test_missing_is_a_word_that_is_explained_once():
    text = render(views.eight_gpus(), detail="why")
    assert text.count("not offered (energy): Tesla V100 of this driver has no energy counter") == 1
    lost = next(line for line in text.splitlines() if line.startswith("  7 "))
    assert lost.split() == ["7", *["failed"] * 8]


def test_question_that_does_not_arise_is_a_dash():
    assert "none      \N{EN DASH}" in render(views.laptop(), detail="why")


def test_short_report_has_three_findings_and_says_what_is_left_out():
    text = render(views.eight_gpus(), full=False)
    assert text.count("→") == 3
    assert "threshold" not in text
    assert text.rstrip().endswith(
        "Full report (1 more finding, 2 notes): teho report 20250401-0915-eval-x2m9"
    )


@pytest.mark.parametrize(("gpus", "shown"), [(8, True), (9, False)])
def test_short_report_has_the_gpu_table_up_to_eight_rows(gpus, shown):
    assert ("GPU busy" in render(views.fleet(1, gpus, 2), full=False)) is shown


def table(*columns, rows):
    return views.base(facts=(), tables=(Table(key="t", title="T", columns=columns, rows=rows),))


def test_figures_of_a_column_line_up_by_their_decimals():
    column = Column(key="x", label="x", unit="s", decimals=2)
    lines = render(table(column, rows=({"x": 1234.5}, {"x": 0.25}))).splitlines()
    dots = {line.index(".") for line in lines if re.search(r"\d\.\d\d$", line)}
    assert "1,234.50" in render(table(column, rows=({"x": 1234.5}, {"x": 0.25})))
    assert len(dots) == 1


def test_wide_table_continues_below_with_its_leading_columns():
    columns = [Column(key="node", label="node")] + [
        Column(key=f"c{i}", label=f"figure {i}", unit="W", decimals=1) for i in range(9)
    ]
    cells = {f"c{i}": float(i) for i in range(9)}
    text = render(table(*columns, rows=({"node": "a", **cells}, {"node": "b", **cells})), 40)
    assert len([line for line in text.splitlines() if line.startswith("a ")]) == 3
    assert all(f"{i}.0" in text for i in range(9))


def test_a_place_that_is_cut_keeps_its_line_number():
    columns = Column(key="line", label="Line"), Column(key="x", label="x")
    row = {"line": "a_program_with_a_very_long_name.py:1234", "x": "short"}
    assert "a_program_with_a_ver…:1234  short" in render(table(*columns, rows=(row,)))


def test_if_a_table_does_not_fit_its_most_important_rows_are_shown():
    columns = (
        Column(key="name", label="name"),
        Column(key="spare", label="spare", spare=True),
        Column(key="x", label="x", unit="W", decimals=0),
    )
    rows = tuple({"name": f"row {i}", "spare": f"s{i}", "x": float(i)} for i in range(60))
    long = Table(key="t", title="Long", columns=columns, rows=rows, few=(40, 7, 50))

    def shown(rows_above: int, detail: str = "default") -> list[str]:
        above = Table(key="a", title="Above", columns=columns, rows=rows[:rows_above])
        text = render(views.base(facts=(), tables=(above, long)), detail=detail)
        assert ("“Long” (whole)" in text) is (detail == "default")
        return re.findall(
            r"^(row \d+) +(?:s\d+ +)?\d+$", text[text.index("\nLong") :], re.MULTILINE
        )

    assert shown(2) == ["row 40", "row 7", "row 50"]
    # With less room, the least important of them is left out too.
    assert shown(22) == ["row 40", "row 7"]
    assert len(shown(2, "why")) == len(rows)  # with the spare column


def test_table_without_rows_is_left_out():
    assert "T" not in render(table(Column(key="x", label="x"), rows=())).split()


def test_missing_cell_widens_its_column():
    missing = Missing(Reason.FORBIDDEN)
    column = Column(key="x", label="x", unit="W", decimals=0)
    text = render(table(column, rows=({"x": missing}, {"x": 5.0})))
    assert "\nno permission\n            5\n" in text
    assert "no permission (x): this user is not allowed to read this metric" in text


@pytest.mark.parametrize(
    ("reason", "said"),
    [(Reason.FORBIDDEN, "not known (no permission)"), (Reason.ABSENT, "not available")],
)
def test_a_missing_fact_is_read_as_a_sentence(reason, said):
    view = views.base(facts=views.facts(memory_limit_bytes=("limit", Missing(reason), "bytes")))
    assert f"limit {said}" in " ".join(render(view).split())


def test_what_all_rows_share_is_never_cut_off():
    columns = [Column(key=str(number), label=f"Quality {number}") for number in range(6)]
    rows = ({str(number): "the same" for number in range(6)},) * 2
    text = render(table(*columns, rows=rows))
    assert all(f"Quality {number} the same" in " ".join(text.split()) for number in range(6))


def test_rules_that_lacked_the_same_share_one_line():
    lacks = [("gpu_a", "SM activity of GPU 0: none"), ("gpu_b", "power of GPU 0: none"),
             ("gpu_c", "SM activity of GPU 0: none")]  # fmt: skip
    view = views.base(abstentions=tuple(Abstention(kind=kind, lacked=lack) for kind, lack in lacks))
    assert (
        "Not judged\n"
        "  Reason: SM activity of GPU 0: none. Rules without a result: gpu_a, gpu_c.\n"
        "  Reason: power of GPU 0: none. Rule without a result: gpu_b.\n"
    ) in render(view, detail="why")  # fmt: skip


def test_a_reason_is_shown_once_for_all_rules_that_it_stops():
    why = "the driver reports this metric only for Hopper and newer GPUs"
    sm, busy = Lack("SM activity", "GPUs 0–3 on a", why), Lack("GPU busy", "GPU 0 on a", "MIG mode")
    lacks = {
        "gpu_a": (sm, busy),
        "gpu_b": (Lack("tensor cores", "GPUs 0–3 on a", why),),
        "gpu_c": (Lack("tensor cores", "GPU 2 on a", why),),
    }
    view = views.base(
        abstentions=tuple(Abstention(kind=kind, lacked="", lacks=of) for kind, of in lacks.items())
    )
    assert (
        f"Not judged Reason: {why}. Missing for GPUs 0–3 on a: SM activity; tensor cores. Missing "
        "for GPU 2 on a: tensor cores. Rules without a result: gpu_a, gpu_b, gpu_c. "
        "Reason: MIG mode. Missing for GPU 0 on a: GPU busy. Rule without a result: gpu_a."
    ) in " ".join(render(view, detail="why").split())


@pytest.mark.parametrize(
    ("value", "text"),
    [(-0.3, "0"), (-0.0, "0"), (0.4, "0"), (-0.6, "-1"), (-1234.5, "-1,234"), (2, "2")],
)
def test_a_number_that_is_rounded_to_zero_has_no_sign(value: float, text: str) -> None:
    assert column_text(value, Column(key="change", label="change", unit="%", decimals=0)) == text
