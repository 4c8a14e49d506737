from __future__ import annotations

import pytest

from teho.model.document import Plot, PlotSeries
from teho.show.html.plots import numbers_of


def plot(lines: int) -> Plot:
    return Plot(
        key="gpu_power_w", title="Power", unit="W", meaning="power", group="GPU", elapsed_s=[1.0],
        series=tuple(PlotSeries(f"GPU {n}", [float((n * 37) % lines)]) for n in range(lines)),
    )  # fmt: skip


@pytest.mark.parametrize("lines", [1, 31, 32])
def test_each_line_has_its_numbers(lines: int) -> None:
    page = numbers_of(plot(lines))
    assert all(f">GPU {n}<" in page for n in range(lines))
    assert "in between" not in page


def test_of_hundreds_the_lowest_and_the_highest_have() -> None:
    drawn = plot(101)
    page = numbers_of(drawn)
    named = {line.values[0] for line in drawn.series if f">{line.label}<" in page}
    assert named == {*map(float, range(16)), *map(float, range(85, 101))}
    assert "69 more rows in between" in page


def test_lines_without_a_point_are_none_of_the_extremes() -> None:
    drawn = plot(101)
    for line in drawn.series[:80]:
        line.values[0] = None
    page = numbers_of(drawn)
    assert "in between" not in page
    assert "not recorded" not in page
