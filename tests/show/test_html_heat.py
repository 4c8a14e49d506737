"""The heat map of the page: the position of every cell; a missing value is not idle."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
import views
from hypothesis import given, settings
from hypothesis import strategies as st
from test_html import OVERFLOW, TEMPLATES, Outline, browser, data_of, luminance, visit

from teho.model.document import Plot, PlotSeries
from teho.show.html.heat import heat_section
from teho.show.html.page import render_html

__all__ = ["browser", "visit"]  # fixtures


def heat(*lines, step_s=60.0, last_s=None):
    """Return a heat map: each line is its label and its values."""
    middles = [(column + 0.5) * step_s for column in range(len(lines[0][1]))]
    if last_s is not None:
        middles[-1] += (last_s - step_s) / 2
    return Plot(
        key="gpu_busy_percent",
        title="Every GPU over time",
        unit="%",
        meaning="share of time in which at least one kernel ran",
        group="GPU",
        elapsed_s=middles,
        series=tuple(PlotSeries(label, list(values)) for label, values in lines),
    )


def fleet(nodes, gpus, bins=48):
    lines = [
        (f"nid{node:06d} GPU {gpu}", [(7 * node + 13 * gpu + 3 * i) % 101 for i in range(bins)])
        for node in range(nodes)
        for gpu in range(gpus)
    ]
    return heat(*lines)


def cells_of(section, columns):
    """Read the drawing back: each row's level by column; None for a cell that is not drawn."""
    drawing = section.split('class="cells"')[1].split("</svg>")[0]
    rows = int(re.search(r'viewBox="0 0 \d+ (\d+)"', drawing).group(1))
    grid = [[None] * columns for _ in range(rows)]
    for level, path in re.findall(r'<path class="h(\d)" d="([^"]*)"/>', drawing):
        for left, row, right in re.findall(r"M(\d+) (\d+)H(\d+)v1H\1z", path):
            for column in range(int(left) // 100, math.ceil(int(right) / 100)):
                assert grid[int(row)][column] is None
                grid[int(row)][column] = int(level)
        assert re.sub(r"M(\d+) \d+H\d+v1H\1z", "", path) == ""
    return grid


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 40).flatmap(
        lambda columns: st.lists(
            st.lists(
                st.none() | st.floats(0, 100),
                min_size=columns,
                max_size=columns,
            ),
            min_size=2,
            max_size=12,
        )
    )
)
def test_every_cell_has_the_colour_of_its_value(lines):
    section = heat_section(heat(*((f"GPU {i}", line) for i, line in enumerate(lines))))
    seen = cells_of(section, len(lines[0]))
    for line, levels in zip(lines, seen, strict=True):
        for value, level in zip(line, levels, strict=True):
            if value is None:
                assert level is None
            else:
                assert level == min(9, int(value / 10))


def test_idle_is_drawn_and_missing_is_not():
    section = heat_section(heat(("GPU 0", [0.0, None]), ("GPU 1", [100.0, 0.0])))
    assert cells_of(section, 2) == [[0, None], [9, 0]]
    assert "not recorded" in section.split('class="map"')[0]


def test_if_nothing_is_missing_the_scale_does_not_mention_it():
    section = heat_section(heat(("GPU 0", [0.0]), ("GPU 1", [1.0])))
    assert "not recorded" not in section


def test_the_last_column_may_be_narrower():
    section = heat_section(heat(("GPU 0", [1.0, 2.0]), ("GPU 1", [1.0, 99.0]), last_s=15.0))
    assert 'viewBox="0 0 125 2"' in section
    assert re.findall(r'text-anchor="\w+">([^<]*)</text></svg>\n</div>', section) == ["1 min 15 s"]


def test_names_are_next_to_their_rows():
    section = heat_section(fleet(4, 8))
    names = section.split('class="names"')[1].split("</svg>")[0]
    assert re.findall(r">([^<]+)</text>", names)[:6] == [
        *(f"nid{node:06d}" for node in range(4)),
        "0",
        "1",
    ]
    assert 'class="borders"' in section


def heights(section):
    found = re.search(r'class="cells" id="heat" height="([\d.]+)"', section)
    return float(found.group(1))


@pytest.mark.parametrize(
    ("nodes", "gpus", "height"), [(1, 2, 36), (4, 8, 560), (16, 8, 560), (64, 8, 768)]
)
def test_rows_are_as_high_as_there_is_room(nodes, gpus, height):
    assert heights(heat_section(fleet(nodes, gpus))) == height


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 64), (64, 8), (512, 1), (40, 4)])
def test_names_never_touch(nodes, gpus):
    names = heat_section(fleet(nodes, gpus)).split('class="names"')[1].split("</svg>")[0]
    for anchor in ("start", "end"):
        heights_px = [
            float(y) for y, side in re.findall(r'y="([\d.]+)"[^>]*anchor="(\w+)"', names)
            if side == anchor
        ]  # fmt: skip
        apart = [after - before for before, after in pairwise(heights_px)]
        assert all(gap >= 11.9 for gap in apart)
        assert all(height_px >= 6 for height_px in heights_px)  # none is cut off
    assert names.count("<text") >= 30


def test_lines_between_nodes_do_not_hide_low_rows():
    assert 'class="borders"' not in heat_section(fleet(64, 8))


def test_a_long_name_is_cut_and_is_whole_in_the_table():
    name = "login-node-with-a-very-long-name.cluster.example.org"
    section = heat_section(heat((f"{name} GPU 0", [1.0]), (f"{name} GPU 1", [1.0])))
    assert "login-node-with…" in section
    assert f"{name} GPU 0" in section.split("<details>")[1]


def test_one_gpu_has_none():
    assert heat_section(None) == ""
    assert 'id="heats"' not in render_html(views.one_gpu())


def test_its_numbers_are_a_table():
    words = "".join(Outline(heat_section(fleet(2, 2))).words)
    assert "nid000001 GPU 1" in words
    assert "mean" in words


def test_hostile_names_stay_text():
    section = heat_section(heat((views.HOSTILE, [1.0]), (f"{views.HOSTILE} GPU 1", [2.0])))
    outline = Outline(section)
    assert not outline.tags("script")
    assert not outline.tags("img")
    assert re.search(r"[\x00-\x08\x0e-\x1f\u202e\udcff]", section) is None


def test_a_run_of_no_length():
    assert 'viewBox="0 0 100 2"' in heat_section(
        heat(("GPU 0", [1.0]), ("GPU 1", [1.0]), step_s=0.0)
    )


def test_points_for_the_pointer_are_those_of_the_view():
    view = views.four_nodes()
    entry = data_of(render_html(view))["heat"]
    assert entry["id"] == "heat"
    for line, shown in zip(view.heat_map.series, entry["series"], strict=True):
        assert line.label == shown["label"]
        assert shown["values"] == line.values


@pytest.mark.parametrize("scheme", [0, 1])
def test_ends_of_the_scale_are_easily_distinguished(scheme):
    """WCAG 2.1, 1.4.11: graphics, 3; and what is busy stands out from the page."""
    blocks = re.findall(r":root \{(.*?)\}", (TEMPLATES / "report.css").read_text(), re.DOTALL)
    colors = dict(re.findall(r"--([\w]+): (#[0-9a-f]{6})", blocks[scheme]))
    for one, other in (("hot", "cold"), ("hot", "paper")):
        dark, light = sorted((luminance(colors[one]), luminance(colors[other])))
        assert (light + 0.05) / (dark + 0.05) >= 3, (one, other)


# ---- in a browser ----


@pytest.mark.drawn(1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_it_fits_the_page(visit, width, scheme):
    page = visit(views.four_nodes(), width=width, scheme=scheme)
    box = page.locator("#heat").bounding_box()
    assert box["width"] > width / 2
    assert box["x"] + box["width"] <= width
    assert page.evaluate(OVERFLOW) == 0


def test_512_gpus_fit_a_telephone(visit):
    page = visit(views.base(heat_map=fleet(64, 8)), width=390)
    assert page.evaluate(OVERFLOW) == 0
    assert page.locator("#heat").bounding_box()["height"] == 768


def test_idle_busy_and_missing_have_different_colours(visit):
    lines = [("GPU 0", [0.0, 50.0, 100.0]), ("GPU 1", [None, None, None])]
    for scheme in ("light", "dark"):
        page = visit(views.base(heat_map=heat(*lines)), scheme=scheme)
        fills = page.evaluate(
            "[...document.querySelectorAll('#heat path')].map(p => getComputedStyle(p).fill)"
        )
        assert len(set(fills)) == 3
        ground = page.evaluate("getComputedStyle(document.getElementById('heat')).backgroundImage")
        assert ground.startswith("repeating-linear-gradient")


def test_the_pointer_reads_a_cell(visit):
    page = visit(views.base(heat_map=heat(("a GPU 0", [10.0, 20.0]), ("b GPU 1", [30.0, None]))))
    box = page.locator("#heat").bounding_box()
    readout = page.locator(".heat .readout")
    for row, column, words in (
        (0, 0, "a GPU 0 · at 30.0 s · 10 %"),
        (0, 1, "a GPU 0 · at 1 min 30 s · 20 %"),
        (1, 0, "b GPU 1 · at 30.0 s · 30 %"),
        (1, 1, "b GPU 1 · at 1 min 30 s · not recorded"),
    ):
        page.mouse.move(
            box["x"] + box["width"] * (0.25 + column / 2),
            box["y"] + box["height"] * (0.25 + row / 2),
        )
        assert readout.inner_text() == words
    page.mouse.move(2, 2)
    assert readout.inner_text() == ""


def test_without_javascript_it_is_drawn_all_the_same(visit):
    page = visit(views.base(heat_map=fleet(2, 4)), script=False)
    assert page.locator("#heat path").count() > 5
    page.locator(".heat summary").click()
    assert page.locator(".heat details table").first.is_visible()
