from __future__ import annotations

import msgspec
import pytest

from explain.scenario_parts import NodePart, gpu, scenario
from teho.model.document import Plot, PlotSeries
from teho.show.build.report.plots import plots_of
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


def test_means_are_those_of_all_samples() -> None:
    # Half of the time at 90 %, in bins whose mean is 45 %: the peak is in no bin.
    _, summary = scenario(NodePart(gpus=[gpu(45.0)], rates={"disk_read_bytes": 2e6}))
    (node,) = summary.nodes
    (one,) = node.gpus
    busy = msgspec.structs.replace(one.stats["gpu_busy_percent"], mean=44.0, min=0.0, max=91.0)
    one = msgspec.structs.replace(one, stats={**one.stats, "gpu_busy_percent": busy})
    elapsed_s = summary.elapsed_s
    for first_s, read, mean in (
        (0.0, 3e6 * elapsed_s, 3e6),
        (elapsed_s / 2, 3e6 * elapsed_s, 6e6),
        # A run that is shorter than a sample has one row, which covers no time.
        (elapsed_s, 0.0, None),
    ):
        changed = msgspec.structs.replace(
            node, first_s=first_s, last_s=elapsed_s, gpus=(one,),
            totals={**node.totals, "disk_read_bytes": read},
        )  # fmt: skip
        drawn = plots_of(msgspec.structs.replace(summary, nodes=(changed,)))
        lines = {plot.key: plot.series[0] for plot in drawn}
        line = lines["gpu_busy_percent"]
        assert (line.mean, line.least, line.most) == (44.0, 0.0, 91.0)
        assert lines["disk_read_bytes"].mean == mean
        assert lines["disk_read_bytes"].most is None
