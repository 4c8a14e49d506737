"""Plots of more lines than can be told from each other."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.model.document import Plot, PlotSeries
from teho.model.finding import Finding, Moments, Severity
from teho.show.html.many_lines import with_few_lines

MANY = 129


def plot(*lines: PlotSeries) -> Plot:
    return Plot(
        key="gpu_power_w", title="Power", unit="W", meaning="power", group="GPU",
        elapsed_s=[float(bin_) for bin_ in range(len(lines[0].values))], series=lines,
    )  # fmt: skip


def lines(count: int) -> list[PlotSeries]:
    return [PlotSeries(f"GPU {n}", [float((n * 37) % count), None]) for n in range(count)]


def finding(moments: Moments | None = None) -> Finding:
    return Finding(
        kind="gpu_idle", severity=Severity.WARNING, sentence="A GPU was idle.", evidence=(),
        thresholds=(), action="Change it.", moments=moments,
    )  # fmt: skip


def test_few_lines_are_all_drawn() -> None:
    one = plot(*lines(MANY - 1))
    assert with_few_lines([one], []) == (one,)


def test_many_lines_are_their_spread_and_the_unusual_ones() -> None:
    (drawn,) = with_few_lines([plot(*lines(MANY))], [])
    values = {line.label: line.values for line in drawn.series}
    assert list(values)[:5] == [
        "highest of 129 lines", "90th percentile", "median", "10th percentile",
        "lowest of 129 lines",
    ]  # fmt: skip
    # The values are 0 to 128: 90 % of 128 is 115.2, 10 % is 12.8.
    assert [one[0] for one in values.values()][:5] == [128.0, 115.0, 64.0, 13.0, 0.0]
    assert {one[1] for one in values.values()} == {None}
    assert sorted(one[0] for one in list(values.values())[5:]) == [
        *map(float, range(5)), *map(float, range(124, 129)),
    ]  # fmt: skip


def test_the_mean_of_all_samples_decides_which_line_is_unusual() -> None:
    made = lines(MANY)
    made[64] = msgspec.structs.replace(made[64], mean=1e6)
    (drawn,) = with_few_lines([plot(*made)], [])
    assert "GPU 64" in {line.label for line in drawn.series}


@pytest.mark.parametrize(
    ("metric", "is_drawn"), [("gpu_power_w", True), ("gpu_busy_percent", False)]
)
def test_a_line_that_a_finding_names_is_drawn(metric: str, is_drawn: bool) -> None:
    usual = next(line.label for line in lines(MANY) if line.values[0] == 50.0)
    named = finding(Moments(metric, (usual,), ((0.0, 1.0),)))
    (drawn,) = with_few_lines([plot(*lines(MANY))], [named, finding()])
    assert (usual in {line.label for line in drawn.series}) is is_drawn


@given(
    st.lists(
        st.lists(st.none() | st.floats(-1e9, 1e9), min_size=3, max_size=3),
        min_size=MANY, max_size=MANY + 20,
    )
)  # fmt: skip
def test_each_value_of_the_spread_is_one_of_a_line(values: list[list[float | None]]) -> None:
    made = plot(*(PlotSeries(f"GPU {n}", one) for n, one in enumerate(values)))
    (drawn,) = with_few_lines([made], [])
    for bin_ in range(3):
        known = [one[bin_] for one in values if one[bin_] is not None]
        spread = [line.values[bin_] for line in drawn.series[:5]]
        if not known:
            assert spread == [None] * 5
            continue
        assert set(spread) <= set(known)
        assert (spread[0], spread[4]) == (max(known), min(known))
        assert spread == sorted(spread, reverse=True)
