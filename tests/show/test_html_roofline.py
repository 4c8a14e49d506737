"""The roofline of the page: positions of points and roofs, in the drawing and as text."""

from __future__ import annotations

import math
import re

import pytest
import views
from hypothesis import given, settings
from hypothesis import strategies as st
from test_html import OVERFLOW, Outline, browser, visit

from teho.model.document import Roof, RooflinePlot
from teho.show.html.page import render_html
from teho.show.html.roofline import rooflines_section

__all__ = ["browser", "visit"]  # fixtures

HEIGHT = 320
ROOFS = (
    Roof(label="FP64", flop_per_s=33.5e12, active=False),
    Roof(label="FP32, FP64 tensor", flop_per_s=66.9e12, active=True),
    Roof(label="TF32 tensor", flop_per_s=494.7e12, active=True),
    Roof(label="16-bit tensor", flop_per_s=989.4e12, active=True),
)


def roofline(*points, model="NVIDIA H100 80GB HBM3", memory=3.35e12, roofs=ROOFS):
    return RooflinePlot(
        model=model,
        sentence="memory-bound: 71 % of 3.35 TB/s; arithmetic intensity 12 FLOP/byte",
        notes=("Arithmetic is an upper bound.",),
        memory_bytes_per_s=memory,
        roofs=roofs,
        points=points,
        mean=points[0],
    )


def point(label="GPU 0", least=5e13, most=6e13, bytes_per_s=2e12):
    return views.roofline_point(label, least, most, bytes_per_s)


def scales(section):
    """Read both scales back: place of a power of ten -> its value, as (place, log10) pairs."""
    axis = section.split('class="axis"')[1].split("</svg>")[0]
    across = [
        (float(x), math.log10(float(value.replace(",", ""))))
        for x, value in re.findall(r'x="([\d.]+)%" y="14"[^>]*>([\d.,]+)<', axis)
    ]
    prefixes = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
    names = section.split('class="names"')[1].split("</svg>")[0]
    up = [
        (float(y), math.log10(float(figure)) + prefixes[prefix])
        for y, figure, prefix in re.findall(r'y="([-\d.]+)"[^>]*>(\d+) (\w?)FLOP/s<', names)
    ]
    return across, up


def read(pairs, place):
    """Read a place off a scale, as a person would with a ruler."""
    (low, first), (high, last) = pairs[0], pairs[-1]
    return 10 ** (first + (place - low) * (last - first) / (high - low))


def circles(section):
    drawing = section.split('class="field"')[1].split("</svg>")[0]
    return [
        (float(x), float(y))
        for x, y in re.findall(r'<circle class="spot[^"]*" cx="([\d.]+)%" cy="([\d.]+)"', drawing)
    ]


rates = st.floats(1e9, 9e14)


@settings(max_examples=60, deadline=None)
@given(rates, st.floats(1, 2), st.floats(1e8, 3.3e12))
def test_a_point_is_drawn_at_its_figures(least, factor, traffic):
    at = point(least=least, most=least * factor, bytes_per_s=traffic)
    section = rooflines_section([roofline(at)])
    across, up = scales(section)
    *_, (x, y) = circles(section)
    assert 0 <= x <= 100
    assert 0 <= y <= HEIGHT
    assert read(across, x) == pytest.approx(at.most_flop_per_byte, rel=0.02)
    assert read(up, y) == pytest.approx(at.most_flop_per_s, rel=0.02)


def test_a_span_has_two_ends_and_a_key():
    section = rooflines_section([roofline(point(least=5e13, most=1e14))])
    assert len(circles(section)) == 2
    assert "if the tensor cores ran in TF32" in section
    assert 'class="span"' in section


def test_without_a_span_there_is_one_point_and_no_key():
    section = rooflines_section([roofline(point(least=5e13, most=5e13))])
    assert len(circles(section)) == 1
    assert "TF32 tensor" in section
    assert "ran in TF32" not in section


def test_roofs_begin_where_they_meet_the_memory():
    section = rooflines_section([roofline(point())])
    across, up = scales(section)
    lines = re.findall(
        r'<g class="roof[^"]*"><line x1="([\d.]+)%" y1="([\d.]+)" x2="100%" y2="\2"/>', section
    )
    assert len(lines) == len(ROOFS)
    for (x, y), roof in zip(lines, ROOFS, strict=True):
        assert read(up, float(y)) == pytest.approx(roof.flop_per_s, rel=0.02)
        assert read(across, float(x)) == pytest.approx(roof.flop_per_s / 3.35e12, rel=0.02)


def test_roofs_that_were_not_used_are_faint():
    section = rooflines_section([roofline(point())])
    assert section.count('<g class="roof">') == 1
    assert "FP64 33.5 TFLOP/s" in section.split('<g class="roof">')[1].split("</g>")[0]


def test_each_gpu_has_its_point_and_its_row():
    points = [point(f"GPU {number}", least=4e13 + number * 1e12) for number in range(8)]
    section = rooflines_section([roofline(*points)])
    dots = section.split('<g class="dots">')[1].split("</g>")[0]
    assert dots.count("<circle") == 8
    table = section.split("<details>")[1]
    assert all(f'<th scope="row">GPU {number}</th>' in table for number in range(8))


def test_a_range_has_its_unit_once():
    table = rooflines_section([roofline(point(least=5e13, most=6e13))]).split("<details>")[1]
    assert "50.0 to 60.0 TFLOP/s" in table
    table = rooflines_section([roofline(point(least=5e14, most=1e15))]).split("<details>")[1]
    assert "500 TFLOP/s to 1.00 PFLOP/s" in table


def test_its_text_is_next_to_it():
    words = "".join(Outline(rooflines_section([roofline(point())])).words)
    for sentence in ("NVIDIA H100 80GB HBM3", "memory-bound: 71 %", "memory 3.35 TB/s",
                     "Arithmetic is an upper bound."):  # fmt: skip
        assert sentence in words


def test_without_figures_there_is_none():
    assert rooflines_section([]) == ""
    assert 'id="rooflines"' not in render_html(views.one_gpu())


def test_hostile_names_stay_text():
    section = rooflines_section(views.hostile().rooflines)
    outline = Outline(section)
    assert not outline.tags("script")
    assert not outline.tags("img")
    assert re.search(r"[\x00-\x08\x0e-\x1f\u202e\udcff]", section) is None


# ---- in a browser ----


@pytest.mark.drawn(1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_it_fits_the_page(visit, width, scheme):
    page = visit(views.four_nodes(), width=width, scheme=scheme)
    box = page.locator(".field").bounding_box()
    assert box["height"] == HEIGHT
    assert box["x"] + box["width"] <= width
    assert page.evaluate(OVERFLOW) == 0


@pytest.mark.drawn(2)
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("least", [1e12, 2e13, 5e13, 8e13, 1.9e14, 6e14, 9e14])
def test_no_name_overlaps_another(visit, width, least):
    """With roofs as near to each other as any device has them, and the point near each of them."""
    at = point("mean of 2 GPUs", least=least, most=1.05 * least)
    page = visit(views.base(rooflines=(roofline(at),)), width=width)
    field = page.locator(".field").bounding_box()
    for word in page.locator(".field text").all():
        box = word.bounding_box()
        rim = 2  # each letter's, in the paper's color
        assert box["x"] >= field["x"] - rim, word.text_content()
        assert box["x"] + box["width"] <= field["x"] + field["width"] + rim, word.text_content()
    boxes = page.evaluate(
        "[...document.querySelectorAll('.field text')].map(t => {"
        "const b = t.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })"
    )
    assert len(boxes) == len(ROOFS) + 2
    for number, one in enumerate(boxes):
        for other in boxes[:number]:
            apart = (
                one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or other[1] >= one[3]
            )
            assert apart, (one, other)


def test_without_javascript_it_is_drawn_all_the_same(visit):
    page = visit(views.four_nodes(), script=False)
    assert page.locator(".field circle").count() > 5
    page.locator(".roofline summary").click()
    assert page.locator(".roofline details table").first.is_visible()
