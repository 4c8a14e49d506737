"""When a run showed what a finding says: the times, and the lines of the plot."""

from __future__ import annotations

import pytest

from explain import scenarios
from explain.scenario_parts import (
    BINS,
    NodePart,
    found,
    gpu,
    repeated,
    scenario,
    untouched_gpu,
)
from explain.scenarios import SCENARIOS
from teho.explain.judge import judge_all
from teho.explain.moments import moments_of
from teho.explain.places import gpus_of
from teho.explain.policy import load_policy
from teho.explain.rules.cpu import cores_unused
from teho.explain.rules.gpu import (
    cpu_busy_gpu_idle,
    gpu_low_use,
    gpu_never_used,
    gpu_sm_low,
    gpu_used_only_at_first,
)
from teho.explain.rules.job import rank_imbalance
from teho.explain.rules.memory import memory_grows
from teho.model.finding import Finding
from teho.show.build.report.plots import plots_of


def shares_s(finding: Finding, elapsed_s: float) -> list[tuple[float, float]]:
    """Return the times as shares of the run."""
    assert finding.moments
    return [(begin / elapsed_s, end / elapsed_s) for begin, end in finding.moments.spans_s]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_time_belongs_to_a_line_of_a_plot_and_to_the_run(name: str) -> None:
    run, summary = SCENARIOS[name]()
    lines = {plot.key: [line.label for line in plot.series] for plot in plots_of(summary)}
    for finding in judge_all(run, summary, load_policy())[0]:
        if finding.moments is None:
            continue
        assert set(finding.moments.lines) <= set(lines[finding.moments.metric])
        edges = [edge for span in finding.moments.spans_s for edge in span]
        assert edges == sorted(set(edges)), "the times do not touch"
        assert edges[0] >= 0
        assert edges[-1] <= summary.elapsed_s + 1e-3


def test_of_two_gpus_the_times_of_either_count() -> None:
    run, summary = scenario(NodePart(gpus=[gpu(), gpu()]))
    places = gpus_of(summary.nodes[0])
    bins = (
        (True, True, False, None, False, False),
        (False, True, True, None, False, True),
    )
    moments = moments_of(run, summary, "gpu_busy_percent", zip(places, bins, strict=True))
    assert moments
    ends_s = [pytest.approx(edge * summary.bin_s) for edge in (0, 3, 5, 6)]
    assert [edge for span in moments.spans_s for edge in span] == ends_s
    assert moments.lines == ("GPU 0", "GPU 1")
    assert moments_of(run, summary, "gpu_busy_percent", [(places[0], (False, None))]) is None


@pytest.mark.parametrize(("late", "times"), [(1, [(0, 5)]), (2, [(0, 6)]), (3, [(0, 2), (5, 7)])])
def test_a_recorder_that_was_late_separates_nothing(late: int, times: list) -> None:
    run, summary = scenario(NodePart(gpus=[gpu()]))
    (place,) = gpus_of(summary.nodes[0])
    bins = [True, True, *[None] * late, True, True, False, None, True, False]
    moments = moments_of(run, summary, "gpu_busy_percent", [(place, bins)])
    assert moments
    found_ = [tuple(edge / summary.bin_s for edge in span) for span in moments.spans_s]
    last = 6 + late
    assert found_ == [pytest.approx(one) for one in (*times, (last, last + 1))]


def test_a_gpu_that_was_never_used_shows_it_all_the_time() -> None:
    run, summary = scenarios.never_used_gpu()
    finding = found(gpu_never_used, (run, summary))
    assert shares_s(finding, summary.elapsed_s) == [(0.0, 1.0)]
    assert finding.moments.lines == ("GPU 1",)


def test_nodes_are_in_the_lines_if_there_are_several() -> None:
    parts = [NodePart("r01g01", gpus=[gpu()]), NodePart("r01g02", gpus=[untouched_gpu()])]
    assert found(gpu_never_used, scenario(*parts)).moments.lines == ("r01g02 GPU 0",)


def test_used_only_at_first_is_shown_from_then_on() -> None:
    busy = repeated((95, BINS // 4), (0, BINS - BINS // 4))
    made = scenario(NodePart(gpus=[gpu(gpu_busy_percent=busy)]))
    finding = found(gpu_used_only_at_first, made)
    assert shares_s(finding, made[1].elapsed_s) == [(0.25, pytest.approx(1.0))]


def test_low_use_is_shown_where_it_was_low() -> None:
    # 10 of 60 bins at 90 %: the mean is 15 %, and the limit of that severity is 15 %.
    busy = repeated((0, 20), (90, 10), (0, 30))
    made = scenario(NodePart(gpus=[gpu(gpu_busy_percent=busy)]))
    third, half = pytest.approx(1 / 3), pytest.approx(1 / 2)
    times = shares_s(found(gpu_low_use, made), made[1].elapsed_s)
    assert times == [(0.0, third), (half, pytest.approx(1.0))]


def test_multiprocessors_without_work_do_not_count_while_the_gpu_is_idle() -> None:
    busy = repeated((0, 10), (100, 50))
    active = repeated((0, 10), (20, 40), (90, 10))
    made = scenario(NodePart(gpus=[gpu(gpu_busy_percent=busy, gpu_sm_active_percent=active)]))
    times = shares_s(found(gpu_sm_low, made), made[1].elapsed_s)
    assert times == [(pytest.approx(10 / BINS), pytest.approx(50 / BINS))]


@pytest.mark.parametrize(
    ("rule", "name", "metric"),
    [
        (cpu_busy_gpu_idle, "starved_by_cpu", "job_cpu_s"),
        (cpu_busy_gpu_idle, "starved_by_all_cores", "cpu_busy_percent"),
        (cores_unused, "serial_on_40_cores", "job_cpu_s"),
        (memory_grows, "leaks_memory", "job_memory_bytes"),
        (rank_imbalance, "one_gpu_differs", "gpu_power_w"),
    ],
)
def test_the_metric_that_shows_it(rule, name: str, metric: str) -> None:
    finding = found(rule, getattr(scenarios, name)())
    assert finding.moments
    assert finding.moments.metric == metric
