"""Curves of several runs over the same time axis."""

from __future__ import annotations

import pytest

from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.summary import GpuSummary, NodeSummary, Summary
from teho.show.build.compared_plots import compared_plots

UNKNOWN = Missing(Reason.UNRECORDED)


def gpu(number: int, busy: list[float | None] | None) -> GpuSummary:
    series = {} if busy is None else {"gpu_busy_percent": busy}
    device = Device(id=f"GPU-{number}", index=number, name="A100", vendor="nvidia")
    return GpuSummary(device=device, position=number, stats={}, energy_j=UNKNOWN, series=series)


def node(name: str, cores: list[float | None] | None, *gpus: GpuSummary) -> NodeSummary:
    return NodeSummary(
        name=name, covered_s=1.0, cores=4, stats={}, totals={}, cpu_cores_used=UNKNOWN,
        memory_peak_bytes=UNKNOWN, memory_limit_bytes=UNKNOWN, gpus=gpus,
        series={} if cores is None else {"job_cpu_s": cores},
    )  # fmt: skip


def summary(bin_s: float, count: int, *nodes: NodeSummary) -> Summary:
    return Summary(
        elapsed_s=bin_s * count, cpu_s=UNKNOWN, bin_s=bin_s, bin_count=count, nodes=nodes
    )


def lines(*summaries: Summary) -> dict[str, list[tuple[str, list[float | None]]]]:
    names = [f"run {number}" for number in range(len(summaries))]
    return {
        plot.key: [(one.label, one.values) for one in plot.series]
        for plot in compared_plots(names, summaries)
    }


def test_a_line_is_the_mean_of_the_gpus_and_ends_with_its_run() -> None:
    short = summary(1.0, 10, node("g1", None, gpu(0, [100.0] * 10), gpu(1, [50.0] * 10)))
    long = summary(2.0, 20, node("g1", None, gpu(0, [0.0] * 10 + [80.0] * 10)))
    ((first, one), (second, other)) = lines(short, long)["gpu_busy_percent"]
    assert (first, second) == ("run 0", "run 1")
    assert len(one) == len(other) == 400
    assert set(one[:100]) == {75.0}
    assert set(one[101:]) == {None}, "40 s are the axis, and this run took 10 s"
    assert set(other[:200]) == {0.0}
    assert set(other[201:]) == {80.0}


def test_a_gap_is_not_a_zero() -> None:
    holes: list[float | None] = [None, None, 40.0, 40.0, None, None]
    ((_, values),) = lines(summary(1.0, 6, node("g1", None, gpu(0, holes))))["gpu_busy_percent"]
    assert values[0] is None
    assert values[200] == 40.0
    assert values[399] is None
    assert 0.0 not in values


def test_the_sum_of_nodes_needs_all_nodes() -> None:
    whole = summary(1.0, 4, node("a", [2.0] * 4), node("b", [3.0] * 4))
    half = summary(1.0, 4, node("a", [2.0] * 4), node("b", None))
    ((_, values), (_, unknown)) = lines(whole, half)["job_cpu_s"]
    assert set(values) == {5.0}
    assert set(unknown) == {None}
    gap = summary(1.0, 4, node("a", [2.0, 2.0, 2.0, 2.0]), node("b", [3.0, None, 3.0, 3.0]))
    ((_, values),) = lines(gap)["job_cpu_s"]
    assert values[150] is None
    assert values[0] == 5.0


def test_many_bins_become_their_mean() -> None:
    busy: list[float | None] = [0.0, 100.0] * 2000
    ((_, values),) = lines(summary(1.0, 4000, node("g1", None, gpu(0, busy))))["gpu_busy_percent"]
    assert set(values) == {50.0}


def test_what_no_run_recorded_has_no_plot() -> None:
    assert lines(summary(1.0, 3, node("a", None, gpu(0, None)))) == {}
    assert lines(summary(1.0, 0)) == {}
    one, other = summary(1.0, 3, node("a", [1.0] * 3)), summary(1.0, 3, node("a", None))
    assert [values for _, values in lines(one, other)["job_cpu_s"]][1] == [None] * 400


@pytest.mark.parametrize("seconds", [0.001, 1.0, 86_400.0 * 30])
def test_every_length_of_a_run(seconds: float) -> None:
    made = summary(seconds / 60, 60, node("a", [1.5] * 60))
    ((_, values),) = lines(made)["job_cpu_s"]
    assert set(values) == {1.5}
