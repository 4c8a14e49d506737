"""Figures from rows: weighted means, exact totals, bins, gaps; against plain Python."""

from __future__ import annotations

import math
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.explain.summary import summarise
from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.run import FORMAT_VERSION, Absence, End, Node, Run
from teho.model.summary import Stat, Summary
from teho.store.journal import Journal
from teho.store.layout import create_run_directory, new_run_id
from teho.store.pack import seal

START = datetime(2026, 11, 20, 10, 0, tzinfo=timezone.utc)
GPU = Device(id="GPU-a", index=0, name="H100", vendor="nvidia", memory_bytes=80 * 2**30)


def row(end_s: float, span_s: float = 1.0, device: str = "GPU-a", **values: object) -> dict:
    return {
        "elapsed_s": end_s, "span_s": span_s, "time": START + timedelta(seconds=end_s),
        "node": "n1", "kind": "node" if device == "node" else "gpu", "device": device, **values,
    }  # fmt: skip


def summary_of(
    rows: list[dict], home: Path, *, elapsed_s: float | None = None, sealed: bool = True,
    absences: tuple[Absence, ...] = (), cores_asked: int | None = None,
) -> Summary:  # fmt: skip
    directory = create_run_directory(home, new_run_id(START, "x"), b"{}")
    journal = Journal(directory, "n1")
    for one in rows:
        journal.append([one])
        journal.flush()
    journal.close()
    if sealed:
        seal(directory, "n1")
    end = None
    if elapsed_s is not None:
        end = End(at=START, elapsed_s=elapsed_s, exit_code=0, cpu_s=1.0, peak_process_bytes=1)
    node = Node(
        name="n1", started_at=START, period_s=1.0, cores=(0, 1), devices=(GPU,), absences=absences,
        allocation=Allocation(cores_asked=cores_asked),
    )  # fmt: skip
    run = Run(
        format=FORMAT_VERSION, id="x", command=("x",), started_at=START, host="n1", end=end,
        nodes=(node,),
    )  # fmt: skip
    problems: list[str] = []
    summary = summarise(run, directory, problems)
    assert problems == []
    return summary


VALUES = st.lists(
    st.tuples(
        st.one_of(st.none(), st.floats(0, 100, width=32)), st.sampled_from([0.5, 1.0, 2.0, 8.0])
    ),
    min_size=1,
    max_size=30,
)


@given(VALUES, st.booleans())
def test_means_are_weighted_by_time(values: list[tuple[float | None, float]], sealed: bool) -> None:
    rows, now = [], 0.0
    for value, span in values:
        now += span
        rows.append(row(now, span, gpu_busy_percent=value))
    with tempfile.TemporaryDirectory() as home:
        (gpu,) = summary_of(rows, Path(home), elapsed_s=now, sealed=sealed).gpus
    stat = gpu.stats["gpu_busy_percent"]
    known = [(value, span) for value, span in values if value is not None]
    if not known:
        assert isinstance(stat, Missing)
        return
    weight = sum(span for _, span in known)
    mean = sum(value * span for value, span in known) / weight
    variance = sum(span * (value - mean) ** 2 for value, span in known) / weight
    assert isinstance(stat, Stat)
    assert stat.mean == pytest.approx(mean, abs=1e-4)
    assert stat.std == pytest.approx(math.sqrt(variance), abs=0.02)
    assert stat.max == pytest.approx(max(value for value, _ in known))
    assert stat.min == pytest.approx(min(value for value, _ in known))
    assert stat.covered_s == pytest.approx(weight)


@given(VALUES)
def test_bins_add_up_to_the_whole(values: list[tuple[float | None, float]]) -> None:
    rows, now = [], 0.0
    for value, span in values:
        now += span
        rows.append(row(now, span, gpu_busy_percent=value))
    with tempfile.TemporaryDirectory() as home:
        summary = summary_of(rows, Path(home), elapsed_s=now)
    bins = summary.gpus[0].series.get("gpu_busy_percent")
    if bins is None:
        return
    assert len(bins) == summary.bin_count
    low, high = 100.0, 0.0
    for value, _ in values:
        if value is not None:
            low, high = min(low, value), max(high, value)
    assert all(low - 1e-3 <= value <= high + 1e-3 for value in bins if value is not None)


@pytest.mark.parametrize(("asked", "cores"), [(None, 2), (0, 2), (1, 1), (4, 2)])
def test_of_a_job_that_is_not_bound_the_cores_asked_for_count(
    tmp_path: Path, asked: int | None, cores: int
) -> None:
    summary = summary_of([row(1.0, device="node")], tmp_path, elapsed_s=1, cores_asked=asked)
    assert [node.cores for node in summary.nodes] == [cores]


def test_a_gap_is_a_gap_in_the_series(tmp_path: Path) -> None:
    rows = [row(t, gpu_busy_percent=80.0) for t in (1, 2, 3, 8, 9, 10)]
    summary = summary_of(rows, tmp_path, elapsed_s=10)
    bins = summary.gpus[0].series["gpu_busy_percent"]
    assert summary.bin_count == 10
    assert bins == [80, 80, 80, None, None, None, None, 80, 80, 80]
    assert summary.gpus[0].stats["gpu_busy_percent"].covered_s == 6


@given(st.lists(st.floats(allow_infinity=False, allow_nan=False, width=32), min_size=1, max_size=9))
def test_a_bin_has_five_digits(values: list[float]) -> None:
    rows = [row(t + 1, gpu_power_w=value) for t, value in enumerate(values)]
    with tempfile.TemporaryDirectory() as home:
        summary = summary_of(rows, Path(home), elapsed_s=len(rows))
    bins = summary.gpus[0].series["gpu_power_w"]
    for value, shown in zip(values, bins, strict=True):
        assert shown is not None
        assert math.isfinite(shown)
        largest = max(map(abs, values))
        # Bins are differences of running sums: what is far smaller than the largest is lost.
        assert shown == pytest.approx(value, rel=5.1e-5, abs=max(1e-10, largest * 1e-13))
        assert abs(shown) >= 1e15 or len(f"{shown:.15g}".split("e")[0].strip("-0.")) <= 6


def test_a_bin_without_a_finite_mean_is_a_gap(tmp_path: Path) -> None:
    rows = [row(1, gpu_power_w=80.0), row(2, gpu_power_w=math.nan)]
    summary = summary_of(rows, tmp_path, elapsed_s=2)
    assert summary.gpus[0].series["gpu_power_w"] == [80, None]


def test_the_largest_sub_sample_is_the_maximum(tmp_path: Path) -> None:
    rows = [
        row(8, 8, gpu_busy_percent=40.0, gpu_busy_percent_max=100.0),
        row(16, 8, gpu_busy_percent=20.0, gpu_busy_percent_max=30.0),
    ]
    stat = summary_of(rows, tmp_path, elapsed_s=16).gpus[0].stats["gpu_busy_percent"]
    assert (stat.mean, stat.max) == (30, 100)


def test_energy_is_the_counters_or_integrated_or_missing(tmp_path: Path) -> None:
    counter = [row(t, gpu_energy_j=400.0 * t, gpu_power_w=300.0) for t in range(1, 11)]
    power = [row(t, gpu_power_w=300.0) for t in range(1, 11)]
    neither = [row(t, gpu_busy_percent=0.0) for t in range(1, 11)]
    reason = Missing(Reason.UNSUPPORTED, "no counter")
    absence = Absence(device="GPU-a", metric="gpu_energy_j", missing=reason, since_s=0)
    (gpu,) = summary_of(counter, tmp_path / "a", elapsed_s=10).gpus
    assert (gpu.energy_j, gpu.energy_source) == (4000, "counter")
    (gpu,) = summary_of(power, tmp_path / "b", elapsed_s=10).gpus
    assert (gpu.energy_j, gpu.energy_source) == (3000, "integrated power")
    (gpu,) = summary_of(neither, tmp_path / "c", elapsed_s=10, absences=(absence,)).gpus
    assert (gpu.energy_j, gpu.energy_source) == (reason, "")


def test_counters_become_rates_that_give_back_the_total(tmp_path: Path) -> None:
    rows = [
        row(t, device="node", job_cpu_s=1.5 * t, net_send_bytes=1000 * (t - 1))
        for t in range(1, 11)
    ]
    (node,) = summary_of(rows, tmp_path, elapsed_s=10).nodes
    assert node.totals["job_cpu_s"] == 15
    assert node.totals["net_send_bytes"] == 9000
    # The program's own counter covers its first second too; the node's begins with the rows.
    assert node.series["job_cpu_s"] == pytest.approx([1.5] * 10)
    assert sum(rate for rate in node.series["net_send_bytes"]) == pytest.approx(9000)


def test_without_an_end_the_last_row_is_the_end(tmp_path: Path) -> None:
    rows = [row(t, device="node", job_cpu_s=0.5 * t) for t in range(1, 8)]
    summary = summary_of(rows, tmp_path, sealed=False)
    assert summary.elapsed_s == 7
    assert summary.cpu_s == 3.5
    assert summary.nodes[0].cpu_cores_used == 0.5


def test_cores_one_by_one(tmp_path: Path) -> None:
    rows = [row(t, device="node", core_busy_percent=[100, 10 * t]) for t in range(1, 5)]
    (node,) = summary_of(rows, tmp_path, elapsed_s=4).nodes
    assert node.core_mean_percent == (100, 25)


def test_cores_that_came_late(tmp_path: Path) -> None:
    lists = [[80], [40], [60, 10], [20, 30]]
    rows = [row(t, device="node", core_busy_percent=busy) for t, busy in enumerate(lists, 1)]
    (node,) = summary_of(rows, tmp_path, elapsed_s=4).nodes
    assert node.core_mean_percent == (50, 20)


def test_no_rows_at_all(tmp_path: Path) -> None:
    summary = summary_of([], tmp_path, elapsed_s=0.01, sealed=False)
    (node,) = summary.nodes
    stat = node.stats["cpu_busy_percent"]
    assert isinstance(stat, Missing)
    assert stat.reason is Reason.UNRECORDED
    assert summary.gpus[0].series == {}


def test_a_run_shorter_than_a_sample(tmp_path: Path) -> None:
    summary = summary_of([row(0.05, 0.0, gpu_busy_percent=7.0)], tmp_path, elapsed_s=0.05)
    stat = summary.gpus[0].stats["gpu_busy_percent"]
    assert (stat.mean, stat.covered_s) == (7, 0)
    assert len(summary.gpus[0].series["gpu_busy_percent"]) == summary.bin_count


def test_a_long_run_has_short_bins_for_its_end() -> None:
    """In ten hours, a bin has a minute. The rows at the end are shorter."""
    rows, cpu_s, now = [], 0.0, 0.0
    while now < 36_000 - 40:
        now, cpu_s = now + 32.0, cpu_s + 64.0
        rows.append(row(now, 32.0, device="node", job_cpu_s=cpu_s))
    for span_s in (15.0, 16.0):
        now += span_s
        rows.append(row(now, span_s, device="node", job_cpu_s=cpu_s))
    with tempfile.TemporaryDirectory() as home:
        summary = summary_of(rows, Path(home))
    (node,) = summary.nodes
    assert summary.bin_s == pytest.approx(60.0, rel=0.01)
    assert summary.end_bin_s == 10.0
    ends = node.end_series["job_cpu_s"]
    assert len(ends) == 60
    # Each row counts in the bin of its middle: 8 s and 23.5 s before the end.
    assert ends[-1] == 0.0
    assert ends[-3] == 0.0
    assert 2.0 in ends[:-4]
    assert node.series["job_cpu_s"][-1] != 0.0


def test_a_short_run_and_one_that_ended_well_have_no_other_bins_for_the_end() -> None:
    rows = [row(float(now), device="node", job_cpu_s=2.0 * now) for now in range(1, 101)]
    with tempfile.TemporaryDirectory() as home:
        summary = summary_of(rows, Path(home))
    assert (summary.end_bin_s, summary.nodes[0].end_series) == (0.0, {})
    rows = [row(32.0 * now, 32.0, device="node", job_cpu_s=2.0 * now) for now in range(1, 1001)]
    with tempfile.TemporaryDirectory() as home:
        summary = summary_of(rows, Path(home), elapsed_s=32_000.0)
    assert (summary.end_bin_s, summary.nodes[0].end_series) == (0.0, {})
