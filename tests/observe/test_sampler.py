"""Rows from readings: differences, means and maxima, counters over resets, thinning."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stubs.amd_tree import build_mi100
from teho.devices.amd.source import AmdSource
from teho.model.missing import Missing, Reason
from teho.observe.sampler import SignalSampler, samples_per_row
from teho.store.journal import Journal

START = datetime(2026, 11, 20, 10, 0, tzinfo=timezone.utc)


def sampler(period_s: float = 1.0) -> SignalSampler:
    return SignalSampler("r01g01", START, period_s)


def test_the_first_readings_make_no_row_and_the_second_do() -> None:
    one = sampler()
    one.begin({"node": {"job_cpu_s": 5.0, "context_switches": 1000}}, 0.0)
    later = {"job_cpu_s": 5.5, "context_switches": 1010, "cpu_busy_percent": 50.0}
    (row,) = one.add({"node": later}, 1.0)
    assert row["job_cpu_s"] == 5.5  # the program's own, from its own start
    assert row["context_switches"] == 10  # the node's, since the recording began
    assert row["cpu_busy_percent"] == 50.0
    assert "cpu_busy_percent_max" not in row  # a single sample has no maximum of its own
    assert (row["elapsed_s"], row["span_s"], row["kind"]) == (1.0, 1.0, "node")


def test_a_counter_that_was_reset_continues_to_grow() -> None:
    one = sampler()
    one.begin({"gpu": {"gpu_energy_j": 1000.0}}, 0)
    rows = [one.add({"gpu": {"gpu_energy_j": v}}, t)[0] for t, v in ((1, 1400.0), (2, 30.0))]
    assert [row["gpu_energy_j"] for row in rows] == [400.0, 430.0]


def test_a_counter_whose_source_was_opened_again_was_not_reset(tmp_path: Path) -> None:
    """The MI100's is full every 65.5 kJ: how often it was nobody knows after a new opening."""
    tree = build_mi100(tmp_path)
    gpu, one = tree.gpus[0], sampler()

    def drew(joules: float, source: AmdSource) -> dict:
        gpu.run(200, power_w=joules / 200)
        return source.read(frozenset())

    source = AmdSource({}, tree.root)
    one.begin(drew(1000, source), 0)
    for at_s in (200, 400):  # the counter begins anew in the second of them
        (row,) = one.add(drew(60_000, source), at_s)
    assert row["gpu_energy_j"] == pytest.approx(120_000, rel=1e-6)
    source.close()
    source = AmdSource({}, tree.root)
    one.resume(source.read(frozenset()), 401)
    (row,) = one.add(drew(5000, source), 600)
    assert row["gpu_energy_j"] == pytest.approx(125_000, rel=1e-6)


def test_growth_until_the_source_was_opened_again_counts() -> None:
    one = sampler()
    one.begin({"gpu": {"gpu_energy_j": 1000.0}}, 0)
    one.resume({"gpu": {"gpu_energy_j": 1300.0}, "late": {"gpu_energy_j": 7000.0}}, 1)
    rows = one.add({"gpu": {"gpu_energy_j": 1500.0}, "late": {"gpu_energy_j": 7100.0}}, 2)
    assert [row["gpu_energy_j"] for row in rows] == [500.0, 100.0]


def test_missing_is_null_and_its_reason_is_kept_with_its_time() -> None:
    one = sampler()
    lost = Missing(Reason.FAILED, "GPU is lost")
    one.begin({"gpu": {"gpu_busy_percent": 1}}, 0)
    one.add({"gpu": {"gpu_busy_percent": 7}}, 1)
    (row,) = one.add({"gpu": {"gpu_busy_percent": lost}}, 2)
    assert "gpu_busy_percent" not in row
    absence = one.absences["gpu", "gpu_busy_percent"]
    assert (absence.missing, absence.since_s) == (lost, 2)
    assert one.absences_changed


def test_zero_is_a_value() -> None:
    one = sampler()
    one.begin({"gpu": {}}, 0)
    (row,) = one.add({"gpu": {"gpu_busy_percent": 0}}, 1)
    assert row["gpu_busy_percent"] == 0
    assert not one.absences


@given(st.floats(0, 1e12) | st.integers(0, 10**12))
def test_a_reading_is_kept_to_one_part_in_a_thousand(tmp_path_factory, value: float) -> None:
    one, run = sampler(), tmp_path_factory.mktemp("run")
    (run / "live").mkdir()
    one.begin({"gpu": {}}, 0)
    journal = Journal(run, "r01g01")
    journal.append(one.add({"gpu": {"gpu_pcie_send_bytes_per_s": value}}, 1))
    journal.close()
    with pa.ipc.open_stream(next((run / "live").iterdir())) as stream:
        (kept,) = stream.read_all().column("gpu_pcie_send_bytes_per_s").to_pylist()
    assert kept == pytest.approx(value, rel=1e-3, abs=0.051)


def test_a_stopped_recorder_leaves_a_gap() -> None:
    one = sampler()
    one.begin({"node": {}}, 0)
    (row,) = one.add({"node": {"load_1min": 1.0}}, 3600)
    assert row["span_s"] == 2  # not an hour that nobody watched


def test_a_sample_that_took_long_ends_no_row() -> None:
    one = sampler()
    one.begin({"node": {"job_cpu_s": 0.0}}, 0)

    def add(at_s: float, cpu_s: float, took_s: float) -> list[float]:
        readings = {"node": {"job_cpu_s": cpu_s, "job_threads": cpu_s}}
        return [row["job_cpu_s"] for row in one.add(readings, at_s, took_s)]

    assert add(1, 2.0, 0.01) == [2.0]
    # It began to be read at 2 s and was read at 12 s: 20 s of CPU time in one would be 20 cores.
    assert add(2, 22.0, 10.0) == []
    assert add(12, 22.5, 0.01) == [22.5]
    # Where all take long, rows come nevertheless.
    assert [add(at, 30.0, 2.0) for at in (14, 16, 18, 20)] == [[], [], [], [30.0]]


def test_cores_are_averaged_core_by_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teho.observe.sampler.samples_per_row", lambda *_: 2)
    one = sampler()
    one.begin({"node": {"core_busy_percent": [50.0, 50.0]}}, 0)
    assert one.add({"node": {"core_busy_percent": [100.0, 0.0]}}, 1) == []
    (row,) = one.add({"node": {"core_busy_percent": [50.0, 10.0]}}, 2)
    assert row["core_busy_percent"] == [75, 5]


@given(st.lists(st.integers(0, 100), min_size=2, max_size=40), st.integers(1, 7))
def test_thinned_rows_keep_mean_maximum_and_totals(values: list[int], per_row: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("teho.observe.sampler.samples_per_row", lambda *_: per_row)
        one = sampler()
        one.begin({"gpu": {"gpu_busy_percent": 0, "gpu_energy_j": 0.0}}, 0)
        rows, energy = [], 0.0
        for second, value in enumerate(values, start=1):
            energy += value
            readings = {"gpu": {"gpu_busy_percent": value, "gpu_energy_j": energy}}
            rows += one.add(readings, second)
        rows += one.finish(len(values))
    assert sum(row["span_s"] for row in rows) == pytest.approx(len(values))
    total = sum(row["gpu_busy_percent"] * row["span_s"] for row in rows)
    # A row keeps its mean to a tenth.
    assert total == pytest.approx(sum(values), abs=0.051 * len(values))
    largest = max(row.get("gpu_busy_percent_max", row["gpu_busy_percent"]) for row in rows)
    assert largest == max(values)
    assert rows[-1]["gpu_energy_j"] == sum(values)


def test_rows_grow_longer_and_the_recording_stays_bounded() -> None:
    values_per_row = 8 * 16 + 40 + 128  # 8 GPUs, 128 cores
    rows = samples = 0
    month = 30 * 86400
    while samples < month:
        samples += samples_per_row(rows, values_per_row)
        rows += 1
    assert samples_per_row(0, values_per_row) == 1
    assert rows * values_per_row * 1.3 < 20e6
    assert samples_per_row(10**9, values_per_row) == samples_per_row(10**8, values_per_row)


def test_a_row_ends_early_if_the_run_may_be_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teho.observe.sampler.samples_per_row", lambda *_: 64)
    one = sampler()
    one.begin({"node": {"job_cpu_s": 0.0}}, 0)
    for second in range(1, 10):
        assert one.add({"node": {"job_cpu_s": 1.0 * second}}, second) == []
    assert one.cut(9) == []  # a row of less than 10 s is short enough
    one.add({"node": {"job_cpu_s": 10.0}}, 10)
    (row,) = one.cut(10)
    assert (row["span_s"], row["job_cpu_s"]) == (10, 10.0)
    for second in range(11, 26):
        assert one.add({"node": {"job_cpu_s": 10.0}}, second) == []
    (row,) = one.cut(25)
    assert (row["span_s"], row["job_cpu_s"]) == (15, 10.0)


def test_few_rows_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teho.observe.sampler.samples_per_row", lambda *_: 16)
    one, cut, rows = sampler(), 0, 0
    one.begin({"node": {"job_cpu_s": 0.0}}, 0)
    for second in range(1, 20_001):
        rows += len(one.add({"node": {"job_cpu_s": 1.0 * second}}, second))
        cut += len(one.cut(second))
    assert rows > 1000
    assert 8 < cut <= 9 + (rows + cut) / 8


def test_a_late_sample_ends_no_row_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teho.observe.sampler.samples_per_row", lambda *_: 64)
    one = sampler()
    one.begin({"node": {"job_cpu_s": 0.0}}, 0)
    for second in range(1, 12):
        one.add({"node": {"job_cpu_s": 1.0}}, second)
    one.add({"node": {"job_cpu_s": 1.0}}, 12, 5.0)
    assert one.cut(12) == []


def test_the_newest_sample_is_only_this_sample_whatever_the_rows_contain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "teho.observe.sampler.samples_per_row", lambda written, _: 1 if written < 2 else 3
    )
    signals = sampler()
    signals.begin({"node": {"job_cpu_s": 1.0}}, 0.0)
    for second in range(1, 6):
        readings = {
            "node": {"job_cpu_s": 1.0 + second, "core_busy_percent": [second, 120.0]},
            "GPU-a": {"gpu_busy_percent": 10.04 * second, "gpu_power_w": Missing(Reason.FAILED)},
        }
        signals.add(readings, float(second))
        assert signals.newest(readings) == [
            {"kind": "node", "device": "node", "job_cpu_s": 1.0 + second,
             "core_busy_percent": [second, 100]},
            {"kind": "gpu", "device": "GPU-a", "gpu_busy_percent": round(10.04 * second, 1)},
        ]  # fmt: skip
